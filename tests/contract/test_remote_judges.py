"""What a remote judge may do to Winnow: nothing. Ids `F1` to `F33` are the failure kinds of docs/judges.md."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.harness import judge_server as acts
from tests.harness.judge_server import JudgeServer
from tests.unit.judging.adapters.asking import ENTRIES, HISTORY, RETAINED, Time, ask, errors, judge_at, request, said, settings, spec
from winnow.compaction.carry import Root
from winnow.compaction.decide import Judged, fates
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import Decision, DecisionReason, MessageKind, Outcome, Reason, RootSource, Rules, Verdict
from winnow.judging import adapters
from winnow.judging.adapters.failures import Failed, Failure
from winnow.judging.adapters.transport import Reply
from winnow.judging.port import JudgeRequest

KINDS = ("jev", "anthropic", "self")
HONEST = {"jev": 0.9, "anthropic": 0.9, "self": "yes"}
#: Jev speaks of each entry in an object, the others in a field.
PATHS = {"jev": lambda a: a["answers"], "anthropic": lambda a: a["content"][0]["input"], "self": lambda a: a["content"][0]["input"]}


@pytest.fixture
async def server():
    async with JudgeServer() as made:
        yield made


@pytest.fixture(params=KINDS)
def kind(request, server) -> str:
    server.judges = lambda _id, _text: HONEST[request.param]
    return request.param


def saying(kind: str, name: str, value: Any) -> Any:
    """The honest answer with `value` for the entry called `name`, as the kind's protocol says it."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        PATHS[kind](answer)[name] = {"type": "noul", "noul": value} if kind == "jev" else value
        return answer

    return acts.changed(change)


async def test_honest_answer(server, kind):
    """A good answer scores every entry, with model, tokens, latency and cost where a price is set."""
    answer = await ask(judge_at(server, kind, price_input=2.0, price_output=4.0))
    assert (answer.outcome, answer.reason) == (Outcome.JUDGED, None)
    assert said(answer) == dict.fromkeys((1, 2, 3), 1.0 if kind == "self" else 0.9)
    assert answer.judge.model == server.model
    (call,) = answer.calls
    assert (call.requests, call.input_tokens, call.entries, call.error, call.stage) == (1, 1000, 3, None, "whole")
    assert call.cost_usd == pytest.approx((1000 * 2.0 + (call.output_tokens or 0) * 4.0) / 1e6)
    assert len(server.asked) == 1


async def test_request_of_jev(server):
    """The question is the published one, word for word, about an id; texts stand in the state alone; the key is a bearer token."""
    server.judges = lambda _id, _text: 0.9
    await ask(judge_at(server, "jev"))
    (asked,) = server.asked
    assert (asked.path, asked.headers["authorization"], asked.body["model"]) == ("/v1/systemone", "Bearer k-123", "jev-1.13.0")
    assert asked.body["questions"]["b2"] == {
        "type": "noul",
        "instructions": (
            "Does entry b2 contain information that came from an environment output in the span or from the previous checkpoint, such as"
            " a value, a name, a result, or how something in the environment behaves, rather than only plans, decisions, or readings of"
            " the task?"
        ),
    }
    assert list(asked.state) == ["context", "task", "retained_interaction", "previous_checkpoint", "evidence", "entries"]
    assert asked.state["entries"] == {f"b{n}": f"- {text}" for n, text in enumerate(ENTRIES, 1)}
    assert {e["id"] for e in asked.state["evidence"]} == {"e1", "e2"}
    assert not any(text in json.dumps(asked.body["questions"]) for text in ENTRIES)


async def test_request_of_messages_api(server):
    """The answers are the fields of one forced tool call; the state is the one user message; nothing of it is in the system prompt."""
    server.judges = lambda _id, _text: 0.9
    await ask(judge_at(server, "anthropic"))
    (asked,) = server.asked
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == ("k-123", "2023-06-01")
    assert asked.body["tool_choice"] == {"type": "tool", "name": "record_answers", "disable_parallel_tool_use": True}
    schema = asked.body["tools"][0]["input_schema"]
    assert schema["required"] == ["b1", "b2", "b3"]
    assert "contain information that came from an environment output in the span" in asked.body["system"]
    assert not any(text in asked.body["system"] for text in ENTRIES)
    assert asked.state["entries"]["b1"] == "- " + ENTRIES[0]


