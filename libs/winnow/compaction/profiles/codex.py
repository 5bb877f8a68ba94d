"""Codex CLI: free Markdown with bold lead-ins; user messages stay beside the summary (20,000 tokens of them)."""

from winnow.compaction.profiles.profile import Profile, classes

CODEX = Profile(
    name="codex",
    aliases=("codex-cli", "openai-codex"),
    section_classes=classes(
        observation=("critical data", "critical references", "examples"),
        forward=("remaining", "what remains", "next steps", "todo", "pending"),
        mixed=("progress", "key decisions", "decisions"),
        intent=("goal", "context", "constraints", "preferences", "user preferences"),
    ),
    numbered="deep",
    prefixes=("Another language model started to solve this problem",),
    user_turns_survive=True,
)
