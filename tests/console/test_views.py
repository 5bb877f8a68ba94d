"""The view models of the console, which are pure."""

import html
import json
import math
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from services.gateway import operating
from services.gateway.console.sessions import Session, Sessions
from services.gateway.console.views import certificates, curves, letters, numbers, summaries, text, wording
from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.assurance.ledger import Epoch, Fate, Signature, Unit
from winnow.contracts.events import Entry, EntryDecision, sha256
from winnow.contracts.vocabulary import (
    AlertKind,
    Decision,
    DecisionReason,
    FindingKind,
    Guarantee,
    Missing,
    Outcome,
    ProvenanceClass,
    Reason,
    RootSource,
    SectionClass,
    Verdict,
)  # fmt: skip
from winnow.storage.certificates import Certificate
from winnow.storage.dead_letters import DeadLetter, NewDeadLetter
from winnow.storage.entries import EntryHistory

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Tags(HTMLParser):
    """What a browser would find in a piece of a page."""

    def __init__(self, source: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@given(st.text(st.characters(codec=None) | st.sampled_from("<>&\"'\u202e\u200b\x00\r\n\ud800")))
def test_untrusted_text_becomes_no_tag_and_loses_nothing(said):
    """The only tags are our own marks, and the text behind them is the text that was given, acting characters as their code."""
    shown = text.visible(said, 10_000)
    assert isinstance(shown, Markup)
    found = Tags(str(shown))
    assert set(found.tags) <= {"span"}
    plain = re.sub(r'<span class="code">U\+([0-9A-F]+)</span>', lambda m: f"\x01{m[1]}\x02", str(shown))
    assert "<" not in plain
    back = re.sub("\x01([0-9A-F]+)\x02", lambda m: chr(int(m[1], 16)), plain)
    assert html.unescape(back) == said.replace("\r\n", "\n") or "&#" in said or "&" in said
    assert not re.search("[\x00\u202a-\u202e\u2066-\u2069\u200b\ud800-\udfff]", str(shown))


@given(st.text(max_size=300), st.integers(1, 100))
def test_a_line_is_one_line_of_its_length(said, most):
    """However long and broken a name is, a cell of a table stays one."""
    shown = Tags(str(text.line(said, most))).text
    assert "\n" not in shown
    assert len(re.sub(r"U\+[0-9A-F]{4,6}", "x", shown)) <= most + 1


def test_details_say_what_there_is_and_are_bounded():
    """Names and values of an audit row, lists as JSON; what says nothing is left out, and of many or long ones it is said how many."""
    shown = [(str(name), str(value)) for name, value in text.told({"key_id": "k1", "also": ["<b>"], "n": 0, "alert_id": None, "none": []})]
    assert shown == [("key id", "k1"), ("also", "[&#34;&lt;b&gt;&#34;]"), ("n", "0")]
    many = list(text.told({f"n{i}": "x" * 10_000 for i in range(50)}))
    assert len(many) == text.MOST_DETAILS + 1
    assert "38 more" in many[-1][1]
    assert all(len(value) < 2 * text.DETAIL_CHARS for _, value in many)


def test_a_megabyte_is_cut_and_counted():
    """What is left out is told, and cutting takes no longer than reading."""
    assert text.visible("x" * 1_000_000, 10).endswith("… 999,990 more characters</span>")


def history(candidate: bytes, *spans: tuple[int, int], decision: Decision = Decision.KEPT) -> list[EntryHistory]:
    made = []
    for n, span in enumerate(spans, 1):
        entry = Entry(
            n=n, section="S", section_class=SectionClass.UNKNOWN, text="e", span=span, provenance=ProvenanceClass.NOWHERE,
        )  # fmt: skip
        decided = EntryDecision(
            n=n, section="S", section_class=SectionClass.UNKNOWN, span=span, decision=decision, reason=DecisionReason.SCORE, score=0.2,
            verdict=Verdict.UNSOURCED, provenance=ProvenanceClass.NOWHERE, root_source=RootSource.NONE, explanation="",
        )  # fmt: skip
        made.append(EntryHistory(entry=entry, passages=(), score=None, judge=None, decision=decided))
    return made


@given(st.data())
def test_every_byte_of_a_candidate_is_shown_once(data):
    """Whatever the spans are, overlapping or outside, the stretches cover the candidate in order and nothing stands twice."""
    candidate = data.draw(st.binary(max_size=60))
    spans = data.draw(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=6))
    cuts = list(summaries._cuts(len(candidate), history(candidate, *sorted(spans))))
    assert b"".join(candidate[a:b] for a, b, _ in cuts) == candidate
    assert sum(entry is not None for _, _, entry in cuts) == len(spans)


