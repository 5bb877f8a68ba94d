"""The command tree, and what happens to an error that reaches it."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from winnow.cli import (
    alerts,
    asyncapi,
    audit,
    backup,
    bandit,
    calibrate,
    canaries,
    certificates,
    certify,
    database,
    dead_letters,
    demo,
    doctor,
    env,
    erase,
    fleet,
    hosts,
    judge,
    judge_train,
    keys,
    lag,
    mcp,
    monitor,
    parse,
    plan,
    proxy,
    readers,
    rejudge,
    release,
    report,
    reproduce,
    retention,
    runs,
    show,
    streams,
    submit,
    topics,
    up,
    version,
    watch,
)
from winnow.cli import eval as evaluation
from winnow.cli.exits import ExitCode, code_of
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import WinnowError

HELP = """Winnow prunes the summary, not the history.

At every compaction boundary it checks each entry of the summary for a source, removes those that have none, and keeps the originals.

Offline:  hosts, parse, judge, judge-train, canaries, eval, monitor, certify, calibrate, bandit, plan, reproduce,
asyncapi.
A whole Winnow on this machine:  up, demo.  Through the gateway:  submit, watch, show, runs, proxy, mcp.
For operators:  doctor, lag, report, rejudge, certificates, fleet, release, streams, alerts, audit, keys, readers,
dead-letters, erase, backup, restore, retention, db, topics.

Every setting is an environment variable WINNOW_...; while `winnow up` runs, the other commands find it by themselves.

Exit codes: 0 done, 1 failed or part of the input was bad, 2 not understood, 3 not found, 4 conflict, 5 unreachable, 6 a gate was not
met, 7 it works and something needs a look (doctor), 130 interrupted.
"""


def _show_version(asked: bool) -> None:  # noqa: FBT001  typer's callback
    """Print the version and stop, where it was asked for."""
    if asked:
        version.version()
        raise typer.Exit


def build() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        name="winnow",
        help=HELP,
        no_args_is_help=True,
        # A traceback with local values would print texts of agents and secrets.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(everywhere)
    app.command("up")(up.up)
    app.command("demo")(demo.demo)
    app.command("submit")(submit.submit)
    app.command("watch")(watch.watch)
    app.command("proxy")(proxy.proxy)
    app.command("mcp")(mcp.mcp)
    app.command("show")(show.show)
    app.command("runs")(runs.runs)
    app.command("judge")(judge.judge)
    app.command("canaries")(canaries.canaries)
    app.command("judge-train")(judge_train.judge_train)
    app.command("parse")(parse.parse)
    app.command("monitor")(monitor.monitor)
    app.command("certify")(certify.certify)
    app.add_typer(certificates.group(), name="certificates")
    app.command("calibrate")(calibrate.calibrate)
    app.command("bandit")(bandit.bandit)
    app.add_typer(plan.group(), name="plan")
    app.add_typer(reproduce.group(), name="reproduce")
    app.add_typer(evaluation.group(), name="eval")
    app.add_typer(hosts.group(), name="hosts")
    app.add_typer(fleet.group(), name="fleet")
    app.command("release")(release.release)
    app.add_typer(streams.group(), name="streams")
    app.command("alerts")(alerts.alerts)
    app.command("audit")(audit.audit)
    app.add_typer(keys.group(), name="keys")
    app.add_typer(readers.group(), name="readers")
    app.add_typer(dead_letters.group(), name="dead-letters")
    app.command("erase")(erase.erase)
    app.add_typer(report.group(), name="report")
    app.command("rejudge")(rejudge.rejudge)
    app.command("doctor")(doctor.doctor)
    app.command("lag")(lag.lag)
    app.command("backup")(backup.backup)
    app.command("restore")(backup.restore)
    app.command("retention")(retention.retention)
    app.add_typer(database.group(), name="db")
    app.add_typer(topics.group(), name="topics")
    app.command("asyncapi")(asyncapi.asyncapi)
    app.command("env")(env.env)
    app.command("version")(version.version)
    return app


def everywhere(
    *,
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_show_version)] = False,
) -> None:
    """What every command takes."""


#: What standard output says of the disk that it is led to: full, a quota, broken, a file too large. No file is named with it.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


def run(arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit code. Errors of ours and of files end as one line on standard error; others as a traceback."""
    code: int = ExitCode.OK
    try:
        try:
            build()(args=None if arguments is None else list(arguments), prog_name="winnow")
        finally:
            sys.stdout.flush()  # here a full disk can still be told; at the interpreter's end it could not
    except SystemExit as exc:
        code = _code(exc)
    except WinnowError as exc:
        Terminal().error(str(exc))
        code = code_of(exc)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        _mute()  # the reader (head, less) has what it wanted
    except UnicodeEncodeError:
        Terminal().error("an argument or a text holds what has no UTF-8 bytes; write it anew")
        code = ExitCode.FAILURE
    except OSError as exc:
        if not exc.filename:
            if exc.errno not in _UNWRITABLE:
                raise
            _mute()  # what is left cannot be written either
        Terminal().error(f"{exc.filename or 'standard output'}: {exc.strerror or exc}")
        code = ExitCode.FAILURE
    return code


def _code(ended: SystemExit) -> int:
    """The exit code that Typer meant."""
    if isinstance(ended.__context__, BrokenPipeError):  # it calls that a failure; the reader (head, less) has what it wanted
        return ExitCode.OK
    return ended.code if isinstance(ended.code, int) else ExitCode.FAILURE if ended.code else ExitCode.OK


def _mute() -> None:
    """Write to standard output no more: the interpreter would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
