-- Append-only tables, monthly partitions, and the two questions that a restricted role may ask of tables it cannot read.

CREATE FUNCTION winnow_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation',
        HINT = 'Add a row that follows the old one.';
END
$$;
COMMENT ON FUNCTION winnow_refuse_change() IS 'Trigger of append-only tables: refuses update, delete and truncate.';

CREATE TRIGGER operating_points_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON operating_points
    FOR EACH STATEMENT EXECUTE FUNCTION winnow_refuse_change();
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION winnow_refuse_change();

-- A partition is made apart and then attached: ATTACH shares the parent with readers and writers, PARTITION OF would lock them out.
-- It has row level security and no policy: a direct look at it shows nothing, whoever was granted what. There is no DEFAULT partition:
-- it would swallow rows of a month that is not there yet, and the month's partition could then not be attached any more.
CREATE FUNCTION winnow_ensure_partitions(any_day date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    first_day date := make_date(extract(year FROM any_day)::int, extract(month FROM any_day)::int, 1);
    next_day date := (first_day + interval '1 month')::date;
    parent text;
    child text;
    made integer := 0;
BEGIN
    -- One at a time in this database; the constant is arbitrary and Winnow's own.
    PERFORM pg_advisory_xact_lock(7166113001);
    FOR parent IN
        SELECT c.relname FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
        WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.relname
    LOOP
        child := format('%s_%s', parent, to_char(first_day, 'YYYY_MM'));
        CONTINUE WHEN to_regclass(format('public.%I', child)) IS NOT NULL;
        EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES '
            'INCLUDING STORAGE INCLUDING COMMENTS)', child, parent);
        EXECUTE format('COMMENT ON TABLE public.%I IS %L', child, format('Month %s of %s.', to_char(first_day, 'YYYY-MM'), parent));
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', child);
        EXECUTE format('ALTER TABLE public.%I FORCE ROW LEVEL SECURITY', child);
        EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)', parent, child,
            first_day::text || ' 00:00:00+00', next_day::text || ' 00:00:00+00');
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
COMMENT ON FUNCTION winnow_ensure_partitions(date) IS 'Creates the partitions of the (UTC) month of a day, where missing; returns how many.';

CREATE FUNCTION winnow_drop_partitions(before date, of_tables text[]) RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    child record;
    dropped text[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(7166113001);
    FOR child IN
        SELECT k.relname FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
        WHERE p.relnamespace = 'public'::regnamespace AND p.relkind = 'p' AND k.relkind = 'r' AND p.relname = ANY (of_tables)
            AND k.relname ~ '_[0-9]{4}_[0-9]{2}$'
            AND to_date(right(k.relname, 7), 'YYYY_MM') + interval '1 month' <= before
        ORDER BY k.relname
    LOOP
        EXECUTE format('DROP TABLE public.%I', child.relname);
        dropped := dropped || child.relname::text;
    END LOOP;
    RETURN dropped;
END
$$;
COMMENT ON FUNCTION winnow_drop_partitions(date, text[]) IS
    'Drops the partitions of the named tables that end on or before a day; returns their names. Locks the parents for a moment.';

-- The gateway learns the fleet from the key; before that, its role can read nothing at all.
CREATE FUNCTION winnow_verify_key(secret text, moment timestamptz)
RETURNS TABLE (key_id uuid, fleet text, name text, role text, created_at timestamptz, revoked_at timestamptz, last_used_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT k.key_id, k.fleet, k.name, k.role, k.created_at, k.revoked_at, k.last_used_at
        FROM public.api_keys k WHERE k.secret_sha256 = secret AND k.revoked_at IS NULL;
    IF FOUND THEN  -- once a minute, and never waiting for another request that does the same
        UPDATE public.api_keys a SET last_used_at = moment WHERE a.key_id = (
            SELECT k.key_id FROM public.api_keys k WHERE k.secret_sha256 = secret
                AND (k.last_used_at IS NULL OR k.last_used_at < moment - interval '1 minute') FOR UPDATE SKIP LOCKED);
    END IF;
END
$$;
COMMENT ON FUNCTION winnow_verify_key(text, timestamptz) IS 'The live API key with this hash of its secret; notes its use once a minute.';

REVOKE ALL ON FUNCTION winnow_ensure_partitions(date), winnow_drop_partitions(date, text[]), winnow_verify_key(text, timestamptz),
    winnow_refuse_change() FROM PUBLIC;
