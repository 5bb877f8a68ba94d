"""Programs and settings for hosts that are not written in Python, shipped as data: `winnow hosts install NAME` writes them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one host needs on disk."""

    name: str
    #: What it does there, in a line.
    about: str
    #: Where the host looks for it, and what else is to be set.
    place: str
    #: Files of the program, as they lie in this package.
    files: tuple[str, ...]

    def contents(self) -> dict[str, str]:
        """Text of each file by the name under which it is written, all in one folder."""
        root = resources.files(__name__)
        return {file.rpartition("/")[2]: root.joinpath(file).read_text(encoding="utf-8") for file in self.files}


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        program.name: program
        for program in (
            Program(
                name="claude-code",
                about="a command hook that tells Claude Code after a compaction which entries of its summary have no source",
                place="merge into ~/.claude/settings.json or .claude/settings.json; set WINNOW_API_KEY",
                files=("claude-code/settings.json",),
            ),
            Program(
                name="codex",
                about="a command hook that submits Codex's summary after a compaction; it cannot change or annotate it",
                place="merge into ~/.codex/hooks.json; set WINNOW_API_KEY",
                files=("codex/hooks.json",),
            ),
            Program(
                name="openclaw",
                about="a compaction provider whose summaries are judged",
                place='openclaw plugins install <folder>; agents.defaults.compaction.provider = "winnow"; set WINNOW_API_KEY',
                files=("openclaw/index.ts", "openclaw/openclaw.plugin.json", "openclaw/package.json", "messages.ts", "winnow.ts"),
            ),
            Program(
                name="opencode",
                about="a plugin that judges the text of a compaction's message",
                place='"plugin": ["file:///<folder>/index.ts"] in opencode.json, in no plugin folder of its own; set WINNOW_API_KEY',
                files=("opencode/index.ts", "winnow.ts"),
            ),
            Program(
                name="pi",
                about="an extension that judges the summary before pi stores it",
                place="the folder as ~/.pi/agent/extensions/winnow/; set WINNOW_API_KEY",
                files=("pi/index.ts", "messages.ts", "winnow.ts"),
            ),
        )
    }
)