@pytest.mark.parametrize(
    ("applied", "decision", "word"),
    [
        (True, Decision.PRUNED, "pruned"),
        (False, Decision.PRUNED, "would be pruned"),
        (True, Decision.KEPT, "kept"),
        (True, None, "undecided"),
    ],
)
def test_a_fate_is_a_sign_and_a_word(applied, decision, word):
    """What was decided and not done says so."""
    decided = None if decision is None else history(b"", (0, 0), decision=decision)[0].decision
    fate = summaries.fate_of(decided, applied=applied)
    assert fate.word == word
    assert fate.sign


def epoch(**more) -> Epoch:
    return Epoch(number=1, from_seq=1, config=MonitorConfig(alpha=0.05, **more), missing=Missing.FOLD, signature=Signature())


def units(losses: list[float | None]) -> list[tuple[Unit, Fate]]:
    return [(Unit(i, x, 0.0, 1.0, Signature()), Fate.FOLDED if x is not None else Fate.MISSING) for i, x in enumerate(losses, 1)]


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, None]), max_size=700))
def test_a_curve_ends_where_the_monitor_is(losses):
    """Its last point is the evidence of the same units folded at once; a missing grade counts as a loss of 1, as its epoch says."""
    drawn = curves.curve(epoch(), units(losses))
    state = monitor.fold(epoch().config, monitor.initial(epoch().config), [1.0 if x is None else x for x in losses])
    assert drawn.points[-1].evidence == state.log_evidence / math.log(10)
    assert (drawn.points[-1].n, drawn.alarm_at) == (state.n, state.alarm_at)
    assert len(drawn.points) <= curves.POINTS + 1
    assert sum(1 for _ in drawn.means) <= curves.BLOCKS


def test_a_curve_that_alarms_says_when_and_about_where_the_change_was():
    """A jump after 200 healthy units is found near there, and the curve reaches its level."""
    drawn = curves.curve(epoch(), units([0.0] * 200 + [1.0] * 20))
    assert drawn.alarm_at is not None
    assert 200 < drawn.alarm_at <= 220
    assert drawn.window is not None
    assert 150 <= drawn.window[0] <= 201 <= drawn.window[1] + 10
    assert drawn.points[-1].evidence >= drawn.level


@pytest.mark.parametrize(
    ("mapping", "codes"),
    [
        (wording.OUTCOMES, Outcome), (wording.VERDICTS, Verdict), (wording.REASONS, DecisionReason), (wording.PROVENANCE, ProvenanceClass),
        (wording.ROOTS, RootSource), (wording.FINDINGS, FindingKind), (wording.SECTIONS, SectionClass), (wording.GUARANTEES, Guarantee),
        (wording.ALERTS, AlertKind),
    ],
)  # fmt: skip
def test_every_code_has_words(mapping, codes):
    """A code that is added to a closed list is not forgotten here."""
    assert set(mapping) == set(codes)


def test_no_word_says_within_budget():
    """The absence of an alarm is never told as a kept budget."""
    said = " ".join([*wording.STREAM_VERDICTS.values(), *wording.STREAM_STATUS.values()]).lower()
    assert "within budget" not in said
    assert "safe" not in said


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (numbers.percent(0.1234), "12.3 %"), (numbers.percent(None), "–"), (numbers.seconds(0.0123), "12 ms"),
        (numbers.seconds(90), "90.0 s"), (numbers.seconds(7_000), "117 min"), (numbers.seconds(90_000), "25 h"),
        (numbers.usd(0.00123), "$0.0012"), (numbers.usd(12.5), "$12.50"), (numbers.size(1536), "1.5 KiB"),
        (numbers.number(1096.6), "1,097"), (numbers.evidence(math.log(20)), "20"), (numbers.evidence(50.0), "10^21.7"),
        (numbers.moment(datetime(2026, 1, 1, 1, tzinfo=UTC)), "2026-01-01 01:00"), (numbers.count(1234), "1,234"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_read_them(said, wanted):
    """Units that fit, thousands apart, nothing as a dash."""
    assert said == wanted


def letter(**more) -> DeadLetter:
    fields = {
        "topic": "p.winnow.runtime.v1", "partition": 0, "offset": 1, "key": b"f/r", "value": b"{}", "headers": (), "reason": Reason.INVALID,
        "error": "", "service": "s",
    }  # fmt: skip
    return DeadLetter(id=1, letter=NewDeadLetter(**(fields | more)), created_at=NOW, replayed_at=None, replays=0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, None), ({"topic": "winnow.runtime.v1"}, "topic"), ({"topic": "p.winnow.dead-letter.v1"}, "topic"),
        ({"value": None}, "no body"), ({"value": b"x" * 2_000_000}, "larger"), ({"key": b"\xff"}, "UTF-8"),
    ],
)  # fmt: skip
def test_only_what_can_be_replayed_is_offered(more, words):
    """A foreign topic, no body, too large a body, a key of bytes: the page says why not."""
    said = operating.obstacle(letter(**more), "p.")
    assert (said is None) if words is None else (said is not None and words in said)


