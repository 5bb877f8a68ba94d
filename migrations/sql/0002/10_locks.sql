-- Locks that only the pipeline can take. Advisory locks are open to every login of the database: an SQL reader that held the relay's kept
-- the outbox of all fleets from being published, and one that held the partitions' stopped the gateway at the turn of a month.

CREATE TABLE locks (
    name text NOT NULL,
    CONSTRAINT locks_pkey PRIMARY KEY (name)
);
COMMENT ON TABLE locks IS 'One row for each thing that one process does at a time; whoever does it locks the row until its transaction ends.';
COMMENT ON COLUMN locks.name IS 'What is done: relay, partitions, retention.';
INSERT INTO locks (name) VALUES ('relay'), ('partitions'), ('retention');

ALTER TABLE locks ENABLE ROW LEVEL SECURITY;
ALTER TABLE locks FORCE ROW LEVEL SECURITY;
-- Locking a row takes the right to update it; nobody has the right to remove one.
GRANT SELECT, UPDATE ON locks TO winnow_service;
CREATE POLICY service ON locks TO winnow_service USING (true) WITH CHECK (true);

DO $$
DECLARE
    of_partitions oid;
BEGIN
    FOREACH of_partitions IN ARRAY ARRAY['winnow_ensure_partitions(date)'::regprocedure, 'winnow_drop_partitions(date, text[])'::regprocedure] LOOP
        EXECUTE replace(
            replace(pg_get_functiondef(of_partitions), '; the constant is arbitrary and Winnow''s own.', '.'),
            'PERFORM pg_advisory_xact_lock(7166113001);', 'PERFORM FROM public.locks WHERE name = ''partitions'' FOR UPDATE;');
    END LOOP;
END
$$;
