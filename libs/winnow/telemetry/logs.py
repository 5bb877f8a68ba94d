"""Structured logs: JSON lines for machines, coloured lines for people; one handler for Winnow and the libraries it uses."""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog
from opentelemetry import trace

from winnow.telemetry.events import LogEvent
from winnow.telemetry.redaction import format_exception, mask, mask_text, printable
from winnow.telemetry.settings import TelemetrySettings

#: Lines of one kind within one window; the next line that passes says how many were left out. A consumer in a retry loop without
#: this wrote 1.8 million lines in four minutes.
SAMPLE_LINES = 20
#: Seconds.
SAMPLE_WINDOW_S = 60.0
#: Kinds that are told apart; beyond it the window is forgotten rather than memory grown.
SAMPLE_KINDS = 2_000

_Fields = MutableMapping[str, Any]


class Log:
    """A logger whose events come from the registry. Fields are masked: secrets, content and endless texts never reach a line."""

    def __init__(self, logger: logging.Logger, fields: dict[str, object] | None = None) -> None:
        self._logger = logger
        self._fields = fields or {}

    def __repr__(self) -> str:
        return f"<Log({self._logger.name})>"

    @property
    def stdlib(self) -> logging.Logger:
        """The logger underneath, for libraries that want one."""
        return self._logger

    def bind(self, **fields: object) -> "Log":
        """A logger that adds `fields` to every line."""
        return Log(self._logger, {**self._fields, **fields})

    def debug(self, event: LogEvent, /, **fields: object) -> None:
        """For a developer who looks closely."""
        self._write(logging.DEBUG, event, None, fields)

    def info(self, event: LogEvent, /, **fields: object) -> None:
        """Normal and worth knowing."""
        self._write(logging.INFO, event, None, fields)

    def warning(self, event: LogEvent, /, *, exc: BaseException | None = None, **fields: object) -> None:
        """Wrong, and dealt with."""
        self._write(logging.WARNING, event, exc, fields)

    def error(self, event: LogEvent, /, *, exc: BaseException | None = None, **fields: object) -> None:
        """Wrong, and somebody must look."""
        self._write(logging.ERROR, event, exc, fields)

    def _write(self, level: int, event: LogEvent, exc: BaseException | None, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=exc, extra={"winnow_fields": {**self._fields, **fields}})


class Sampler(logging.Filter):
    """Lets through the first lines of each kind in a window and counts the rest."""

    def __init__(self, clock: Callable[[], float], lines: int = SAMPLE_LINES, window_s: float = SAMPLE_WINDOW_S) -> None:
        super().__init__()
        self._clock = clock
        self._lines = lines
        self._window_s = window_s
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Warnings and errors are sampled by logger, level and text template; what is normal is not."""
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, record.levelno, str(record.msg)[:200])
        now = self._clock()
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= self._window_s:
            if count > self._lines:
                record.winnow_suppressed = count - self._lines
            since, count = now, 0
        if len(self._kinds) >= SAMPLE_KINDS and kind not in self._kinds:
            self._kinds.clear()
        self._kinds[kind] = (since, count + 1)
        return count < self._lines


def _fields(_: Any, __: str, line: _Fields) -> _Fields:  # noqa: ANN401  structlog's processor signature
    """Take the fields of `Log`, or the message of a library, from the record."""
    record: logging.LogRecord = line["_record"]
    fields = getattr(record, "winnow_fields", None)
    if fields:
        line.update({f"field_{k}" if k in {"event", "level", "logger", "timestamp"} else k: v for k, v in fields.items()})
    suppressed = getattr(record, "winnow_suppressed", None)
    if suppressed:
        line["suppressed"] = suppressed
    return line


def _trace(_: Any, __: str, line: _Fields) -> _Fields:  # noqa: ANN401  structlog's processor signature
    """Name the trace that the line belongs to."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        line["trace_id"] = trace.format_trace_id(context.trace_id)
        line["span_id"] = trace.format_span_id(context.span_id)
    return line


def _masked(_: Any, __: str, line: _Fields) -> _Fields:  # noqa: ANN401  structlog's processor signature
    """Mask every field; the traceback becomes a text without values."""
    exc_info = line.pop("exc_info", None)
    exc = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    for name in [n for n in line if not n.startswith("_")]:
        line[name] = mask(name, line[name])
    if isinstance(exc, BaseException):
        line["exception"] = format_exception(exc)
    return line


def handler(settings: TelemetrySettings, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> logging.Handler:
    """A log handler that writes to `stream` as set."""
    console = settings.log_format == "console" or (settings.log_format == "auto" and stream.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
        if console
        else structlog.processors.JSONRenderer(ensure_ascii=True)
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[_fields, structlog.stdlib.ProcessorFormatter.remove_processors_meta, _masked, renderer],
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _trace,
        ],
    )
    made = logging.StreamHandler(stream)
    made.setFormatter(formatter)
    made.addFilter(Sampler(clock))
    return made


def install(settings: TelemetrySettings, stream: TextIO | None = None) -> logging.Handler:
    """Send the logs of this process to `stream` (standard error by default). For composition roots: it changes the root logger."""
    made = handler(settings, stream or sys.stderr)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(made)
    root.setLevel(settings.log_level)
    # aiokafka tells every join and every fetch session at INFO; warnings are what an operator can act on.
    for noisy in ("aiokafka", "kafka", "faststream", "asyncio", "httpx", "httpcore", "urllib3"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(settings.log_level)))
    return made


__all__ = ["Log", "Sampler", "handler", "install", "mask_text", "printable"]
