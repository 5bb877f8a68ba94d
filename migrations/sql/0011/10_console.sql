-- What the console shows and does in the gateway's role: dead letters of the fleet, their replay, and whether anybody watches.

GRANT SELECT ON dead_letters, monitor_heartbeats TO winnow_gateway;
GRANT UPDATE (replayed_at, replays) ON dead_letters TO winnow_gateway;
CREATE POLICY gateway ON dead_letters TO winnow_gateway USING (fleet = current_setting('winnow.fleet', true))
    WITH CHECK (fleet = current_setting('winnow.fleet', true));
-- Monitors belong to no fleet; that one is alive is no tenant's secret.
CREATE POLICY gateway ON monitor_heartbeats FOR SELECT TO winnow_gateway USING (true);
-- Who replayed what is written in the transaction that does it. The gateway may add to the trail, and read it through the view alone.
GRANT INSERT ON audit_log TO winnow_gateway;
CREATE POLICY gateway ON audit_log FOR INSERT TO winnow_gateway WITH CHECK (fleet = current_setting('winnow.fleet', true));
