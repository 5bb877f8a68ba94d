ALTER TABLE judge_calls DROP COLUMN parts, DROP COLUMN state_stage, DROP COLUMN evidence_truncated;
