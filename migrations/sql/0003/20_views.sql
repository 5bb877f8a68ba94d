-- What an SQL reader sees of epochs and closed runs, and who may touch the new tables.

CREATE VIEW stream_epochs WITH (security_barrier = true) AS
SELECT e.fleet, e.stream, s.family, s.position, e.epoch, e.from_seq, e.config, e.missing, e.signature, e.error_share, e.started_at, e.because,
    e.alarm_seq, e.alarm_at, e.alarm_rule, e.alarm_level, e.alarm_evidence, e.alert_id
FROM monitor_epochs e JOIN streams s ON s.fleet = e.fleet AND s.stream = e.stream;
COMMENT ON VIEW stream_epochs IS 'One row an epoch of a stream: its terms, what it may spend of the error budget, and its alarm.';
COMMENT ON COLUMN stream_epochs.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN stream_epochs.stream IS 'The stream.';
COMMENT ON COLUMN stream_epochs.family IS 'Streams that share an error budget: risk or label_free.';
COMMENT ON COLUMN stream_epochs.position IS 'Place in the order in which the family''s streams were first folded, from 1.';
COMMENT ON COLUMN stream_epochs.epoch IS 'Number of the epoch, from 1.';
COMMENT ON COLUMN stream_epochs.from_seq IS 'First sequence number that belongs to it.';
COMMENT ON COLUMN stream_epochs.config IS 'Parameters of the monitor: alpha, delta, lo, mode, method, weight and the rest.';
COMMENT ON COLUMN stream_epochs.missing IS 'What becomes of a unit that is not graded in time: fold or skip.';
COMMENT ON COLUMN stream_epochs.signature IS 'What its units have in common: operating point, compressor, grader.';
COMMENT ON COLUMN stream_epochs.error_share IS 'Chance of a false alarm that this epoch may spend of its family''s budget.';
COMMENT ON COLUMN stream_epochs.started_at IS 'When it was opened.';
COMMENT ON COLUMN stream_epochs.because IS 'Why it was opened, in plain words.';
COMMENT ON COLUMN stream_epochs.alarm_seq IS 'Last sequence number folded before an alarm froze it; NULL: none.';
COMMENT ON COLUMN stream_epochs.alarm_at IS 'When it alarmed.';
COMMENT ON COLUMN stream_epochs.alarm_rule IS 'Which level was reached: own, e-bh or fleet.';
COMMENT ON COLUMN stream_epochs.alarm_level IS 'Evidence that was enough for it.';
COMMENT ON COLUMN stream_epochs.alarm_evidence IS 'Natural log of the evidence then.';
COMMENT ON COLUMN stream_epochs.alert_id IS 'The alert that told of it.';

CREATE VIEW run_outcomes WITH (security_barrier = true) AS
SELECT u.fleet, u.run, u.closed_at, u.because, u.boundaries, u.boundary_id, u.probability, u.unjudged, u.fallback, u.recovered,
    CASE WHEN u.recovered IS NULL THEN 'not_observable' WHEN u.recovered THEN 'recovered' ELSE 'not_recovered' END AS recovery
FROM run_units u;
COMMENT ON VIEW run_outcomes IS 'One row a closed run: the boundary that a coin picked, and whether it was judged, judged by another, and asked back.';
COMMENT ON COLUMN run_outcomes.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN run_outcomes.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN run_outcomes.closed_at IS 'When it was closed.';
COMMENT ON COLUMN run_outcomes.because IS 'run_ended or idle.';
COMMENT ON COLUMN run_outcomes.boundaries IS 'Committed boundaries that it had.';
COMMENT ON COLUMN run_outcomes.boundary_id IS 'The boundary that the coin picked; NULL: there was none.';
COMMENT ON COLUMN run_outcomes.probability IS 'Probability with which it was picked.';
COMMENT ON COLUMN run_outcomes.unjudged IS 'It was not judged.';
COMMENT ON COLUMN run_outcomes.fallback IS 'Another judge answered than the one that should have, or the runtime went past Winnow.';
COMMENT ON COLUMN run_outcomes.recovered IS 'The agent asked back something of it; NULL: not observable.';
COMMENT ON COLUMN run_outcomes.recovery IS 'recovered, not_recovered, or not_observable: the runtime did not say that the agent can ask back.';

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['monitor_epochs', 'open_runs', 'run_units', 'fleet_activity', 'prune_profiles',
        'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO winnow_service', t);
        EXECUTE format('CREATE POLICY service ON %I TO winnow_service USING (true) WITH CHECK (true)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['monitor_epochs', 'run_units'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO winnow_gateway, winnow_view_owner', t);
        EXECUTE format('CREATE POLICY gateway ON %I TO winnow_gateway USING (fleet = current_setting(''winnow.fleet'', true)) '
            'WITH CHECK (fleet = current_setting(''winnow.fleet'', true))', t);
        EXECUTE format('CREATE POLICY looker ON %I FOR SELECT TO winnow_view_owner USING (fleet = ANY (ARRAY(SELECT f.fleet FROM fleets f)))', t);
    END LOOP;
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    FOREACH t IN ARRAY ARRAY['stream_epochs', 'run_outcomes'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO winnow_reader, winnow_gateway, winnow_service', t);
        EXECUTE format('ALTER VIEW %I OWNER TO winnow_view_owner', t);
    END LOOP;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
END
$$;
