"""What is no summary, and what only looks as if it were none."""

import pytest

from winnow.compaction.parse import parse
from winnow.contracts.vocabulary import Reason, SegmentKind

SUMMARY = "## Decisions\n- Use the `eu` queue\n- Retry twice\n\n## Open TODOs\n- [ ] Resend 4411\n"
CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>\n'

NONE = [
    (Reason.EMPTY, ""),
    (Reason.EMPTY, " \n\t\r\n\u200b\ufeff\x00\n"),
    (Reason.EMPTY, "<analysis>\n- thought of it\n</analysis>\n<summary>\n</summary>"),
    (Reason.EMPTY, "Here is a summary of the conversation to date:\n\n"),
    (Reason.ERROR_TEXT, "Error generating summary: Connection error."),
    (Reason.ERROR_TEXT, "Error generating summary: 2 validation errors\n- name\n- size\n- kind\n- type\n"),
    (Reason.ERROR_TEXT, "Here is a summary of the conversation to date:\n\nError generating summary: 429"),
    (Reason.ERROR_TEXT, 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n'),
    (Reason.ERROR_TEXT, '{"error": {"type": "overloaded_error", "message": "Overloaded"}}'),
    (Reason.ERROR_TEXT, "API Error: 529 Overloaded"),
    (Reason.PLACEHOLDER, "No previous conversation history."),
    (Reason.PLACEHOLDER, "Previous conversation was too long to summarize."),
    (Reason.PLACEHOLDER, "(no summary available)"),
    (Reason.PLACEHOLDER, "None.\n"),
    (Reason.PLACEHOLDER, "<summary>\n(none)\n</summary>"),
    (Reason.TOOL_CALL, CALL),
    (Reason.TOOL_CALL, "Let me run the tests first.\n\n" + CALL),
    (Reason.TOOL_CALL, "I will write it:\n<function=write>\n<parameter=content>\n# A\n## B\n- c\n## D\n- e\n</function>"),
    (Reason.TOOL_CALL, '[TOOL_CALLS][{"name": "read"}]'),
    (Reason.TOOL_CALL, "1. First I look:\n2. Then I edit:\n" + CALL),
    (Reason.REFUSAL, "I'm sorry, but I can't help with that request."),
    (Reason.REFUSAL, "I’m unable to assist with this. I can instead:\n- explain the policy\n- suggest another task\n- stop\n"),
    (Reason.REFUSAL, "Sorry, I cannot provide a summary of this conversation."),
    (Reason.REFUSAL, "As an AI language model, I cannot comply."),
    (Reason.REFUSAL, "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy."),
    (Reason.LOOP, "thesameline\n" * 400),
    (Reason.LOOP, "## Goal\n" + "".join(f"- step {n % 5}\n" for n in range(300))),
    (Reason.LOOP, "## Goal\n- real\n" + "- again\n" * 100),
    (Reason.LOOP, "The next step is " + "to run the tests and " * 500),
    (Reason.LOOP, "Done. " + "a" * 10_000),
]

SOME = [
    SUMMARY,
    "## Done\n- The host wrote `Error generating summary: x`\n\n## Next\n- Error: again\n",
    "- Error generating summary: was the log line\n- it came from `a.py`\n",
    "## Done\n```\n" + CALL + "```\n- the parser now reads it\n",
    "The model answered in markup:\n```\n" + CALL + "```\nIt is handled now.\n",
    "- The tag `<tool_call>` is parsed\n- `<function=` too\n",
    SUMMARY + "\n" + CALL,
    "I cannot reproduce the bug; the assistant helped with two runs, both green.",
    "I'm sorry that this is short: the tests pass and nothing is left.",
    "The user said: I'm sorry, but I can't help with that request.",
    "## Decisions\n- I'm sorry, but I can't assist: was the answer\n## Open TODOs\nNone.\n",
    "Error: was raised by `a.py`.\n- fixed in `b.py`\n- tested\n- merged\n",
    "- [ ] run\n" * 30,
    "".join(f"- entry {n} differs\n" for n in range(2_000)),
    "| a | b |\n|---|---|\n" + "".join(f"| row {n} | ok |\n" for n in range(200)),
    "## Log\n```\n" + "".join(f"{n}\n}}\n" for n in range(100)) + "```\n- a\n",
    "The hash is " + "0123456789abcdef" * 100 + " and it is right.",
    "None of the tests pass.",
]


@pytest.mark.parametrize(("reason", "text"), NONE)
def test_no_summary_is_named(reason: Reason, text: str) -> None:
    """Nothing, errors, calls, refusals and loops have a reason, no entries, and segments that still join to the text."""
    parsed = parse(text)
    assert parsed.outcome == reason
    assert parsed.entries == ()
    assert "".join(segment.text for segment in parsed.segments) == text
    assert all(segment.kind is SegmentKind.PROSE for segment in parsed.segments)


@pytest.mark.parametrize("text", SOME)
def test_a_summary_that_looks_odd_is_one(text: str) -> None:
    """Quoted errors, markup in fences and bullets, refusals that are told of, and long lists are summaries."""
    parsed = parse(text)
    assert parsed.outcome is None
    assert parsed.entries
