"""Structured logs."""

import io
import json
import logging

import pytest

from winnow.contracts.events import Candidate
from winnow.telemetry import Log, TelemetrySettings, Traces
from winnow.telemetry.logs import SAMPLE_LINES, SAMPLE_WINDOW_S, Sampler, handler, install


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def written():
    """A logger of its own, and what it has written."""
    stream = io.StringIO()
    logger = logging.getLogger("winnow.test_logs")
    made = handler(TelemetrySettings(log_format="json"), stream, Clock())
    logger.addHandler(made)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    yield logger, lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(made)
    logger.propagate = True


def test_a_line_is_an_event_name_with_fields(written):
    """JSON lines hold event, level, logger, time and the fields."""
    logger, lines = written
    Log(logger, {"service": "judge"}).bind(topic="t").info("batch_handled", records=3)
    [line] = lines()
    assert line["event"] == "batch_handled"
    assert line["level"] == "info"
    assert line["logger"] == "winnow.test_logs"
    assert (line["service"], line["topic"], line["records"]) == ("judge", "t", 3)
    assert line["timestamp"].endswith("Z")


def test_a_field_never_replaces_the_line_s_own_parts(written):
    """A field called event or level does not forge the line."""
    logger, lines = written
    Log(logger).info("erased", event="batch_handled", level="debug", timestamp="never")
    [line] = lines()
    assert (line["event"], line["level"]) == ("erased", "info")
    assert line["field_event"] == "batch_handled"


def test_secrets_and_content_do_not_reach_a_line(written):
    """Masks apply to fields, to exceptions and to what libraries write."""
    logger, lines = written
    error = RuntimeError("postgresql://u:hunter2hunter2@db failed")
    Log(logger).error(
        "handler_error", exc=error, password="hunter2hunter2", event_body=Candidate(fleet="f", run="r", index=1, candidate="plan")
    )
    logger.warning("library says %s", "bearer hunter2hunter2")
    assert "hunter2" not in json.dumps(lines())
    assert "plan" not in json.dumps(lines())
    assert "RuntimeError" in lines()[0]["exception"]


def test_a_line_cannot_be_forged_by_line_ends(written):
    """Untrusted text with line ends and escapes stays one line."""
    logger, lines = written
    Log(logger).info("erased", what='a\n{"event": "forged"}\x1b[31m')
    [line] = lines()
    assert "\\n" in line["what"]
    assert "\x1b" not in line["what"]


def test_the_console_shows_no_control_characters():
    """The format for people is as safe as the one for machines."""
    stream = io.StringIO()
    logger = logging.getLogger("winnow.test_console")
    made = handler(TelemetrySettings(log_format="console"), stream, Clock())
    logger.addHandler(made)
    try:
        Log(logger).warning("erased", what="a\nb\x1b[31m", exc=ValueError("x"))
    finally:
        logger.removeHandler(made)
    assert "erased" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert "a\nb" not in stream.getvalue()


def test_a_repeated_warning_is_sampled_and_counted():
    """A retry loop writes some lines a minute; the next line says how many were left out."""
    clock = Clock()
    sampler = Sampler(clock)

    def passes(message="attempt_failed", level=logging.WARNING):
        record = logging.LogRecord("l", level, "", 0, message, (), None)
        return sampler.filter(record), getattr(record, "winnow_suppressed", None)

    assert [passes()[0] for _ in range(SAMPLE_LINES + 30)] == [True] * SAMPLE_LINES + [False] * 30
    assert passes("other") == (True, None)
    assert passes(level=logging.INFO) == (True, None)
    clock.now += SAMPLE_WINDOW_S
    assert passes() == (True, 30)
    assert passes() == (True, None)


def test_the_sampler_forgets_rather_than_grows():
    """Ten thousand kinds of lines do not fill the memory."""
    sampler = Sampler(Clock())
    for i in range(10_000):
        sampler.filter(logging.LogRecord("l", logging.ERROR, "", 0, f"m{i}", (), None))
    assert len(sampler._kinds) <= 2_000


def test_nothing_is_made_for_a_line_that_is_not_written(written):
    """Below the level, fields are not touched."""
    logger, lines = written
    logger.setLevel(logging.WARNING)

    class Loud:
        def __str__(self):
            raise AssertionError

    Log(logger).debug("batch_handled", records=Loud())
    assert lines() == []


def test_installing_replaces_the_handlers_of_the_root_logger():
    """One handler serves Winnow and its libraries; the noisy ones are told to keep to warnings."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        stream = io.StringIO()
        made = install(TelemetrySettings(log_format="json", log_level="INFO"), stream)
        assert root.handlers == [made]
        logging.getLogger("aiokafka").info("joined")
        logging.getLogger("somebody").info("hello")
        assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["hello"]
    finally:
        root.handlers, root.level = before, level
        for noisy in ("aiokafka", "kafka", "faststream", "asyncio", "httpx", "httpcore", "urllib3"):
            logging.getLogger(noisy).setLevel(logging.NOTSET)


def test_a_logger_gives_its_stdlib_logger_to_libraries():
    """FastStream gets the logger underneath."""
    log = Log(logging.getLogger("winnow.x"))
    assert log.stdlib.name == "winnow.x"
    assert Traces().recording is False
