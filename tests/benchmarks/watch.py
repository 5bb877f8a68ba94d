"""Memory and processor time of processes, by the role that they play."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil

MIB = 1024 * 1024

#: Seconds between two looks. Finding a server's children reads all of /proc, some 10 ms: at two looks a second it would be a load itself.
INTERVAL_S = 2.0


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and its children; none where it has ended."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def rss(pids: Sequence[int]) -> float:
    """Resident memory of process trees in MiB. Pages that PostgreSQL's processes share are counted in each."""
    total = 0
    for process in (p for pid in pids for p in tree(pid)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / MIB


def cpu(pids: Sequence[int]) -> float:
    """Seconds of processor time of process trees; a PostgreSQL backend that has ended is counted by its parent."""
    total = 0.0
    for process in (p for pid in pids for p in tree(pid)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
        if process.pid in pids:
            total += times.children_user + times.children_system
    return total


@dataclass(slots=True)
class Watch:
    """Samples the memory of roles while it is open; `done` says how far the work is."""

    roles: Mapping[str, Sequence[int]]
    done: Callable[[], int]
    samples: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _cpu: dict[str, float] = field(default_factory=dict)
    #: Seconds of processor time of each role, once closed.
    spent: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def __enter__(self) -> Self:
        """Start sampling."""
        self._cpu = {role: cpu(pids) for role, pids in self.roles.items()}
        self.seconds = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop sampling."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.seconds = time.monotonic() - self.seconds
        self.spent = {role: cpu(pids) - self._cpu[role] for role, pids in self.roles.items()}

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self._look()
        self._look()  # a run may be over before the first interval

    def _look(self) -> None:
        self.samples.append((self.done(), {role: rss(pids) for role, pids in self.roles.items()}))

    def peak(self, role: str) -> float:
        """Return the largest sample of a role in MiB."""
        return max((s[role] for _, s in self.samples), default=0.0)

    def last(self, role: str) -> float:
        """Return the last sample of a role in MiB."""
        return self.samples[-1][1][role] if self.samples else 0.0

    def slope(self, role: str) -> float:
        """Return the growth over the second half of the work in MiB a thousand units, by least squares."""
        if len(self.samples) < 4:
            return 0.0
        half = self.samples[-1][0] / 2
        points = [(done / 1000, s[role]) for done, s in self.samples if done >= half]
        return least_squares(points)


def least_squares(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line through `points`; 0 where there is no spread."""
    if not points:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
