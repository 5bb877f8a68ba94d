"""Markdown, HTML and plots of a record: complete, and harmless whatever the entries say."""

import html.parser
import re
from datetime import UTC, datetime
from uuid import UUID
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.contracts.evaluation import EvaluationRecord, Gate, Interval, Metric, Subject, Table
from winnow.judging.evaluation import documents, plots

HOSTILE = "<script>alert(1)</script> | `x` [a](javascript:1) \u202e \x00\x1b[31m $\\frac"


def record(text="x", **more) -> EvaluationRecord:
    values = {
        "metrics": (
            Metric(name="auroc", value=0.91234, n=10, interval=Interval(lo=0.8, hi=0.95, level=0.95, method="bootstrap")),
            Metric(name="ece", value=None, n=0, note="no entries"),
        ),
        "gates": (Gate.judge(metric="auroc", direction="at_least", threshold=0.95, observed=0.91234),),
        "tables": (Table(name="errors", title=f"Errors {text}", columns=("entry", "score", text), rows=((text, 0.5, None),), note=text),),
        "warnings": (text,),
        "notes": (text,),
        "command": text,
    }
    return EvaluationRecord(
        id=UUID(int=1), kind="judge", created_at=datetime(2026, 1, 1, tzinfo=UTC), title=f"Judge {text}",
        subject=Subject(kind="judge", name="local"), **(values | more),
    )  # fmt: skip


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen: list[tuple[str, list]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, attrs))


def tags(page: str) -> set[str]:
    parser = Tags()
    parser.feed(page)
    return {tag for tag, _ in parser.seen}


def test_both_documents_tell_the_same():
    """Title, gates with observed values, figures with intervals, what is not defined, and that a missing plot is missing."""
    page, text = documents.html(record(), None), documents.markdown(record())
    for words in ("Judge x", "auroc &gt;= 0.95: observed 0.912", "0.912 [0.800, 0.950]", "–", "failed"):
        assert words in page
        assert words in text.replace("\\", "")
    assert "matplotlib is not installed" in page
    assert "matplotlib" not in documents.html(record(), {})
    assert "no gate was set; that is not a pass" in documents.markdown(record(gates=()))
    assert "nothing was asked, so nothing passed" in documents.html(record(gates=()), {})


def test_hostile_texts_stay_texts():
    """Markup of an entry is neither HTML nor Markdown of the document, and no control character is left."""
    page, text = documents.html(record(HOSTILE), {}), documents.markdown(record(HOSTILE))
    assert tags(page) == tags(documents.html(record(), {}))
    assert "<script" not in page
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    for made in (page, text):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", made)
    rows = [line for line in text.splitlines() if "alert" in line and line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in {3, 4} for row in rows)


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_gives_the_same_tags(text):
    """Whatever an entry says, the page has the tags that it would have anyway."""
    assert tags(documents.html(record(text or "x"), {})) == tags(documents.html(record(), {}))


def test_the_page_loads_nothing():
    """No scripts, links, frames or images from anywhere: only tags that show text."""
    page = documents.html(record(HOSTILE), {})
    assert tags(page).isdisjoint({"script", "link", "iframe", "img", "object", "form", "a"})
    assert "default-src 'none'" in page


def figures() -> EvaluationRecord:
    """A record with every table that has a plot."""
    bins = tuple((name, n / 10, (n + 1) / 10, n, n / 10 if n else None, n / 10) for name in ("all", "reasoning") for n in range(10))
    curve = tuple((name, 1 - n / 4, n / 4, n / 4, 1.0) for name in ("all", "reasoning") for n in range(5))
    return record(
        tables=(
            Table(
                name="slices", title="s", columns=("slice", "auroc", "auroc lo", "auroc hi"),
                rows=(
                    ("all", 0.9, 0.8, 1.0), (f"section={HOSTILE[-20:]}", 0.7, None, None), (HOSTILE, 0.6, None, None),
                    ("one class", None, None, None),
                ),
            ),
            Table(name="calibration", title="c", columns=("slice", "from", "to", "n", "mean score", "sourced"), rows=bins),
            Table(
                name="histogram", title="h",
                columns=("from", "to", "forward, sourced", "forward, unsourced", "other, sourced", "other, unsourced"),
                rows=tuple((n / 20, (n + 1) / 20, n, 1, 2, 3) for n in range(20)),
            ),
            Table(
                name="sweep", title="w",
                columns=("tau", "pruned", "precision", "recall", "reasoning pruned", "reasoning precision", "reasoning recall"),
                rows=tuple((n / 10, n / 10, 0.9, None, 0.1, 0.2, 0.3) for n in range(1, 10)),
            ),
            Table(name="curves", title="v", columns=("slice", "score", "false positive rate", "recall", "precision"), rows=curve),
            Table(name="stress", title="t", columns=("change", "kept", "kept unchanged"), rows=(("digit_changed", 0.1, 0.9),)),
        )
    )  # fmt: skip


def test_plots_are_drawn_and_repeat_to_the_byte():
    """Each table with a plot gives an SVG that is well formed, the same each time, and names no date."""
    pytest.importorskip("matplotlib")
    made = plots.of(figures())
    assert len(made) == 7
    for svg in made.values():
        root = ET.fromstring(svg)  # noqa: S314  our own
        assert root.tag.endswith("svg")
        assert "<script" not in svg
    again = record(tables=(figures().table("sweep"),))
    assert plots.of(again) == {title: svg for title, svg in made.items() if title.startswith("Threshold")}
    assert all(svg in documents.html(figures(), made) for svg in made.values())
    assert plots.of(record()) == {}