def test_bytes_are_shown_as_far_as_a_page_goes():
    """Ten megabytes of a body are a page of a few kilobytes, and bytes that are no text are escapes."""
    shown = letters.shown(letter(value=b"\xff<" * 5_000_000, headers=tuple((f"h{i}", b"\xfe") for i in range(100))))
    assert shown.size == 10_000_000
    assert len(shown.body) < 200_000
    assert str(shown.body).startswith("\\xff&lt;")
    assert (len(shown.headers), shown.more_headers) == (60, 40)


def test_secrets_of_a_letter_are_masked_on_its_page():
    """Key, headers and body: what is known as a secret in one place is masked in all."""
    token = "ghp_" + "a1B2" * 9
    body = json.dumps({"text": f'password: "tiger-12345" {token}'}).encode()
    shown = letters.shown(letter(key=f"f/{token}".encode(), run=token, value=body, headers=(("note", f"Bearer {token}".encode()),)))
    assert token not in repr(shown)
    assert "tiger-12345" not in repr(shown)
    assert "[masked:github-token]" in shown.body
    assert shown.size == len(body)


def certificate(**more) -> Certificate:
    fields = {
        "certificate_id": uuid4(), "fleet": "f", "compressor": "", "judge": "", "judge_version": "", "tau": 0.5, "grader": "",
        "data_sha256": "", "method": "exact (fixed-n)", "alpha": 0.1, "delta": 0.1, "n": 1, "losses": 0, "denominator": "",
        "bound": 0.1, "record": {},
        "issued_at": NOW, "expires_at": NOW + timedelta(days=1),
    }  # fmt: skip
    return Certificate(**(fields | more))


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "live"), ({"expires_at": NOW}, "expired"), ({"revoked_at": NOW, "revoked_because": "alarm"}, "revoked"),
        ({"revoked_at": NOW, "revoked_because": "superseded by x"}, "superseded"),
    ],
)  # fmt: skip
def test_a_certificate_says_whether_it_holds(more, state):
    """Live, expired, revoked or superseded, at the moment of the page."""
    assert certificates.shown(certificate(**more), NOW).state == state


@pytest.mark.parametrize("record", [{}, {"certificate": 3}, {"certificate": {"statement": 3, "assumptions": "x"}}])
def test_a_strange_record_says_less(record):
    """A record of another shape is no error, and a method without a class promises nothing."""
    shown = certificates.shown(certificate(record=record, method="odd"), NOW)
    assert (shown.statement, shown.assumptions, shown.guarantee) == (None, (), Guarantee.NONE)


def sessions(secret: bytes = b"k" * 32, now: datetime = NOW) -> Sessions:
    return Sessions(secret, life=timedelta(hours=1), now=lambda: now)


def test_a_session_is_read_until_it_ends_by_who_has_the_secret():
    """Any process with the secret knows it; another secret, and a later hour, do not."""
    begun = sessions().begin(sha256("key"))
    cookie = sessions().cookie(begun)
    assert sessions().read(cookie) == begun
    assert sessions(b"x" * 32).read(cookie) is None
    assert sessions(now=NOW + timedelta(hours=1)).read(cookie) is None
    assert sessions().sent(begun, sessions().token(begun))
    assert not sessions().sent(sessions().begin(sha256("key")), sessions().token(begun))
    assert sessions().token(begun) not in cookie


@given(st.text(max_size=300))
def test_whatever_a_browser_sends_is_no_session(cookie):
    """A cookie that was not made here is nobody, and reading it raises nothing."""
    assert sessions().read(cookie) is None


def test_an_end_beyond_the_calendar_is_no_session():
    """A made-up end that no date can have is refused before it is read."""
    for ends in ("9" * 11, "9" * 12):
        assert sessions().read(f"v1.{'0' * 64}.{ends}.{'0' * 32}.{'0' * 64}") is None


@given(st.integers(0, 270), st.integers(0, 15))
def test_one_altered_character_is_no_session(at, change):
    """No part of a cookie can be changed."""
    session = Session(key_sha256="a" * 64, ends_at=NOW + timedelta(minutes=5), nonce="b" * 32)
    cookie = sessions().cookie(session)
    at %= len(cookie)
    altered = cookie[:at] + "0123456789abcdef"[change] + cookie[at + 1 :]
    assert altered == cookie or sessions().read(altered) is None