async def test_self_judge_asks_the_compressors_own_model(server):
    """The boundary's compressor is asked where it may be, else the first model of the list; a yes is 1 and a no is 0."""
    server.judges = lambda _id, text: "no" if "aisle" in text else "yes"
    answer = await ask(judge_at(server, "self"), request(compressor="claude-y-1"))
    assert said(answer) == {1: 1.0, 2: 0.0, 3: 1.0}
    await ask(judge_at(server, "self"), request(compressor="somebody/most-expensive"))
    assert [asked.body["model"] for asked in server.asked] == ["claude-y-1", "claude-x-1"]


async def test_votes_are_combined_by_their_median(server):
    """Of three identical requests the median counts, so an entry is kept where most of them would keep it."""
    server.judges = lambda _id, _text: {1: 0.9, 2: 0.2, 3: 0.6}[len(server.asked)]
    answer = await ask(judge_at(server, "anthropic", votes=3, fan_out=1))
    assert set(said(answer).values()) == {0.6}
    assert answer.calls[0].requests == 3
    assert len({asked.raw for asked in server.asked}) == 1


async def test_f1_no_entries_no_request(server, kind):
    """F1: without entries nothing is sent."""
    empty = request()
    empty = JudgeRequest(evidence=empty.evidence.model_copy(update={"entries": ()}), task="", previous=None, retained=())
    answer = await ask(judge_at(server, kind), empty)
    assert (answer.outcome, answer.reason, answer.calls) == (Outcome.JUDGED, Reason.NO_ENTRIES, ())
    assert server.asked == []


async def test_f2_threshold_is_inclusive(server):
    """F2: exactly one half is sourced, and kept at that tau."""
    server.judges = lambda _id, _text: 0.5
    answer = await ask(judge_at(server))
    assert {score.verdict for score in answer.scores} == {Verdict.SOURCED}
    (fate,) = fates([judged(answer.scores[1].score)], tau=0.5, rules=Rules.PUBLISHED, judged=True)
    assert fate.decision is Decision.KEPT


async def test_f3_inputs_are_never_mutated(server, kind):
    """F3: the boundary is the same after it was judged, and what is sent of an entry is its text."""
    asked = request()
    before = asked.evidence.model_dump_json()
    await ask(judge_at(server, kind), asked)
    assert asked.evidence.model_dump_json() == before


async def test_f4_pinned_stays(server):
    """F4: a pinned entry is kept whatever the judge says."""
    server.judges = lambda _id, _text: 0.0
    answer = await ask(judge_at(server))
    (fate,) = fates([judged(answer.scores[0].score, pinned_by="host")], tau=0.5, rules=Rules.WINNOW, judged=True)
    assert (fate.decision, fate.reason) == (Decision.KEPT, DecisionReason.PINNED)


async def test_f5_the_retained_interaction_stays_in_pairs(server):
    """F5: nothing is deleted from the retained interaction: the judge sees each call beside its result, in order."""
    await ask(judge_at(server))
    assert [(t["id"], t["kind"]) for t in server.asked[0].state["retained_interaction"]] == [("r1", "action"), ("r2", "environment")]


@pytest.mark.parametrize(
    "value",
    [-1, 1.01, float("nan"), float("inf"), -float("inf"), True, False, "0.9", None, [0.9], {"noul": 0.9}, 10**400, "", -1e-9],
    ids=repr,
)
async def test_f6_what_is_no_probability_is_no_answer(server, kind, value):
    """F6: an answer that is not a number in [0, 1] leaves its entry unscored and the others as they are."""
    server.then(saying(kind, "b2", value))
    answer = await ask(judge_at(server, kind))
    good = 1.0 if kind == "self" else 0.9
    assert said(answer) == {1: good, 2: None, 3: good}
    assert (answer.outcome, answer.reason) == (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES)
    assert answer.scores[1].verdict is Verdict.UNSCORED
    assert errors(answer) == ["answers_unusable"]


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0])
async def test_f6_both_ends_are_probabilities(server, value):
    """F6: 0 and 1 are answers."""
    server.then(saying("jev", "b2", value))
    assert said(await ask(judge_at(server)))[2] == float(value)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b'"yes"', b"42", b"{", b'{"answers":', b'{"answers":[]}', b'{"answers":null}', b'{"answers":0.9}', b"{}",
        b'{"answers":{}} trailing', b"\xff\xfe{}", b"<html>busy</html>", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000,
        b'{"answers":{"b1":{"noul":1}},"answers":{"b1":{"noul":0}}}', b'{"content":[]}', b'{"content":"text"}',
        b'{"content":[{"type":"text","text":"b1: 0.9"}]}', b'{"content":[{"type":"tool_use","name":"other","input":{"b1":1}}]}',
        b'{"content":[{"type":"tool_use","name":"record_answers","input":[]}]}',
    ],
)  # fmt: skip
async def test_f7_malformed_bodies_are_no_answer(server, kind, body):
    """F7: a body that is not the protocol's answers nothing, is not asked for again, and says so in one word."""
    server.then(acts.raw(body))
    answer = await ask(judge_at(server, kind))
    assert (answer.outcome, answer.reason, answer.scores) == (Outcome.UNJUDGED, Reason.JUDGE_FAILED, ())
    assert errors(answer) == ["malformed"]
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind_of_answer", ["choice", "score", None, 1, ["noul"]])
async def test_f7_another_type_is_no_answer(server, kind_of_answer):
    """F7: an answer of another type than the one asked is none, though it has the right field."""
    server.then(acts.changed(lambda a: a["answers"].update(b2={"type": kind_of_answer, "noul": 0.9}) or a))
    assert said(await ask(judge_at(server))) == {1: 0.9, 2: None, 3: 0.9}


