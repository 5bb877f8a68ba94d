-- Recover on demand: which part of an original was given back, whether it may be a source, and what is pinned for that reason.

ALTER TABLE recoveries ADD COLUMN part text, ADD COLUMN bytes bigint, ADD COLUMN given_key text, ADD COLUMN source boolean;
COMMENT ON TABLE recoveries IS 'Originals, and parts of them, that were given back, and to whom. With an event_id: asked back by an agent.';
COMMENT ON COLUMN recoveries.part IS 'Part of the original: e and the number of an entry, m and the number of a message; NULL: all of it.';
COMMENT ON COLUMN recoveries.bytes IS 'How many bytes were given; NULL: a runtime gave them itself.';
COMMENT ON COLUMN recoveries.given_key IS 'Hash of the given text without blanks around it, by which it is known when it comes back in a history; NULL: not given by Winnow, or no text.';
COMMENT ON COLUMN recoveries.source IS 'The text is what an environment returned, so it is a source when it comes back; NULL as given_key.';
CREATE INDEX recoveries_given ON recoveries (fleet, given_key) WHERE given_key IS NOT NULL;

ALTER TABLE runtime_events ADD COLUMN part text;
COMMENT ON COLUMN runtime_events.part IS 'Part of the original that was asked back: e or m and a number; NULL: all of it, or another kind of event.';

COMMENT ON COLUMN decisions.reason IS 'score, pinned, recovered, scaffold, unscored, user_sourced, inherited_unsourced, stale or not_judged.';

CREATE TABLE pinned_entries (
    fleet       text NOT NULL,
    run         text NOT NULL,
    text_key    text NOT NULL,
    boundary_id uuid NOT NULL,
    n           integer NOT NULL,
    pinned_at   timestamptz NOT NULL,
    CONSTRAINT pinned_entries_pkey PRIMARY KEY (fleet, run, text_key),
    CONSTRAINT pinned_entries_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
COMMENT ON TABLE pinned_entries IS 'Entries that an agent asked back: an entry of the same wording is kept for the rest of the run.';
COMMENT ON COLUMN pinned_entries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN pinned_entries.run IS 'The run whose entry it is.';
COMMENT ON COLUMN pinned_entries.text_key IS 'Identity of the wording, as in entries.';
COMMENT ON COLUMN pinned_entries.boundary_id IS 'Boundary of the entry that was asked back first.';
COMMENT ON COLUMN pinned_entries.n IS 'Number of that entry in its candidate.';
COMMENT ON COLUMN pinned_entries.pinned_at IS 'When it was first asked back.';

CREATE TABLE canary_donors (
    fleet       text NOT NULL,
    run         text NOT NULL,
    boundary_id uuid NOT NULL,
    boundary_at timestamptz NOT NULL,
    CONSTRAINT canary_donors_pkey PRIMARY KEY (fleet, run, boundary_id),
    CONSTRAINT canary_donors_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
CREATE INDEX canary_donors_boundary ON canary_donors (fleet, boundary_id);
COMMENT ON TABLE canary_donors IS 'Which boundaries hold an entry of another run as a canary, so that erasing that run finds them.';
COMMENT ON COLUMN canary_donors.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN canary_donors.run IS 'The run whose entry was taken.';
COMMENT ON COLUMN canary_donors.boundary_id IS 'The boundary of another run that a judge was asked about it with.';
COMMENT ON COLUMN canary_donors.boundary_at IS 'Copy of that boundary''s anchor time.';

CREATE VIEW recovery_history WITH (security_barrier = true) AS
SELECT r.fleet, r.at, b.run AS of_run, r.run AS asked_by, r.event_id IS NOT NULL AS asked_back, r.via, r.kind, r.part, r.bytes, r.source,
    r.boundary_id, b.boundary_index, e.n, e.section, e.text, d.decision, d.reason
FROM recoveries r
LEFT JOIN boundaries b ON b.fleet = r.fleet AND b.boundary_id = r.boundary_id
LEFT JOIN entries e ON r.part ~ '^e[0-9]{1,9}$' AND e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
    AND e.n = substr(r.part, 2)::integer
LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n;
COMMENT ON VIEW recovery_history IS 'One row a recovery: what was given back, to whom, and what had become of the entry where it was one.';
COMMENT ON COLUMN recovery_history.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN recovery_history.at IS 'When it was given.';
COMMENT ON COLUMN recovery_history.of_run IS 'The run that the original belongs to.';
COMMENT ON COLUMN recovery_history.asked_by IS 'The run that asked, where it is known.';
COMMENT ON COLUMN recovery_history.asked_back IS 'An agent asked for it; false: somebody looked at it.';
COMMENT ON COLUMN recovery_history.via IS 'gateway, runtime or cli.';
COMMENT ON COLUMN recovery_history.kind IS 'What the original is.';
COMMENT ON COLUMN recovery_history.part IS 'Part of it: e and the number of an entry, m and the number of a message; NULL: all.';
COMMENT ON COLUMN recovery_history.bytes IS 'How many bytes were given.';
COMMENT ON COLUMN recovery_history.source IS 'It is what an environment returned.';
COMMENT ON COLUMN recovery_history.boundary_id IS 'The boundary that it belongs to.';
COMMENT ON COLUMN recovery_history.boundary_index IS 'Number of that boundary in its run.';
COMMENT ON COLUMN recovery_history.n IS 'Number of the entry, where it was one.';
COMMENT ON COLUMN recovery_history.section IS 'Heading that the entry stands under.';
COMMENT ON COLUMN recovery_history.text IS 'The entry.';
COMMENT ON COLUMN recovery_history.decision IS 'What had become of the entry.';
COMMENT ON COLUMN recovery_history.reason IS 'Why.';

DO $$
DECLARE
    t text;
    child regclass;
BEGIN
    FOREACH t IN ARRAY ARRAY['pinned_entries', 'canary_donors'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO winnow_service', t);
        EXECUTE format('CREATE POLICY service ON %I TO winnow_service USING (true) WITH CHECK (true)', t);
    END LOOP;
    GRANT SELECT, INSERT ON pinned_entries TO winnow_gateway;
    CREATE POLICY gateway ON pinned_entries TO winnow_gateway USING (fleet = current_setting('winnow.fleet', true))
        WITH CHECK (fleet = current_setting('winnow.fleet', true));
    GRANT SELECT ON recoveries TO winnow_view_owner;
    CREATE POLICY looker ON recoveries FOR SELECT TO winnow_view_owner USING (fleet = ANY (ARRAY(SELECT f.fleet FROM fleets f)));
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    GRANT SELECT ON recovery_history TO winnow_reader, winnow_gateway, winnow_service;
    ALTER VIEW recovery_history OWNER TO winnow_view_owner;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
    FOR child IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'decisions'::regclass LOOP
        EXECUTE format('COMMENT ON COLUMN %s.reason IS %L', child, col_description('decisions'::regclass,
            (SELECT attnum FROM pg_attribute WHERE attrelid = 'decisions'::regclass AND attname = 'reason')));
    END LOOP;
END
$$;
