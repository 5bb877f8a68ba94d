-- Who sees what. Four roles of the cluster, none of which can log in:
--   winnow_service     the pipeline and the operator's commands: all rows of all tables
--   winnow_gateway     one fleet a transaction, named by set_config('winnow.fleet', ..., true)
--   winnow_view_owner  owns the views and no table, has no BYPASSRLS; its policies ask who is looking
--   winnow_reader      may select from the views; each login role of a fleet is a member
-- Roles are the cluster's, so another database of it may have made them already.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['winnow_service', 'winnow_gateway', 'winnow_view_owner', 'winnow_reader'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', wanted);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- made before, or by a migration of another database at this moment
        END;
    END LOOP;
    -- A superuser may do all of this unasked. Any other owner needs to be a member: of winnow_service to pass the policies of its own
    -- tables (they are forced), of winnow_gateway to change into it, of winnow_view_owner to give views to it. From PostgreSQL 16 on,
    -- who creates a role may administer it but neither inherits from it nor changes into it, until it says so.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOREACH wanted IN ARRAY ARRAY['winnow_service', 'winnow_gateway', 'winnow_view_owner'] LOOP
            IF current_setting('server_version_num')::int >= 160000 THEN
                EXECUTE format('GRANT %I TO CURRENT_USER WITH INHERIT %s, SET TRUE', wanted, CASE wanted WHEN 'winnow_service' THEN 'TRUE' ELSE 'FALSE' END);
            ELSE
                EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
            END IF;
        END LOOP;
    END IF;
END
$$;

GRANT USAGE ON SCHEMA public TO winnow_service, winnow_gateway, winnow_view_owner, winnow_reader;

-- The service sees and changes everything, row level security or not.
DO $$
DECLARE
    t text;
BEGIN
    FOR t IN
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'alembic_version'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO winnow_service', t);
        EXECUTE format('CREATE POLICY service ON %I TO winnow_service USING (true) WITH CHECK (true)', t);
    END LOOP;
END
$$;
GRANT SELECT ON alembic_version TO winnow_service, winnow_gateway;

-- The gateway: the fleet of the transaction, nothing without one.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['fleets', 'operating_points', 'runs', 'boundaries', 'entries', 'evidence_passages', 'entry_evidence', 'scores',
        'decisions', 'judge_calls', 'stage_outputs', 'originals', 'handles', 'recoveries', 'runtime_events', 'outbox', 'streams',
        'observations', 'monitor_states', 'alerts', 'certificates']
    LOOP
        EXECUTE format('GRANT SELECT ON %I TO winnow_gateway', t);
        EXECUTE format('CREATE POLICY gateway ON %I TO winnow_gateway USING (fleet = current_setting(''winnow.fleet'', true)) '
            'WITH CHECK (fleet = current_setting(''winnow.fleet'', true))', t);
    END LOOP;
END
$$;
GRANT INSERT ON boundaries, runs, originals, handles, recoveries, outbox TO winnow_gateway;
GRANT UPDATE (agent, host, boundaries, first_at, last_at) ON runs TO winnow_gateway;
GRANT UPDATE (touched_at) ON originals TO winnow_gateway;

-- The views: whoever looks through them is `current_user`; the rows are read with the rights of winnow_view_owner. The sub-select is one
-- look-up a query, not one a row. A custom setting decides for the gateway alone: every reader can SET it, and nothing comes of it.
GRANT SELECT ON fleets, reader_roles, runs, boundaries, entries, evidence_passages, entry_evidence, scores, decisions, judge_calls, streams,
    monitor_states, alerts, runtime_events TO winnow_view_owner;
CREATE POLICY looker ON reader_roles FOR SELECT TO winnow_view_owner USING (role = current_user::text);
CREATE POLICY looker ON fleets FOR SELECT TO winnow_view_owner USING (
    (SELECT pg_has_role(current_user, 'winnow_service', 'USAGE'))
    OR fleet = (SELECT r.fleet FROM reader_roles r WHERE r.role = current_user::text)
    OR (current_user = 'winnow_gateway' AND fleet = current_setting('winnow.fleet', true)));
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['runs', 'boundaries', 'entries', 'evidence_passages', 'entry_evidence', 'scores', 'decisions', 'judge_calls',
        'streams', 'monitor_states', 'alerts', 'runtime_events']
    LOOP
        EXECUTE format('CREATE POLICY looker ON %I FOR SELECT TO winnow_view_owner USING (fleet = ANY (ARRAY(SELECT f.fleet FROM fleets f)))', t);
    END LOOP;
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    FOR t IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
        AND c.relname IN ('boundary_history', 'entry_history', 'unsupported_by_section', 'unsupported_by_boundary', 'entry_persistence',
            'fleet_daily', 'stream_status', 'judge_cost_daily')
    LOOP
        EXECUTE format('GRANT SELECT ON %I TO winnow_reader, winnow_gateway, winnow_service', t);
        EXECUTE format('ALTER VIEW %I OWNER TO winnow_view_owner', t);
    END LOOP;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
END
$$;

GRANT EXECUTE ON FUNCTION winnow_ensure_partitions(date), winnow_drop_partitions(date, text[]), winnow_verify_key(text, timestamptz)
    TO winnow_service;
-- Partitions are made for the anchor times that a boundary's first insert settles, and that is often the gateway's.
GRANT EXECUTE ON FUNCTION winnow_verify_key(text, timestamptz), winnow_ensure_partitions(date) TO winnow_gateway;
