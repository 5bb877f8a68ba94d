-- Back to a monitor that stores and does not fold. Views of revision 0001 do not use what goes.

DROP VIEW run_outcomes, stream_epochs;
DROP TABLE webhook_deliveries, prune_profiles, fleet_activity, run_units, open_runs, monitor_epochs;
DELETE FROM locks WHERE name = 'families';
COMMENT ON COLUMN locks.name IS 'What is done: relay, partitions, retention.';
ALTER TABLE alerts DROP COLUMN details, DROP COLUMN guarantee;
COMMENT ON COLUMN alerts.kind IS 'raised, held, released, certificate_revoked, judge_unpaid or judge_unauthorised.';
ALTER TABLE runtime_events DROP COLUMN recovery_tool;
ALTER TABLE boundaries DROP COLUMN watched_at;
ALTER TABLE monitor_states DROP COLUMN recertification, DROP COLUMN due_at, DROP COLUMN late, DROP COLUMN refused, DROP COLUMN missing,
    DROP COLUMN folded;
COMMENT ON COLUMN monitor_states.last_seq IS 'Last sequence number folded.';
ALTER TABLE observations DROP COLUMN epoch;
COMMENT ON COLUMN observations.fate IS 'folded, late or missing; NULL: not decided yet.';
ALTER TABLE streams DROP CONSTRAINT streams_position, DROP COLUMN position, DROP COLUMN family;
