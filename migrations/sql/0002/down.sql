-- Back to advisory locks.

DO $$
DECLARE
    of_partitions oid;
BEGIN
    FOREACH of_partitions IN ARRAY ARRAY['winnow_ensure_partitions(date)'::regprocedure, 'winnow_drop_partitions(date, text[])'::regprocedure] LOOP
        EXECUTE replace(
            replace(pg_get_functiondef(of_partitions), 'in this database.', 'in this database; the constant is arbitrary and Winnow''s own.'),
            'PERFORM FROM public.locks WHERE name = ''partitions'' FOR UPDATE;', 'PERFORM pg_advisory_xact_lock(7166113001);');
    END LOOP;
END
$$;
DROP TABLE locks;
