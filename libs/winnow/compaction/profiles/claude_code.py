"""Claude Code: an analysis, then numbered sections; hard-wrapped and indented where it was copied from a console."""

from winnow.compaction.profiles.profile import Profile, classes

_OBSERVATION = ("files and code sections", "files and code", "errors and fixes", "errors")
_FORWARD = ("pending tasks", "current work", "optional next step", "optional next steps", "next step", "next steps")
_MIXED = ("key technical concepts", "problem solving", "key decisions")
_INTENT = ("primary request and intent", "user intent")
_VERBATIM = ("all user messages",)

CLAUDE_CODE = Profile(
    name="claude-code",
    aliases=("claude", "claude-agent-sdk"),
    strict=True,
    section_classes=classes(observation=_OBSERVATION, forward=_FORWARD, mixed=_MIXED, intent=_INTENT, verbatim=_VERBATIM),
    numbered="titles",
    titles=frozenset(_OBSERVATION + _FORWARD + _MIXED + _INTENT + _VERBATIM),
    prefixes=("This session is being continued from a previous conversation",),
    suffixes=(
        "Please continue the conversation from where we left",
        "Continue the conversation from where it left off",
        "If you need specific details from before compact",
        "Recent messages are preserved verbatim",
        "⎿",
    ),
)
