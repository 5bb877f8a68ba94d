"""The events of Winnow, one module each."""

from winnow.contracts.events.alert import Alert, Attribution
from winnow.contracts.events.base import BoundaryRef, ClaimCheck, Event, JudgeId, Model, Text, sha256
from winnow.contracts.events.candidate import Candidate, Message, Messages
from winnow.contracts.events.committed import Committed, EntryDecision
from winnow.contracts.events.evidence import Canary, Entry, EntryEvidence, Evidence, Finding, Passage, ValueOrigin
from winnow.contracts.events.observation import Graded, Observation, Sampled
from winnow.contracts.events.runtime import RuntimeEvent
from winnow.contracts.events.scores import CanaryScore, Score, Scores

__all__ = [
    "Alert",
    "Attribution",
    "BoundaryRef",
    "Canary",
    "CanaryScore",
    "Candidate",
    "ClaimCheck",
    "Committed",
    "Entry",
    "EntryDecision",
    "EntryEvidence",
    "Event",
    "Evidence",
    "Finding",
    "Graded",
    "JudgeId",
    "Message",
    "Messages",
    "Model",
    "Observation",
    "Passage",
    "RuntimeEvent",
    "Sampled",
    "Score",
    "Scores",
    "Text",
    "ValueOrigin",
    "sha256",
]