async def test_f8_type_may_be_absent(server):
    """F8: an answer without a type is one."""
    server.then(acts.changed(lambda a: a["answers"].update(b2={"noul": 0.3}) or a))
    assert said(await ask(judge_at(server)))[2] == 0.3


@pytest.mark.parametrize("field", ["probability", "score", "confidence", "probabilities"])
async def test_f9_only_the_field_that_was_asked_for_counts(server, field):
    """F9: a number under another name is not the probability."""
    server.then(acts.changed(lambda a: a["answers"].update(b2={"type": "noul", field: 0.9}) or a))
    assert said(await ask(judge_at(server)))[2] is None


async def test_f9_answers_to_what_was_not_asked_are_passed_over(server, kind):
    """F9: names that were never asked about change nothing."""
    server.then(saying(kind, "b99", HONEST[kind]))
    answer = await ask(judge_at(server, kind))
    assert answer.outcome is Outcome.JUDGED
    assert set(said(answer)) == {1, 2, 3}


async def test_f10_no_usable_answer_keeps_all_entries(server, kind):
    """F10: where no answer is usable there are no scores, so everything is kept."""
    server.then(acts.changed(lambda a: (PATHS[kind](a).clear(), a)[1]))
    answer = await ask(judge_at(server, kind))
    assert (answer.outcome, answer.scores) == (Outcome.UNJUDGED, ())
    (fate,) = fates([judged(None)], tau=0.5, rules=Rules.PUBLISHED, judged=False)
    assert fate.decision is Decision.KEPT


async def test_f12_an_answer_that_is_given_twice_is_none(server):
    """F12: two answers to one question say two things, so the entry is unscored; so does a probability that is given twice."""
    body = b'{"answers":{"b1":{"noul":1},"b1":{"noul":0},"b2":{"noul":1,"noul":0},"b3":{"noul":0.7}}}'
    server.then(acts.raw(body))
    assert said(await ask(judge_at(server))) == {1: None, 2: None, 3: 0.7}


async def test_f13_an_orphan_output_is_shown_as_it_is(server):
    """F13: an output without its call is tolerated; no pairing is invented for it."""
    await ask(judge_at(server), request(retained=(RETAINED[1], RETAINED[0])))
    assert [t["kind"] for t in server.asked[0].state["retained_interaction"]] == ["environment", "action"]


@pytest.mark.parametrize("act", [acts.stalled, acts.stalled_inside, acts.dripping], ids=["F17-before", "F17-inside", "F17-dripping"])
async def test_f17_a_stall_ends_with_the_deadline(server, kind, act):
    """F17: an endpoint that stalls before or inside the body, or drips, costs no more than the time that was given."""
    server.then(act)
    loop = asyncio.get_running_loop()
    began = loop.time()
    # With less a busy machine has none left to ask when the request is made: that is F17's neighbour, `deadline`.
    answer = await ask(judge_at(server, kind, further_attempts=0), left=1.5)
    assert loop.time() - began < 4 * 1.5
    assert (answer.outcome, errors(answer)) == (Outcome.UNJUDGED, ["timeout"])


