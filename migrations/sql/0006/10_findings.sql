-- What the span says against an entry (evidence), which kinds of it a score knows, and whether work that is done may be pruned.

ALTER TABLE operating_points ADD COLUMN prune_stale boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN operating_points.prune_stale IS 'Entries that are listed as open although an output shows them done are pruned.';
ALTER TABLE entries ADD COLUMN findings jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN entries.findings IS 'What the span says against the entry: kind, claim, and who says what instead; at most 8.';
ALTER TABLE scores ADD COLUMN flags text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN scores.flags IS 'Kinds of what speaks against the entry: contradicted, orphan, stale, rewritten_constraint, invented_deliverable.';
COMMENT ON COLUMN decisions.reason IS 'score, pinned, scaffold, unscored, user_sourced, inherited_unsourced, stale or not_judged.';

-- Partitions that are there already have the columns now, but not what they mean; later ones copy it.
DO $$
DECLARE
    child regclass;
    parent text;
    what text;
BEGIN
    FOR parent, what IN VALUES ('entries', 'findings'), ('scores', 'flags') LOOP
        FOR child IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = parent::regclass LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', child, what, col_description(parent::regclass,
                (SELECT attnum FROM pg_attribute WHERE attrelid = parent::regclass AND attname = what)));
        END LOOP;
    END LOOP;
END
$$;

CREATE VIEW entry_findings WITH (security_barrier = true) AS
SELECT e.fleet, b.run, b.boundary_index, e.boundary_at, e.boundary_id, e.n, e.section, e.text, f.place, f.finding ->> 'kind' AS kind,
    f.finding ->> 'claim' AS claim, f.finding ->> 'key' AS key, f.finding ->> 'said' AS said, f.finding ->> 'by' AS said_by,
    (f.finding ->> 'message')::integer AS message, f.finding ->> 'tool' AS tool, d.decision, d.reason, d.verdict
FROM boundaries b
JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
CROSS JOIN LATERAL jsonb_array_elements(e.findings) WITH ORDINALITY AS f (finding, place)
LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n;
COMMENT ON VIEW entry_findings IS 'One row a finding: what the span says against an entry, with both sides and where the other one stands.';
COMMENT ON COLUMN entry_findings.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN entry_findings.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN entry_findings.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN entry_findings.boundary_at IS 'Anchor time of the boundary.';
COMMENT ON COLUMN entry_findings.boundary_id IS 'The boundary.';
COMMENT ON COLUMN entry_findings.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN entry_findings.section IS 'Heading that the entry stands under.';
COMMENT ON COLUMN entry_findings.text IS 'The entry with its marker.';
COMMENT ON COLUMN entry_findings.place IS 'Place among the findings of the entry, from 1.';
COMMENT ON COLUMN entry_findings.kind IS 'contradicted, orphan, stale, rewritten_constraint or invented_deliverable.';
COMMENT ON COLUMN entry_findings.claim IS 'What the entry says.';
COMMENT ON COLUMN entry_findings.key IS 'What the claim is about, as the other text names it.';
COMMENT ON COLUMN entry_findings.said IS 'What the other text says; NULL for a value that nobody says.';
COMMENT ON COLUMN entry_findings.said_by IS 'Who says so: environment, previous, derived (the entry''s own numbers), user or task; NULL: nobody.';
COMMENT ON COLUMN entry_findings.message IS 'Message that says so; for previous the entry number of the previous summary.';
COMMENT ON COLUMN entry_findings.tool IS 'Tool of that output.';
COMMENT ON COLUMN entry_findings.decision IS 'What became of the entry; NULL until committed.';
COMMENT ON COLUMN entry_findings.reason IS 'Why.';
COMMENT ON COLUMN entry_findings.verdict IS 'Verdict that was used.';

DO $$
BEGIN
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    GRANT SELECT ON entry_findings TO winnow_reader, winnow_gateway, winnow_service;
    ALTER VIEW entry_findings OWNER TO winnow_view_owner;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
END
$$;
