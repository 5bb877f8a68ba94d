"""Readers of recorded sessions: what a host kept of a session becomes boundaries for `winnow judge` and `winnow submit`.

Files are untrusted: sizes are capped, wrong types read as absent, nothing that a file names is opened.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from winnow.client.readers import claude_code, codex, opencode, openhands, pi
from winnow.client.readers.rows import Fault, Unreadable
from winnow.client.readers.session import Boundary

__all__ = ["READERS", "Boundary", "Fault", "Reader", "Unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How one host's sessions are read."""

    host: str
    #: Where the host keeps them, for people.
    files: str
    #: Boundaries and faults of one session, in order. Raises `Unreadable`.
    read: Callable[[Sequence[Path]], Iterator[Boundary | Fault]]
    #: All files are one session; otherwise each is one.
    together: bool = False

    def sessions(self, paths: Sequence[Path]) -> Iterator[Boundary | Fault]:
        """The boundaries of all files; a file that cannot be read is a fault, and the next one goes on."""
        for session in [tuple(paths)] if self.together else [(path,) for path in paths]:
            try:
                yield from self.read(session)
            except Unreadable as exc:
                yield Fault(place="", text=str(exc))


def _single(read: Callable[[Path], Iterator[Boundary | Fault]]) -> Callable[[Sequence[Path]], Iterator[Boundary | Fault]]:
    """A reader of one file as a reader of files."""
    return lambda paths: read(paths[0])


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        reader.host: reader
        for reader in (
            Reader(host="claude-code", files="~/.claude/projects/<folder>/<session>.jsonl", read=_single(claude_code.read)),
            Reader(host="codex", files="~/.codex/sessions/<date>/rollout-*.jsonl", read=_single(codex.read)),
            Reader(host="openclaw", files="~/.openclaw/agents/<agent>/sessions/<session>.jsonl", read=_single(pi.read_openclaw)),
            Reader(host="opencode", files="the output of `opencode export <session>`", read=_single(opencode.read)),
            Reader(host="openhands", files="<conversation>/events/*.json, or a trajectory file", read=openhands.read, together=True),
            Reader(host="pi", files="~/.pi/agent/sessions/--<folder>--/<session>.jsonl", read=_single(pi.read_pi)),
        )
    }
)