class Deaf:
    """A transport that does not heed cancellation until it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.posts = 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        self.posts += 1
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        raise Failed(Failure.CONNECT)

    async def close(self) -> None:
        self.let_go.set()


async def test_f18_a_transport_that_ignores_cancellation_delays_nobody():
    """F17, F18: a connection that never comes, and a transport that will not be cancelled, still end with the deadline."""
    deaf = Deaf()
    answer = await ask(judge_at("http://127.0.0.1:9/", by=deaf, further_attempts=0), left=0.3)
    assert (deaf.posts, errors(answer)) == (1, ["timeout"])


async def test_f19_no_time_no_request(server, kind):
    """F19: a deadline that has passed sends nothing."""
    answer = await ask(judge_at(server, kind), left=0.0)
    assert (answer.outcome, answer.reason, errors(answer)) == (Outcome.UNJUDGED, Reason.DEADLINE, ["deadline"])
    assert answer.calls[0].requests == 0
    assert server.asked == []


async def test_f20_nothing_is_left_behind(server, kind):
    """F20: after an answer no task and no timer of the judge is left."""
    before = asyncio.all_tasks() | server._tasks
    await ask(judge_at(server, kind))
    assert asyncio.all_tasks() - before - server._tasks == set()


async def test_f24_adapters_report_to_nobody():
    """F24: adapters hold no logger, metric or trace, so none of these can fail an answer."""
    for path in Path(adapters.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert "telemetry" not in text, path.name
        assert "logging" not in text, path.name


def test_f25_the_registry_imports_on_its_own():
    """F25: what ships can be imported where only the installed package is seen, without loading what only a request needs."""
    code = (
        "import sys, winnow.judging.adapters.registry; sys.exit(bool({'detect_secrets', 'rs_bpe', 'services', 'tests'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("rules", Rules)
async def test_f27_the_users_focus_reaches_the_judge(server, kind, rules):
    """F27: what the user asked of the compressor is context for the judge; the published request does not have it."""
    await ask(judge_at(server, kind), request(custom_instructions="focus on flights", rules=rules))
    state = server.asked[0].state
    assert state.get("compaction_focus") == ("focus on flights" if rules is Rules.WINNOW else None)


async def test_f29_an_interruption_is_no_failure_of_the_judge(server):
    """F29: a caller that is cancelled stops the request, and the endpoint is not held to have failed."""
    judge = judge_at(server, breaker_failures=1)
    server.then(acts.stalled)
    task = asyncio.create_task(ask(judge))
    await server.until(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(judge)).outcome is Outcome.JUDGED


async def test_f30_a_judge_that_prunes_nothing_has_answered(server, kind):
    """F30: there is no least reduction: all entries supported is an answer like any other."""
    answer = await ask(judge_at(server, kind))
    assert (answer.outcome, {s.verdict for s in answer.scores}) == (Outcome.JUDGED, {Verdict.SOURCED})


async def test_f32_what_changes_scores_changes_the_version(server):
    """F32: layout, wording and asked model are in the version, so no score is compared across them."""
    versions = {
        judge_at(server, "jev").id.version,
        judge_at(server, "jev", model="jev-1.14.0").id.version,
        judge_at(server, "jev", state_as_text=True).id.version,
        judge_at(server, "anthropic").id.version,
        judge_at(server, "anthropic", votes=3).id.version,
        judge_at(server, "self").id.version,
    }
    assert len(versions) == 6
    assert all("/layout-1/" in version for version in versions)


async def test_f33_what_must_not_leave_does_not(server, kind):
    """F33: secrets, image bytes, excluded commands with their outputs and the system prompt are never sent; equal secrets stay equal."""
    token, image = "ghp_" + "a1B2" * 9, "data:image/png;base64," + "iVBORw0KGgo" * 40
    history = (*HISTORY, Message(i=9, kind=MessageKind.ENVIRONMENT, tool="env", text=f"GITHUB={token} logo {image}"))
    retained = (
        Message(i=10, kind=MessageKind.USER, text="!!cat ~/.netrc"),
        Message(i=11, kind=MessageKind.ENVIRONMENT, text="machine example.com login joe"),
        *RETAINED,
    )
    task = "SYSTEM PROMPT:\nthe company's confidential policy\n\nUSER:\nBook a flight."
    await ask(judge_at(server, kind), request(f"GITHUB is {token}", "logo of the page", history=history, retained=retained, task=task))
    (asked,) = server.asked
    for secret in (token, "iVBORw0KGgo", ".netrc", "machine example.com", "confidential policy"):
        assert secret.encode() not in asked.raw
    assert asked.state["task"] == "Book a flight."
    assert asked.state["entries"]["b1"] == "- GITHUB is [masked:github-token]"
    assert "GITHUB=[masked:github-token] logo [masked:data-url]" in json.dumps(asked.state["evidence"])


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (acts.status(400), "refused"), (acts.status(404), "refused"), (acts.status(422), "refused"), (acts.status(401), "unauthorised"),
        (acts.status(403), "unauthorised"), (acts.status(402), "unpaid"), (acts.endless, "body_too_large"),
        (acts.status(301, {"location": "http://127.0.0.1:9/"}), "redirected"), (acts.status(307, {"location": "/elsewhere"}), "redirected"),
        (acts.raw(b"\x1f\x8b" * 99, headers={"content-encoding": "gzip"}), "malformed"), (acts.status(304), "redirected"),
        (acts.status(429, {"retry-after": "3600"}), "rate_limited"), (acts.status(204, body=b""), "malformed"),
    ],
)  # fmt: skip
async def test_what_is_not_tried_again(server, act, error):
    """Refusals, redirects, bodies that are no answer and pauses beyond the time that is left end the call at once."""
    server.then(act)
    answer = await ask(judge_at(server))
    assert (answer.outcome, errors(answer), len(server.asked)) == (Outcome.UNJUDGED, [error], 1)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (acts.status(408), "timeout"), (acts.status(429), "rate_limited"), (acts.status(500), "server_error"),
        (acts.status(502), "server_error"), (acts.status(503), "overloaded"), (acts.status(529), "overloaded"),
        (acts.broken_off, "connect"),
    ],
)  # fmt: skip
async def test_what_is_tried_again(server, act, error):
    """What may pass is tried twice more, with growing pauses, and then given up."""
    time = Time()
    server.then(act, act)
    answer = await ask(judge_at(server, time=time), time=time)
    assert (answer.outcome, answer.calls[0].requests) == (Outcome.JUDGED, 3)
    assert time.slept == [0.5, 1.0]
    server.then(act, act, act)
    assert errors(await ask(judge_at(server, time=time), time=time)) == [error]
    assert len(server.asked) == 6


@pytest.mark.parametrize("headers", [{"retry-after": "2"}, {"retry-after-ms": "2000"}, {"retry-after": "Thu, 01 Jan 1970 00:16:42 GMT"}])
async def test_retry_after_is_heeded(server, headers):
    """The server's own pause is kept to, in seconds, milliseconds or as a date."""
    time = Time()
    server.then(acts.status(429, headers))
    assert (await ask(judge_at(server, time=time), time=time)).outcome is Outcome.JUDGED
    assert time.slept == [2.0]


