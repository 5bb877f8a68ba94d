-- Keys that expire, that replace one another, and, for operators and auditors, that cover several fleets.

ALTER TABLE api_keys ADD COLUMN also text[] NOT NULL DEFAULT '{}';
ALTER TABLE api_keys ADD COLUMN expires_at timestamptz;
ALTER TABLE api_keys ADD COLUMN replaces uuid;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_also CHECK (cardinality(also) = 0 OR role IN ('operator', 'auditor'));
COMMENT ON TABLE api_keys IS 'API keys of the gateway, hashed. A key of a runtime or a grader covers one fleet.';
COMMENT ON COLUMN api_keys.fleet IS 'The tenant''s fleet of agents; the one that is meant where a request names none.';
COMMENT ON COLUMN api_keys.also IS 'Further fleets, of operators and auditors only; a request names which one it means.';
COMMENT ON COLUMN api_keys.role IS 'What it may do: runtime, grader, auditor or operator.';
COMMENT ON COLUMN api_keys.expires_at IS 'From when on it is refused; NULL: it does not expire.';
COMMENT ON COLUMN api_keys.replaces IS 'The key that this one was made to replace; both work until that one expires.';

DROP FUNCTION winnow_verify_key(text, timestamptz);
CREATE FUNCTION winnow_verify_key(secret text, moment timestamptz)
RETURNS TABLE (key_id uuid, fleet text, also text[], name text, role text, created_at timestamptz, expires_at timestamptz,
    revoked_at timestamptz, last_used_at timestamptz, replaces uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT k.key_id, k.fleet, k.also, k.name, k.role, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.replaces
        FROM public.api_keys k
        WHERE k.secret_sha256 = secret AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > moment);
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
