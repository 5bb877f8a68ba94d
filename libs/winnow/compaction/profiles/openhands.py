"""OpenHands condenser: one upper-case label a line. A value is never split at `;`: code and paths contain it."""

from winnow.compaction.profiles.profile import Profile, classes

OPENHANDS = Profile(
    name="openhands",
    aliases=("openhands-condenser", "opendevin"),
    strict=True,
    section_classes=classes(
        observation=("completed", "code_state", "tests", "changes", "version_control_status", "deps"),
        forward=("pending", "task_tracking"),
        mixed=("current_state",),
        intent=("user_context",),
    ),
    lead_ins=False,
    labels=True,
)
