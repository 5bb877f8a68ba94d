"""Hermes Agent: a reference-only wrapper, numbered actions, questions with answers."""

from winnow.compaction.profiles.profile import Profile, classes

HERMES = Profile(
    name="hermes",
    aliases=("hermes-agent",),
    strict=True,
    section_classes=classes(
        observation=("completed actions", "active state", "relevant files", "errors"),
        forward=("in-progress state", "in progress", "pending user asks", "remaining work", "task snapshot", "active task"),
        mixed=("key decisions", "resolved questions", "critical context", "blocked"),
        intent=("goal", "constraints & preferences"),
        verbatim=("user messages",),
    ),
    question_answer=True,
    echo_tools=frozenset({"memory"}),  # the agent's notes; elsewhere a tool of that name may be anything
    # Both dashes: the host writes a long one, its forks and exports a short one.
    prefixes=("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]"),
    prior_context=("[PRIOR CONTEXT", "[END OF PRIOR CONTEXT"),
    suffixes=("--- END OF CONTEXT SUMMARY", "## Context Recovery"),
)
