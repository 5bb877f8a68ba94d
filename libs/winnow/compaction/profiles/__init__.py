"""Host profiles, by name, and the host names that lead to them."""

from collections.abc import Mapping
from types import MappingProxyType

from winnow.compaction.profiles.claude_code import CLAUDE_CODE
from winnow.compaction.profiles.codex import CODEX
from winnow.compaction.profiles.gemini import GEMINI
from winnow.compaction.profiles.generic import MARKDOWN, PROSE
from winnow.compaction.profiles.hermes import HERMES
from winnow.compaction.profiles.langchain import LANGCHAIN
from winnow.compaction.profiles.openclaw import OPENCLAW
from winnow.compaction.profiles.opencode import OPENCODE
from winnow.compaction.profiles.openhands import OPENHANDS
from winnow.compaction.profiles.pi import PI
from winnow.compaction.profiles.profile import Profile

__all__ = ["PROFILES", "Profile", "profile_for"]

_ALL = (OPENCLAW, CODEX, GEMINI, CLAUDE_CODE, HERMES, OPENCODE, PI, LANGCHAIN, OPENHANDS, MARKDOWN, PROSE)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})
_ALIASES: Mapping[str, Profile] = MappingProxyType({alias: profile for profile in _ALL for alias in (profile.name, *profile.aliases)})


def profile_for(host: str | None) -> Profile | None:
    """Return the profile of `host` (its name or an alias; case, `_` and blanks do not matter), None where there is none."""
    if not host:
        return None
    return _ALIASES.get("-".join(host.lower().replace("_", "-").split()))
