"""OpenCode: headings with prose or bullets, and file trees. Two templates are about; see `pi` for the names of the second."""

from winnow.compaction.profiles.profile import Profile, classes

OPENCODE = Profile(
    name="opencode",
    aliases=("opencode-ai",),
    section_classes=classes(
        observation=("discoveries", "accomplished", "relevant files / directories", "relevant files", "done"),
        forward=("next steps", "in progress", "remaining"),
        mixed=("key decisions", "critical context", "blocked"),
        intent=("goal", "instructions", "constraints & preferences"),
    ),
    numbered="deep",
)
