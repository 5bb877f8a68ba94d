"""`winnow rejudge --pipeline`: stored boundaries through a whole pipeline of their own, and what it made of them beside what was committed.

The other pipeline is a Winnow of its own: another database, another broker (or, on one's own broker, topics under a prefix of their own),
its own gateway, retriever, judge and pruner. It has no webhook, nobody asks it but this command, and the database that is read is only
read: nothing reaches an agent or an operator.

What happened is played again as it happened. Boundaries go in fleet by fleet in the order in which they were committed, one of a run at a
time, under the operating point that they were judged under; and before a run's next boundary comes, its copy is told which text the agent
really carried on. So a change in one boundary does not make its children strangers to it.
"""

import asyncio
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winnow.cli.differences import Difference, Summary, compare, left_out
from winnow.cli.endpoints import Endpoints
from winnow.cli.evaluating import Progress
from winnow.client.http import HttpTransport
from winnow.client.result import Unheard
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Conflict, Permanent, WinnowError
from winnow.contracts.vocabulary import Mode
from winnow.storage import api_keys, audit, fleets, reruns
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.storage.rejudging import Where
from winnow.storage.reruns import Item, NotAgain

#: Boundaries that are under way at once: each of another run.
WAVE = 32
#: Seconds that one boundary may take, a remote judge and its retries included.
BOUNDARY_S = 120.0
#: In the work folder: what this rerun is, and a line for each boundary that was compared.
PLAN, RESULTS = "rerun.json", "results.jsonl"
#: Variables of Winnow that the other pipeline is given; of the rest it knows nothing, above all no webhook, broker or database.
GIVEN = ("WINNOW_JUDGES", "WINNOW_FALLBACK_JUDGE", "WINNOW_CACHE_DIR", "WINNOW_LOG_LEVEL")
#: Why the rest of a run is left out: without its parent, a boundary rests on a text that the copy does not know.
ORPHANED = "an earlier boundary of its run could not be run again"
#: Fleet that a copy has of itself.
FLEET = "rerun"
#: Action of the audit row that marks a database as a rerun's.
MARK = "rerun.begin"


class OtherRerun(Conflict):
    """The work folder is another rerun's: choose another --work, or the options that it was begun with."""


class NotOurs(Conflict):
    """The database for the rerun holds something else; name a new, empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What the other pipeline does otherwise. None: as it was."""

    judge: str | None = None
    tau: float | None = None

    def of(self, point: Point) -> Point:
        """The operating point of the copy: nothing is demanded of it, for nobody certifies or watches a copy."""
        return replace(
            point,
            mode=Mode.ENFORCE,  # the mode that took effect stands in the boundary
            judge=self.judge or point.judge,
            tau=point.tau if self.tau is None else self.tau,
            require_certificate=False,
            hold_if_monitor_stale=False,
        )


