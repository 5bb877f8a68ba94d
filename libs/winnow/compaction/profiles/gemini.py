"""Gemini CLI, and the XML-like snapshots of its relatives. Not XML: raw `&` and `<` occur, so element names are matched at line ends."""

from winnow.compaction.profiles.profile import Profile, classes

_OBSERVATION = ("key_knowledge", "artifact_trail", "file_system_state", "recent_actions", "environment", "completed_tasks", "code_state")
_FORWARD = ("task_state", "current_plan", "current_focus", "active_issues")
_INTENT = ("overall_goal", "active_constraints")
_MIXED = ("important_context",)

GEMINI = Profile(
    name="gemini",
    aliases=("gemini-cli", "qwen-code", "qwen", "kimi-cli", "kimi"),
    strict=True,
    section_classes=classes(observation=_OBSERVATION, forward=_FORWARD, mixed=_MIXED, intent=_INTENT),
    lead_ins=False,
    elements=frozenset(_OBSERVATION + _FORWARD + _INTENT + _MIXED),
    wrappers=frozenset({"state_snapshot"}),
)
