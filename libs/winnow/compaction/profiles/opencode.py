"""OpenCode: headings with prose or bullets, and file trees. Three templates are about; 1.18.33 has the third, `pi` names the second's."""

from winnow.compaction.profiles.profile import Profile, classes

OPENCODE = Profile(
    name="opencode",
    aliases=("opencode-ai",),
    section_classes=classes(
        observation=(
            "discoveries",
            "accomplished",
            "relevant files / directories",
            "relevant files",
            "done",
            "important details",
            "completed",
        ),
        forward=("next steps", "in progress", "remaining", "active", "next move"),
        mixed=("key decisions", "critical context", "blocked", "work state"),
        intent=("goal", "instructions", "constraints & preferences", "objective"),
    ),
    numbered="deep",
)
