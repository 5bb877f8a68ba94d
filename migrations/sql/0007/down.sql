-- Back to recoveries of whole originals.
DROP VIEW recovery_history;
DROP POLICY looker ON recoveries;
REVOKE SELECT ON recoveries FROM winnow_view_owner;
DROP TABLE pinned_entries;
DROP TABLE canary_donors;
COMMENT ON COLUMN decisions.reason IS 'score, pinned, scaffold, unscored, user_sourced, inherited_unsourced, stale or not_judged.';
ALTER TABLE runtime_events DROP COLUMN part;
DROP INDEX recoveries_given;
ALTER TABLE recoveries DROP COLUMN part, DROP COLUMN bytes, DROP COLUMN given_key, DROP COLUMN source;
COMMENT ON TABLE recoveries IS 'Originals that were given back, and to whom.';
