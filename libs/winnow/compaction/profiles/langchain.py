"""LangChain's SummarizationMiddleware and Deep Agents: free text, or four headings in capitals."""

from winnow.compaction.profiles.profile import Profile, classes

LANGCHAIN = Profile(
    name="langchain",
    aliases=("deepagents", "deep-agents", "deepagents-code", "langgraph"),
    section_classes=classes(
        observation=("summary", "artifacts"),
        forward=("next steps",),
        intent=("session intent",),
    ),
    numbered="deep",
    prefixes=("Here is a summary of the conversation to date",),
)
