"""pi: headings, checkboxes, and file lists that its code appends. A split turn puts two summaries into one."""

from winnow.compaction.profiles.profile import Profile, classes

PI = Profile(
    name="pi",
    aliases=("pi-mono", "pi-coding-agent"),
    section_classes=classes(
        observation=("done", "completed", "files created", "commands", "early progress"),
        forward=("in progress", "next steps"),
        mixed=("key decisions", "critical context", "blocked", "context for suffix"),
        intent=("goal", "constraints & preferences", "original request"),
    ),
    prefixes=("The conversation history before this point was compacted into the following summary",),
    appended=frozenset({"read-files", "modified-files"}),
)
