-- Back to entries without findings.
DROP VIEW entry_findings;
COMMENT ON COLUMN decisions.reason IS 'score, pinned, scaffold, unscored, user_sourced, inherited_unsourced or not_judged.';
ALTER TABLE scores DROP COLUMN flags;
ALTER TABLE entries DROP COLUMN findings;
ALTER TABLE operating_points DROP COLUMN prune_stale;
