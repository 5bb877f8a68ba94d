"""What the monitor did, as metrics and log lines, after its transaction has ended."""

from collections.abc import Sequence

from winnow.assurance.ledger import Fate
from winnow.contracts.events import Alert, RuntimeEvent
from winnow.contracts.vocabulary import AlertKind
from winnow.storage.closing import Closed
from winnow.storage.folding import Report
from winnow.telemetry.telemetry import Telemetry


class Teller:
    """Counts and logs. No stream, fleet or run is a label."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._metrics = telemetry.metrics
        self._log = telemetry.log

    def runtime(self, events: Sequence[RuntimeEvent], *, missed: int = 0) -> None:
        """Runtime events that were stored; `missed` of them report a recovery by a handle that their fleet does not have."""
        for event in events:
            self._metrics.count("winnow_runtime_events_total", kind=event.kind.value)
        if missed:
            self._metrics.count("winnow_recoveries_total", missed, via="runtime", result="not_found")

    def folded(self, report: Report, *, seconds: float, late: int = 0, duplicates: int = 0) -> None:
        """A transaction that folded."""
        self._metrics.observe("winnow_fold_seconds", seconds)
        for fate in (Fate.FOLDED, Fate.MISSING, Fate.REFUSED):
            if report.fates[fate]:
                self._metrics.count("winnow_units_total", report.fates[fate], fate=fate.value)
        for what, units in ((Fate.LATE.value, late), ("duplicate", duplicates)):
            if units:
                self._metrics.count("winnow_units_total", units, fate=what)
        self.alerts(report.alerts)

    def closed(self, closed: Closed) -> None:
        """Runs that became units."""
        for because, runs in closed.because.items():
            self._metrics.count("winnow_runs_closed_total", runs, because=because)

    def alerts(self, alerts: Sequence[Alert]) -> None:
        """Alerts that were raised."""
        for alert in alerts:
            self._metrics.count("winnow_alerts_total", kind=alert.kind.value)
            if alert.kind is AlertKind.HELD:
                self._log.warning("fleet_held", fleet=alert.fleet, alert=str(alert.alert_id))
            elif alert.kind is AlertKind.RELEASED:
                self._log.warning("fleet_released", fleet=alert.fleet, alert=str(alert.alert_id))
            elif alert.kind is AlertKind.RAISED:
                guarantee = alert.guarantee.value if alert.guarantee else ""
                self._log.warning("alert_raised", fleet=alert.fleet, stream=alert.stream, guarantee=guarantee, alert=str(alert.alert_id))
