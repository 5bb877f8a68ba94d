-- How a boundary had to be cut to fit a remote judge: part of what its scores rest on.
ALTER TABLE judge_calls ADD COLUMN parts integer, ADD COLUMN state_stage text, ADD COLUMN evidence_truncated boolean;
COMMENT ON COLUMN judge_calls.parts IS 'Requests that the boundary was split into, without retries; NULL for a judge that sends none.';
COMMENT ON COLUMN judge_calls.state_stage IS 'How far the furthest of them was shrunk: whole, split, evidence_trimmed, retained_abridged, previous_abridged; NULL for a judge that sends none.';
COMMENT ON COLUMN judge_calls.evidence_truncated IS 'Evidence was left out of one of them.';

-- Partitions that are there already have the columns now, but not what they mean; later ones copy it.
DO $$
DECLARE
    child regclass;
    what text;
BEGIN
    FOR child IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'judge_calls'::regclass LOOP
        FOREACH what IN ARRAY ARRAY['parts', 'state_stage', 'evidence_truncated'] LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', child, what, col_description('judge_calls'::regclass,
                (SELECT attnum FROM pg_attribute WHERE attrelid = 'judge_calls'::regclass AND attname = what)));
        END LOOP;
    END LOOP;
END
$$;
