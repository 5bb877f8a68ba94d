-- Removes what this revision made. Roles belong to the cluster: one that another database still uses stays, with a notice.

DROP VIEW IF EXISTS boundary_history, entry_history, unsupported_by_section, unsupported_by_boundary, entry_persistence, fleet_daily,
    stream_status, judge_cost_daily;

-- The names of the readers, before their table goes.
CREATE TEMPORARY TABLE winnow_down_roles ON COMMIT DROP AS SELECT role FROM reader_roles;

DROP TABLE IF EXISTS monitor_states, monitor_heartbeats, observations, observation_keys, alerts, certificates, streams,
    runtime_events, outbox, dead_letters, recoveries, handles, originals,
    stage_outputs, judge_calls, decisions, scores, entry_evidence, evidence_passages, entries, boundaries, runs,
    audit_log, reader_roles, api_keys, operating_points, fleets;
DROP FUNCTION IF EXISTS winnow_refuse_change(), winnow_ensure_partitions(date), winnow_drop_partitions(date, text[]),
    winnow_verify_key(text, timestamptz);

DO $$
DECLARE
    gone text;
BEGIN
    REVOKE ALL ON alembic_version FROM winnow_service, winnow_gateway;
    REVOKE ALL ON SCHEMA public FROM winnow_service, winnow_gateway, winnow_view_owner, winnow_reader;
    FOR gone IN
        SELECT role FROM winnow_down_roles UNION ALL
        SELECT unnest(ARRAY['winnow_reader', 'winnow_view_owner', 'winnow_gateway', 'winnow_service'])
    LOOP
        BEGIN
            EXECUTE format('DROP ROLE IF EXISTS %I', gone);
        EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege OR object_in_use THEN
            RAISE NOTICE 'role % is still used and stays', gone;
        END;
    END LOOP;
END
$$;
