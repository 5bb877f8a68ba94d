-- Back to a gateway that knows no dead letters.
DROP POLICY gateway ON audit_log;
REVOKE INSERT ON audit_log FROM winnow_gateway;
DROP POLICY gateway ON monitor_heartbeats;
DROP POLICY gateway ON dead_letters;
REVOKE UPDATE (replayed_at, replays) ON dead_letters FROM winnow_gateway;
REVOKE SELECT ON dead_letters, monitor_heartbeats FROM winnow_gateway;