def environment(own: Mapping[str, str], state: Path, *, database: str | None, kafka: str | None, prefix: str) -> dict[str, str]:
    """Variables of the other pipeline: this process's without Winnow's, but for the judges."""
    kept = {n: v for n, v in own.items() if not n.startswith("WINNOW_") or n.split("__")[0] in GIVEN}
    kept |= {"WINNOW_STATE_DIR": str(state), "WINNOW_CANARY_SHARE": "0", "WINNOW_GATEWAY_RATE_PER_S": "0"}
    if database is not None:
        kept["WINNOW_DATABASE_URL"] = database
    if kafka is not None:
        broker = {n: v for n, v in own.items() if n.startswith("WINNOW_KAFKA_")}
        kept |= broker | {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": kafka, "WINNOW_TOPIC_PREFIX": prefix}
    return kept


async def free(url: str, rerun_id: str) -> None:
    """See that the database for the copy has no fleets but this rerun's. Raise `NotOurs`.

    It is asked before anything of ours starts on it: a migration would change it, and the services would send what waits in its outbox.
    """
    from winnow.storage import raw

    async with Database(url, pool_size=1, application_name="winnow-rerun") as copy, copy.reading() as tx:
        known = await raw.fetch_one(tx, "SELECT to_regclass('public.fleets') IS NOT NULL AS there")
        if known is None or not known["there"]:
            return
        mark = await raw.fetch_one(tx, "SELECT details->>'id' AS id FROM audit_log WHERE action = $1 ORDER BY id LIMIT 1", MARK)
        # A rerun that was stopped before it left its mark has made its own fleet alone.
        other = await raw.fetch_one(tx, "SELECT FROM fleets WHERE fleet <> $1 LIMIT 1", FLEET)
        if (other is not None) if mark is None else mark["id"] != rerun_id:
            raise NotOurs


class Folder:
    """The work folder: which rerun it is, and what was compared so far. A rerun that was stopped goes on where it was."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def claim(self, plan: Mapping[str, Any]) -> str:
        """Make the folder this rerun's, or find that it is; return the rerun's id. Raise `OtherRerun`, `Permanent`."""
        path = self.place / PLAN
        try:
            self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
            if path.exists():
                known = json.loads(path.read_text(encoding="utf-8"))
                if {n: v for n, v in known.items() if n != "id"} != dict(plan):
                    raise OtherRerun
                return str(known["id"])
            if any(self.place.iterdir()):
                msg = f"{self.place} holds something else; choose another --work"
                raise OtherRerun(msg)
            made = uuid.uuid4().hex[:8]
            path.write_text(json.dumps({"id": made} | dict(plan), indent=1), encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
            msg = f"{self.place}: {getattr(exc, 'strerror', None) or 'its rerun.json is damaged'}"
            raise Permanent(msg) from None
        return made

    def results(self) -> Iterator[Difference]:
        """What was compared; a last line that was cut off by a crash is left out, its boundary is compared again."""
        path = self.place / RESULTS
        if not path.exists():
            return
        with path.open(encoding="utf-8") as file:
            for line in file:
                try:
                    yield Difference.read(json.loads(line))
                except (ValueError, TypeError, KeyError):
                    continue

    def add(self, found: Sequence[Difference]) -> None:
        """Store comparisons; on the disk when this returns."""
        with (self.place / RESULTS).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one.value) + "\n" for one in found)
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One rerun: from a database that is only read, through the pipeline at `there`."""

    source: Database
    there: Endpoints
    folder: Folder
    rerun_id: str
    where: Where
    changes: Changes
    #: Keys of the copy's fleets, made when they are needed and kept nowhere.
    keys: dict[str, str] = field(default_factory=dict)

    async def run(self, progress: Progress, limit: int | None) -> Summary:
        """Run what was not compared yet, and return what all of it came to."""
        known = list(self.folder.results())
        done = {(one.fleet, one.boundary_id) for one in known}
        broken = {(one.fleet, one.run) for one in known if one.left_out is not None}
        async with self.source.reading() as tx:
            items = await reruns.listed(tx, self.where)
        if limit is not None:
            items = items[:limit]
        copy = Database(self.there.database_url, pool_size=2, application_name="winnow-rerun")
        try:
            await self._marked(copy)
            await self._carried(copy, [item for item in items if (item.key.fleet, str(item.key.boundary_id)) in done])
            left = [item for item in items if (item.key.fleet, str(item.key.boundary_id)) not in done]
            with progress.of("boundaries run again", len(left)) as told:
                ran = 0
                for wave in waves(left):
                    found = await self._wave(copy, [item for item in wave if (item.key.fleet, item.run) not in broken])
                    found += [
                        left_out(item.key.fleet, item.run, str(item.key.boundary_id), ORPHANED)
                        for item in wave
                        if (item.key.fleet, item.run) in broken
                    ]
                    self.folder.add(found)
                    broken |= {(one.fleet, one.run) for one in found if one.left_out is not None}
                    await self._carried(copy, wave)
                    ran += len(wave)
                    told(ran)
        finally:
            await copy.close()
        wanted = {(item.key.fleet, str(item.key.boundary_id)) for item in items}
        return Summary.of(one for one in self.folder.results() if (one.fleet, one.boundary_id) in wanted)

    async def _marked(self, copy: Database) -> None:
        """See that the copy is this rerun's and nobody else's. Raise `NotOurs`."""
        from winnow.storage import raw

        async with copy.transaction() as tx:
            mark = await raw.fetch_one(tx, "SELECT details->>'id' AS id FROM audit_log WHERE action = $1 ORDER BY id LIMIT 1", MARK)
            if mark is None:
                some = await raw.fetch_one(tx, "SELECT FROM boundaries LIMIT 1")
                if some is not None:
                    raise NotOurs
                await audit.add(tx, action=MARK, by="winnow rejudge", now=datetime.now(UTC), details={"id": self.rerun_id})
            elif mark["id"] != self.rerun_id:
                raise NotOurs

    async def _wave(self, copy: Database, wave: Sequence[Item]) -> list[Difference]:
        """Some boundaries of one operating point, each of another run, and what both pipelines made of them."""
        if not wave:
            return []
        [fleet] = {item.key.fleet for item in wave}
        key = await self._prepared(copy, fleet, wave[0].operating_point)
        transport = HttpTransport(self.there.gateway_url, key)
        await transport.start()
        try:
            problems = await asyncio.gather(*(self._one(transport, item) for item in wave))
        finally:
            await transport.close()
        keys = [item.key for item in wave]
        async with self.source.reading() as tx:
            was = await reruns.ends(tx, keys)
        async with copy.reading() as tx:
            now = await reruns.ends(tx, keys)
        found = []
        for item, problem in zip(wave, problems, strict=True):
            name = str(item.key.boundary_id)
            if problem is not None or item.key not in was or item.key not in now:
                found.append(left_out(fleet, item.run, name, problem or "it was erased meanwhile"))
            else:
                found.append(compare(fleet, item.run, name, was[item.key], now[item.key]))
        return found

    async def _prepared(self, copy: Database, fleet: str, operating_point: int) -> str:
        """Give the copy's fleet the operating point of these boundaries, and return a key for it that nobody keeps."""
        now = datetime.now(UTC)
        async with self.source.reading() as tx:
            known = (await fleets.points(tx, [operating_point])).get(operating_point)
        wanted = self.changes.of(known.point if known is not None else Point())
        async with copy.transaction() as tx:
            current = (await fleets.ensure(tx, [fleet], default=wanted, now=now))[fleet]
            if current.operating_point.point != wanted:
                await fleets.set_point(tx, fleet, wanted, by="winnow rejudge", because=f"as of point {operating_point}", now=now)
            if fleet not in self.keys:
                self.keys[fleet], _ = await api_keys.create(tx, fleet, name="rerun", by="winnow rejudge", now=now)
        return self.keys[fleet]

    async def _one(self, transport: HttpTransport, item: Item) -> str | None:
        """Send one boundary and wait for its end; why that could not be, or None."""
        try:
            async with self.source.reading() as tx:
                asked = await reruns.candidate(tx, item.key)
            await transport.ask(asked, "", Deadline.after(BOUNDARY_S, asyncio.get_running_loop().time), None)
        except NotAgain as why:
            return str(why)
        except Unheard as why:
            return f"the other pipeline gave no answer ({why.because})"
        except WinnowError as why:
            return f"the other pipeline refused it: {type(why).__name__}"
        return None

    async def _carried(self, copy: Database, items: Sequence[Item]) -> None:
        """Tell the copy which texts the agents really carried on."""
        for start in range(0, len(items), 500):
            keys = [item.key for item in items[start : start + 500]]
            async with self.source.reading() as tx:
                was = await reruns.ends(tx, keys)
            async with copy.transaction() as tx:
                await reruns.carry(tx, [(key, end.committed_sha256) for key, end in was.items() if end.committed_sha256 is not None])


def waves(items: Sequence[Item], most: int = WAVE) -> Iterator[list[Item]]:
    """Cut a sequence, without changing its order, where the fleet or the operating point changes, or a run comes a second time."""
    wave: list[Item] = []
    runs: set[str] = set()
    for item in items:
        other = wave and (item.key.fleet, item.operating_point) != (wave[0].key.fleet, wave[0].operating_point)
        if wave and (other or item.run in runs or len(wave) >= most):
            yield wave
            wave, runs = [], set()
        wave.append(item)
        runs.add(item.run)
    if wave:
        yield wave


def plan_of(where: Where, changes: Changes, source: str, version: str) -> dict[str, Any]:
    """What makes a rerun the same rerun: from where, which boundaries, what is changed, by which Winnow."""
    chosen = {
        name: value.isoformat() if isinstance(value, datetime) else list(value) if isinstance(value, tuple | list) else value
        for name, value in asdict(where).items()
    }
    return {"source": source, "where": chosen, "changes": asdict(changes), "winnow": version}
