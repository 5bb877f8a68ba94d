-- The audit trail: who acted, how it ended, and no role of Winnow that could rewrite it.

ALTER TABLE audit_log ADD COLUMN outcome text NOT NULL DEFAULT 'done';
COMMENT ON COLUMN audit_log.actor IS 'Who did it: <role>:<id of the API key>, cli:<user of the operating system>, or a service.';
COMMENT ON COLUMN audit_log.outcome IS 'done; or failed: it was asked for and took no effect, details say why.';

-- The trigger of revision 0001 refuses changes whoever asks; these roles may not even ask.
REVOKE UPDATE, DELETE ON audit_log FROM winnow_service;

GRANT SELECT ON audit_log TO winnow_view_owner;
CREATE POLICY looker ON audit_log FOR SELECT TO winnow_view_owner USING (
    (SELECT pg_has_role(current_user, 'winnow_service', 'USAGE')) OR fleet = ANY (ARRAY(SELECT f.fleet FROM fleets f)));

CREATE VIEW audit_trail WITH (security_barrier = true) AS
SELECT a.id, a.at, a.fleet, a.action, a.actor, a.because, a.outcome, a.details FROM audit_log a;
COMMENT ON VIEW audit_trail IS 'One row an action of an operator: who did what, when, why, and how it ended. Fleets are seen as in every view.';
COMMENT ON COLUMN audit_trail.id IS 'Number of the entry; it only grows.';
COMMENT ON COLUMN audit_trail.at IS 'When.';
COMMENT ON COLUMN audit_trail.fleet IS 'The fleet concerned; NULL: the installation, which only the pipeline''s role sees.';
COMMENT ON COLUMN audit_trail.action IS 'What was done, for example fleet.hold or erase.run.';
COMMENT ON COLUMN audit_trail.actor IS 'Who did it: <role>:<id of the API key>, cli:<user of the operating system>, or a service.';
COMMENT ON COLUMN audit_trail.because IS 'Why, in the words of who did it.';
COMMENT ON COLUMN audit_trail.outcome IS 'done; or failed: it was asked for and took no effect, details say why.';
COMMENT ON COLUMN audit_trail.details IS 'Counts and settings of the action.';

DO $$
BEGIN
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    GRANT SELECT ON audit_trail TO winnow_reader, winnow_gateway, winnow_service;
    ALTER VIEW audit_trail OWNER TO winnow_view_owner;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
END
$$;
