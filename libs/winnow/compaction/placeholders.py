"""Texts that stand where nothing is to be said (T06)."""

from winnow.compaction.lines import INVISIBLE

#: Lower case, without brackets, emphasis and final stop.
_PLACEHOLDERS = frozenset({"none", "n/a", "none captured", "no pending asks", "no prior history", "无", "なし"})
#: Hermes writes this one where a session has no user.
_SENTINEL = "none. this session contains no user-authored turns"
#: Characters; the longest placeholder with its decoration is shorter.
MAX_PLACEHOLDER = 64

_DECORATION = INVISIBLE + "()[]*_`.。!"


def is_placeholder(body: str) -> bool:
    """Tell whether `body`, an entry's text without its marker, says that there is nothing."""
    if len(body) > MAX_PLACEHOLDER:
        return False
    word = body.strip(_DECORATION).casefold()
    return word in _PLACEHOLDERS or word == _SENTINEL
