"""What a storm throws at the pipeline: valid boundaries in runs, copies of them, and everything that is no boundary.

Pure: the same seed makes the same plan. Each record says what must become of it.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tests.benchmarks.boundaries import Factory, Sample
from winnow.contracts import limits
from winnow.contracts.events import ClaimCheck, JudgeId, Scores, sha256
from winnow.contracts.topics import CANDIDATE, EVIDENCE, OBSERVATION, RUNTIME, SCORES, Topic
from winnow.contracts.vocabulary import Outcome, Reason

FLEET = "storm"
#: Boundaries of a run.
RUN_LENGTH = 5
#: Share of valid records that come a second time, and of invalid records beside the valid ones.
DUPLICATES, INVALID = 0.10, 0.12

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One record to be sent, and what must become of it."""

    topic: Topic
    key: bytes | None
    value: bytes | None
    headers: Headers
    #: What it is, for messages.
    what: str
    #: Reason of the dead letter that it must become; None: it must be handled.
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All records in the order in which they are sent."""

    seed: int
    shots: tuple[Shot, ...]
    #: Valid boundaries by run, in order.
    runs: tuple[tuple[Sample, ...], ...]

    @property
    def samples(self) -> list[Sample]:
        """All valid boundaries."""
        return [sample for run in self.runs for sample in run]


def make(boundaries: int, seed: int) -> Plan:
    """Plan a storm: runs interleaved at random but each in order, copies somewhere behind their original, poison anywhere."""
    rng = random.Random(seed)
    factory = Factory.load(fleet=FLEET, seed=seed)
    runs = tuple(tuple(run) for run in factory.runs(boundaries, length=RUN_LENGTH))
    waiting = [list(run) for run in runs]
    sent: list[Sample] = []
    shots: list[Shot] = []
    poisons = _poisons()
    while waiting:
        run = rng.choice(waiting)
        sample = run.pop(0)
        if not run:
            waiting.remove(run)
        sent.append(sample)
        shots.append(_valid(sample, rng))
        if rng.random() < DUPLICATES:
            shots.append(replace(_valid(rng.choice(sent), rng), what="copy"))
        if rng.random() < INVALID:
            shots.append(next(poisons)(rng.choice(sent), rng))
    return Plan(seed=seed, shots=tuple(shots), runs=runs)


def _valid(sample: Sample, rng: random.Random) -> Shot:
    """Send a boundary the way that one producer or another would."""
    headers: Headers = tuple(sample.headers)
    ways: list[tuple[str, Headers, bytes]] = [
        ("boundary", headers, sample.body),
        ("boundary without headers", (), sample.body),
        ("boundary with a binary foreign header", (*headers, ("x-trace", b"\xff\x00\xfe"), ("", b"\xc3")), sample.body),
        ("boundary with a broken trace parent", (*headers, ("traceparent", b"\xff\xff")), sample.body),
        ("boundary with a field from the future", headers, b'{"from_the_future":{"a":[1]},' + sample.body[1:]),
    ]
    what, said, body = rng.choices(ways, weights=(8, 2, 2, 1, 1))[0]
    return Shot(topic=CANDIDATE, key=sample.key, value=body, headers=said, what=what)


Poison = Callable[[Sample, random.Random], Shot]


def _poisons() -> Iterator[Poison]:
    """Every kind in turn, for ever."""
    while True:
        yield from POISONS


def _candidate(what: str, value: bytes | None, reason: Reason) -> Poison:
    """A body that is no candidate, under the key and headers of one."""

    def make_shot(sample: Sample, rng: random.Random) -> Shot:
        return Shot(topic=CANDIDATE, key=sample.key, value=value, headers=tuple(sample.headers), what=what, reason=reason)

    return make_shot


def _changed(what: str, reason: Reason, **changes: object) -> Poison:
    """A candidate with fields that contradict it."""

    def make_shot(sample: Sample, rng: random.Random) -> Shot:
        body = json.loads(sample.body) | changes
        return Shot(
            topic=CANDIDATE, key=sample.key, value=json.dumps(body).encode(), headers=tuple(sample.headers), what=what, reason=reason
        )

    return make_shot


def _headed(what: str, **headers: bytes) -> Poison:
    """A valid body under headers that say something else."""

    def make_shot(sample: Sample, rng: random.Random) -> Shot:
        said = tuple((name, headers.get(name, value)) for name, value in sample.headers)
        return Shot(topic=CANDIDATE, key=sample.key, value=sample.body, headers=said, what=what, reason=Reason.BAD_HEADERS)

    return make_shot


def _keyed(what: str, key: bytes | None) -> Poison:
    """A valid body under another key."""

    def make_shot(sample: Sample, rng: random.Random) -> Shot:
        return Shot(topic=CANDIDATE, key=key, value=sample.body, headers=tuple(sample.headers), what=what, reason=Reason.KEY_MISMATCH)

    return make_shot


def _conflict(sample: Sample, rng: random.Random) -> Shot:
    """Other content under an id that is known: behind the original under the same key, so that it comes second everywhere."""
    body = json.loads(sample.body) | {"boundary_id": str(sample.event.boundary_id), "task": f"another task {rng.random()}"}
    return Shot(topic=CANDIDATE, key=sample.key, value=json.dumps(body).encode(), headers=(), what="id conflict", reason=Reason.ID_CONFLICT)


def _oversize(sample: Sample, rng: random.Random) -> Shot:
    """As large as the topic takes: 600 KiB above the largest body that a producer of ours sends."""
    body = b'{"fleet":"storm","padding":"' + b"x" * (limits.CANDIDATE_BODY_BYTES + 600 * limits.KIB) + b'"}'
    return Shot(topic=CANDIDATE, key=sample.key, value=body, headers=(), what="oversize body", reason=Reason.INVALID)


def _lost_claim(sample: Sample, rng: random.Random) -> Shot:
    """A claim check for something that was never stored."""
    claim = ClaimCheck(fleet=FLEET, handle=f"{rng.getrandbits(128):032x}", sha256=sha256(b"lost"), size=4)
    headers = (*sample.headers, ("winnow_claim", b"1"))
    return Shot(
        topic=CANDIDATE,
        key=sample.key,
        value=claim.model_dump_json().encode(),
        headers=headers,
        what="lost claim",
        reason=Reason.CLAIM_LOST,
    )


def _unknown_scores(sample: Sample, rng: random.Random) -> Shot:
    """Scores of a boundary that nobody ever submitted."""
    event = Scores(
        fleet=FLEET,
        run=sample.event.run,
        boundary_id=UUID(int=rng.getrandbits(128)),
        request_sha256=sha256("nothing"),
        candidate_sha256=sha256("nothing"),
        operating_point=1,
        judge=JudgeId(name="local", version="1"),
        outcome=Outcome.JUDGED,
    )
    body = event.model_dump_json().encode()
    return Shot(topic=SCORES, key=event.key.encode(), value=body, headers=(), what="unknown scores", reason=Reason.UNKNOWN_BOUNDARY)


def _elsewhere(topic: Topic, what: str, value: bytes | None, reason: Reason) -> Poison:
    """Rubbish on a topic of another stage."""

    def make_shot(sample: Sample, rng: random.Random) -> Shot:
        return Shot(topic=topic, key=sample.key, value=value, headers=(), what=what, reason=reason)

    return make_shot


POISONS: tuple[Poison, ...] = (
    _candidate("not JSON", b"{bad", Reason.INVALID),
    _candidate("tombstone", None, Reason.TOMBSTONE),
    _conflict,
    _headed("known header that is not UTF-8", ce_id=b"\xff\xfe"),
    _oversize,
    _candidate("empty body", b"", Reason.TOMBSTONE),
    _keyed("wrong key", b"storm/another-run"),
    _changed("hash mismatch", Reason.HASH_MISMATCH, candidate_sha256="0" * 64),
    _headed("type of another topic", ce_type=SCORES.event_type.encode()),
    _lost_claim,
    _unknown_scores,
    _candidate("binary body", bytes(range(256)) * 4, Reason.INVALID),
    _elsewhere(EVIDENCE, "rubbish among evidence", b"\x00\x01", Reason.INVALID),
    _changed("no number", Reason.INVALID, index="many"),
    _candidate("half a surrogate", b'{"fleet":"storm","run":"r","index":1,"candidate":"\\ud800"}', Reason.INVALID),
    _elsewhere(RUNTIME, "rubbish among runtime events", b"[]", Reason.INVALID),
    _keyed("no key", None),
    _candidate("nesting without end", b"[" * 100_000, Reason.INVALID),
    _elsewhere(OBSERVATION, "tombstone among observations", None, Reason.TOMBSTONE),
    _changed("summary above its limit", Reason.TOO_LARGE, candidate="x" * (limits.SUMMARY_BYTES + 1), candidate_sha256=None),
    _elsewhere(SCORES, "tombstone among scores", None, Reason.TOMBSTONE),
)


def kinds(shots: Sequence[Shot]) -> dict[str, int]:
    """Count records by what they are."""
    counts: dict[str, int] = {}
    for shot in shots:
        counts[shot.what] = counts.get(shot.what, 0) + 1
    return counts
