-- Back to keys of one fleet that do not expire. Keys of auditors go: the revision before knows no such role, and would let them write.
DROP VIEW audit_trail;
DROP POLICY looker ON audit_log;
REVOKE SELECT ON audit_log FROM winnow_view_owner;
GRANT UPDATE, DELETE ON audit_log TO winnow_service;
COMMENT ON COLUMN audit_log.actor IS 'Who did it: a person, a key or a service.';
ALTER TABLE audit_log DROP COLUMN outcome;

DELETE FROM api_keys WHERE role = 'auditor' OR expires_at IS NOT NULL;
DROP FUNCTION winnow_verify_key(text, timestamptz);
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
REVOKE ALL ON FUNCTION winnow_verify_key(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION winnow_verify_key(text, timestamptz) TO winnow_service, winnow_gateway;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_also;
ALTER TABLE api_keys DROP COLUMN replaces;
ALTER TABLE api_keys DROP COLUMN expires_at;
ALTER TABLE api_keys DROP COLUMN also;
COMMENT ON TABLE api_keys IS 'API keys of the gateway, hashed. A key belongs to one fleet.';
COMMENT ON COLUMN api_keys.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN api_keys.role IS 'What it may do: runtime, grader or operator.';
