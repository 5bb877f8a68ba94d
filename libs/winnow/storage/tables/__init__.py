"""The tables as SQLAlchemy knows them; the migration suite compares them with a migrated database."""

from winnow.storage.tables.assurance import (
    alerts,
    certificates,
    monitor_epochs,
    monitor_heartbeats,
    monitor_states,
    observation_keys,
    observations,
    streams,
)
from winnow.storage.tables.base import metadata
from winnow.storage.tables.boundaries import (
    boundaries,
    decisions,
    entries,
    entry_evidence,
    evidence_passages,
    judge_calls,
    runs,
    scores,
    stage_outputs,
)
from winnow.storage.tables.delivery import dead_letters, locks, outbox, runtime_events
from winnow.storage.tables.fleets import api_keys, audit_log, fleets, operating_points, reader_roles
from winnow.storage.tables.originals import canary_donors, handles, originals, pinned_entries, recoveries
from winnow.storage.tables.watching import fleet_activity, open_runs, prune_profiles, run_units, webhook_deliveries

__all__ = [
    "alerts",
    "api_keys",
    "audit_log",
    "boundaries",
    "canary_donors",
    "certificates",
    "dead_letters",
    "decisions",
    "entries",
    "entry_evidence",
    "evidence_passages",
    "fleet_activity",
    "fleets",
    "handles",
    "judge_calls",
    "locks",
    "metadata",
    "monitor_epochs",
    "monitor_heartbeats",
    "monitor_states",
    "observation_keys",
    "observations",
    "open_runs",
    "operating_points",
    "originals",
    "outbox",
    "pinned_entries",
    "prune_profiles",
    "reader_roles",
    "recoveries",
    "run_units",
    "runs",
    "runtime_events",
    "scores",
    "stage_outputs",
    "streams",
    "webhook_deliveries",
]