async def test_nobody_there(server):
    """A refused connection is tried again and then said to be one."""
    time = Time()
    answer = await ask(judge_at("http://127.0.0.1:9/x", time=time), time=time)
    assert (errors(answer), answer.calls[0].requests) == (["connect"], 3)


async def test_lack_of_credit_under_another_status(server):
    """A 400 that speaks of the account's credit is a matter of money, not of the request."""
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}'
    server.then(acts.status(400, body=body))
    assert errors(await ask(judge_at(server, "anthropic"))) == ["unpaid"]


async def test_another_model_is_no_answer_where_one_is_expected(server):
    """Where the answering model is pinned, another one's scores are not taken; otherwise its name is stored with them."""
    server.model = "jev-1.14.0"
    assert errors(await ask(judge_at(server, expect_model="jev-1.13"))) == ["wrong_model"]
    assert (await ask(judge_at(server))).judge.model == "jev-1.14.0"


@pytest.mark.parametrize("model", [None, 7, "", "a\x00b", ["x"]])
async def test_a_model_without_a_usable_name_is_unknown(server, model):
    """What is no name is stored as unknown, and the scores count."""
    server.then(acts.changed(lambda a: {**a, "model": model}))
    answer = await ask(judge_at(server))
    assert (answer.outcome, answer.judge.model) == (Outcome.JUDGED, None)


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": -1}, {"input_tokens": True}, {"input_tokens": 1.5}, {"input_tokens": 2**70}, []]
)
async def test_unknown_tokens_are_unknown(server, usage):
    """Tokens that are not said, or are no counts, are null, and so is the cost."""
    server.then(acts.changed(lambda a: {**a, "usage": usage}))
    (call,) = (await ask(judge_at(server))).calls
    assert (call.input_tokens, call.cost_usd) == (None, None)


