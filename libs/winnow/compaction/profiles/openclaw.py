"""OpenClaw: five fixed headings, bullets below them, then suffixes that the host appends."""

from winnow.compaction.profiles.profile import Profile, classes

#: In their fixed order, as the host audits them.
HEADINGS = ("Decisions", "Open TODOs", "Constraints/Rules", "Pending user asks", "Exact identifiers")
#: The host compares the first line under "Pending user asks" with this and the request as JSON.
REQUEST_LABEL = "Latest user request context:"

OPENCLAW = Profile(
    name="openclaw",
    aliases=("clawdbot", "moltbot"),
    strict=True,
    section_classes=classes(
        observation=("exact identifiers",),
        forward=("open todos", "pending user asks"),
        mixed=("decisions",),
        intent=("constraints/rules",),
    ),
    paragraphs=False,
    lead_ins=False,
    bare_sections=frozenset({"exact identifiers"}),
    pinned_lines=(REQUEST_LABEL,),
    pinned_sections=frozenset({"latest user request context"}),
    suffixes=(
        "## Tool Failures",
        "## Recent turns preserved verbatim",
        "**Turn Context (split turn):**",
        "<read-files>",
        "<modified-files>",
        "<workspace-critical-rules>",
    ),
)
