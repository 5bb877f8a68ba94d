"""`winnow up`: a whole Winnow on this machine until Ctrl-C."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, plain

if TYPE_CHECKING:
    from winnow.cli.endpoints import Endpoints
    from winnow.cli.stack import Stack

#: Seconds between two looks at whether everything still runs.
WATCH_S = 0.5


class Stopped(BaseException):
    """A signal asked us to stop. No `Exception`: nothing on the way may take it for a failure of its own."""


def up(
    *,
    broker: Annotated[
        str, typer.Option(help="`mesh`: from a wheel, memory only; `kafka`: Apache Kafka, its log survives, needs Java 17.")
    ] = "mesh",
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Data in temporary folders, deleted at the end; no fsync.")] = False,
    one_process: Annotated[
        bool, typer.Option("--one-process", help="All services in one process: 100 MB less memory, later answers.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, envvar="WINNOW_GATEWAY_PORT", help="Port of the gateway; left out: 8484 if it is free.")
    ] = None,
) -> None:
    """Run PostgreSQL, a Kafka broker and all services on this machine; Ctrl-C stops them.

    WINNOW_DATABASE_URL and WINNOW_KAFKA_BOOTSTRAP_SERVERS replace either part by your own. Data lies in WINNOW_STATE_DIR
    (~/.local/state/winnow) and survives restarts; what the memory broker held does not, but what came over HTTP is published again.
    """
    from winnow.cli.stack import BrokerKind, Plan, Stack
    from winnow.embedded import AlreadyRunningError, state_dir

    terminal = Terminal()
    if broker not in list(BrokerKind):
        terminal.fail(f"there is no broker {broker!r}; choose from {', '.join(BrokerKind)}", ExitCode.USAGE)
    plan = Plan(state=state_dir(), broker=BrokerKind(broker), ephemeral=ephemeral, gateway_port=port, one_process=one_process)
    stack = Stack(plan, say=lambda text: terminal.note(f"… {text}"), environment=os.environ)
    try:
        with stopping_on_signals():
            tell(terminal, stack.start(), plan.state, ephemeral=ephemeral)
            while True:
                time.sleep(WATCH_S)
                stack.check()
    except Stopped:
        terminal.note("… stopping (again to stop at once)")
    except AlreadyRunningError as exc:
        terminal.fail(str(exc), ExitCode.CONFLICT)
    finally:
        with hurrying(stack):
            stack.stop()
    terminal.note("stopped")


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Within it, SIGINT and SIGTERM raise `Stopped` in the main thread."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def hurrying(stack: "Stack") -> Iterator[None]:
    """Within it, a signal no longer interrupts but ends the services at once, so that everything else is still put away."""
    previous = {number: signal.signal(number, lambda *_: stack.hurry()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def tell(terminal: Terminal, endpoints: "Endpoints", state: os.PathLike[str], *, ephemeral: bool) -> None:
    """Print where everything listens and how to reach it; secrets are named by where they lie."""
    from sqlalchemy import URL, make_url

    url = make_url(endpoints.database_url)
    shown = URL.create("postgresql", username=url.username, host=url.host, port=url.port, database=url.database).render_as_string()
    lines = [
        ("gateway", f"{endpoints.gateway_url}  ({endpoints.gateway_url}/openapi.json)"),
        ("console", f"{endpoints.gateway_url}/console  (sign in with the key in {endpoints.console_key_file})"),
        ("kafka", endpoints.kafka_bootstrap_servers + (f"  topics {endpoints.topic_prefix}winnow.*" if endpoints.topic_prefix else "")),
        ("sql", f"{shown}  (with password: winnow env)"),
        ("fleet", endpoints.fleet),
        ("state", f"{os.fspath(state)}" + ("  (data is temporary)" if ephemeral else "")),
    ]
    terminal.show(Text("Winnow is up.", style="bold green"))
    for name, value in lines:
        terminal.show(Text.assemble((f"  {name:<9}", "cyan"), plain(value)))
    terminal.show(Text("In another terminal:", style="bold"))
    for command, what in (
        ("winnow runs", "what came in"),
        ("winnow watch", "boundaries as they are committed"),
        ("winnow db query 'SELECT * FROM fleet_daily'", "SQL"),
        ('eval "$(winnow env)"', "WINNOW_GATEWAY_URL and WINNOW_API_KEY for your agent"),
    ):
        terminal.show(Text.assemble(f"  {command:<45}", (what, "dim")))
    sys.stdout.flush()
