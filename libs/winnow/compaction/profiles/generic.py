"""Any other Markdown, and plain prose: what is left when no host is known."""

from winnow.compaction.profiles.profile import Profile, classes

#: Names that several hosts use. Reports group by them; nothing is pruned or kept because of them.
_CLASSES = classes(
    observation=(
        "accomplished",
        "artifacts",
        "codebase status",
        "completed",
        "discoveries",
        "done",
        "errors and fixes",
        "exact identifiers",
        "facts",
        "files",
        "recent operations",
        "relevant files",
        "results",
    ),
    forward=(
        "active work state",
        "continuation plan",
        "current work",
        "exact next steps",
        "in progress",
        "next step",
        "open todos",
        "optional next step",
        "outstanding work",
        "pending",
        "plan",
        "remaining",
        "todo",
    ),
    mixed=("decisions", "key decisions", "key technical concepts", "problem solving", "progress", "strategy & approach"),
    intent=("constraints", "goal", "instructions", "objective", "primary request and intent", "session intent", "user intent"),
    verbatim=("all user messages", "user messages"),
)

MARKDOWN = Profile(name="markdown", section_classes=_CLASSES, lead_ins=False, numbered="deep")
PROSE = Profile(name="prose", section_classes=_CLASSES, preamble=False, lead_ins=False, numbered="deep")