async def test_what_a_lost_vote_cost_is_unknown(server):
    """Where one of several votes may have been billed without an answer, the sum is unknown; a refusal costs nothing."""
    server.then(acts.raw(b"{}"))
    (call,) = (await ask(judge_at(server, "anthropic", votes=3, price_input=1.0))).calls
    assert (call.input_tokens, call.cost_usd, call.error) == (None, None, None)
    server.then(acts.status(400))
    (call,) = (await ask(judge_at(server, "anthropic", votes=3, price_input=1.0))).calls
    assert (call.input_tokens, call.cost_usd) == (2000, pytest.approx(0.002))


async def test_further_headers_are_sent_and_never_shown(server):
    """Headers for gateways go with the request, and no representation of the settings has their values."""
    made = settings(jev=spec(server, headers={"X-Gateway": "g-secret"}))
    assert "g-secret" not in repr(made)
    await ask(judge_at(server, headers={"X-Gateway": "g-secret"}))
    assert server.asked[0].headers["x-gateway"] == "g-secret"


async def test_an_unknown_price_is_no_price(server):
    """A model whose price nobody gave costs an unknown amount, not nothing."""
    (call,) = (await ask(judge_at(server, model="jev-9"))).calls
    assert (call.input_tokens, call.cost_usd) == (1000, None)
    (known,) = (await ask(judge_at(server))).calls
    assert known.cost_usd == pytest.approx(1000 * 0.042 / 1e6)


@pytest.mark.parametrize("code", [401, 402])
async def test_the_circuit_opens_at_once_where_a_person_must_act(server, code):
    """After 401 or 402 nothing is sent until the pause is over; then one request tries, and an answer closes the circuit."""
    time = Time()
    judge = judge_at(server, time=time)
    server.then(acts.status(code))
    await ask(judge, time=time)
    assert errors(await ask(judge, time=time)) == ["circuit_open"]
    assert len(server.asked) == 1
    time.now += 301
    assert (await ask(judge, time=time)).outcome is Outcome.JUDGED
    assert (await ask(judge, time=time)).outcome is Outcome.JUDGED


async def test_the_circuit_opens_after_failures_in_a_row(server):
    """Repeated failures open the circuit; a success in between starts the count again; a failed trial opens it anew."""
    time = Time()
    judge = judge_at(server, time=time, breaker_failures=2, further_attempts=0)
    for act, error in (
        (acts.status(500), "server_error"),
        (acts.honest, None),
        (acts.status(500), "server_error"),
        (acts.raw(b""), "malformed"),
    ):
        server.then(act)
        assert errors(await ask(judge, time=time)) == [error]
    assert errors(await ask(judge, time=time)) == ["circuit_open"]
    time.now += 31
    server.then(acts.status(500))
    assert errors(await ask(judge, time=time)) == ["server_error"]
    assert errors(await ask(judge, time=time)) == ["circuit_open"]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://api.example.com/v1"}, {"url": "api.example.com"}, {"url": "https://user:pw@api.example.com/"}, {"url": "https://"},
        {"url": "ftp://x/y"}, {"timeout_s": 0}, {"timeout_s": float("nan")}, {"timeout_s": float("inf")}, {"attempt_s": -1},
        {"timeout_s": 2**31}, {"api_key": "key\n"}, {"model": "jev-latest"}, {"model": "~typesafe/jev-latest"}, {"fan_out": 0},
        {"state_tokens": 30_000}, {"unknown": 1}, {"kind": "other"}, {"price_input": -1},
        {"headers": {"x y": "1"}}, {"headers": {"x": "a\nb"}}, {"further_attempts": -1}, {"context_tokens": 10},
    ],
    ids=str,
)  # fmt: skip
def test_f21_settings_that_cannot_work_are_errors_at_the_start(change):
    """F21: URLs, time-outs, keys, models and budgets are checked before the first event, and no error quotes a key."""
    given = {"kind": "jev", "api_key": "k-secret", **change}
    with pytest.raises(ValueError, match=r"judges") as told:
        settings(jev=given)
    assert "k-secret" not in str(told.value)


def judged(score: float | None, pinned_by: str | None = None) -> Judged:
    """An entry for the pruner's core."""
    root = Root(source=RootSource.NONE)
    return Judged(n=1, above=(), span=(0, 1), pinned_by=pinned_by, root=root, score=score, verdict=Verdict.UNSOURCED)
