"""`python -m services [NAME ...]`: all services, or the named ones, in one process."""

import argparse
import asyncio
import gc
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import cast

from aiokafka.errors import KafkaError
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

from services.settings import ProcessSettings
from winnow.contracts.errors import Permanent, WinnowError
from winnow.contracts.rights import NotAllowed
from winnow.messaging import rights
from winnow.messaging.reach import told
from winnow.messaging.runtime import EXIT_FAILED, Service, draining, run
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.status import StatusServer
from winnow.messaging.topics import ensure_topics
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry
from winnow.telemetry.logs import install
from winnow.telemetry.metrics import Metrics
from winnow.telemetry.otlp import Exports
from winnow.telemetry.settings import TelemetrySettings

#: Every service; its composition root is `services.<name>.app.build`.
NAMES = ("gateway", "retriever", "judge", "pruner", "drift_monitor")
#: Seconds that a start waits for a broker that is still coming up.
BROKER_PATIENCE_S = 60.0
#: sysexits.h: the settings are wrong; a supervisor need not try again.
EXIT_CONFIG = 78

#: Objects between two collections of the youngest generation: a batch of boundaries makes tens of thousands that all die by themselves.
GC_THRESHOLD = 100_000

Build = Callable[[Telemetry, KafkaSettings, DatabaseSettings], Service]


def builder(name: str) -> Build:
    """The composition root of a service. Imported when it is asked for: one service's process does not load the others' libraries."""
    return cast("Build", importlib.import_module(f"services.{name}.app").build)


def collect_seldom() -> None:
    """What is loaded by now stays until the end. Frozen, it is not looked at again.

    Events and rows are many small objects, and collecting among everything took a fifth of a stage's time (29 against 42 boundaries a
    second) and two thirds of decoding observations.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 50, 100)


async def serve(names: Sequence[str]) -> int:
    """Check the topics, then run the services until a signal ends them; return the exit status."""
    process, kafka, database, reporting = ProcessSettings(), KafkaSettings(), DatabaseSettings(), TelemetrySettings()
    for name in names:
        settings_of(name)()  # a setting that cannot work is said at once, not after a minute's wait for the broker
    install(reporting)
    metrics = Metrics()
    telemetry = Telemetry.open("process", reporting, metrics)
    exports = Exports.open(reporting, metrics)
    parts = {name: Telemetry.open(name, reporting, metrics) for name in names}
    try:
        await _topics(names, kafka, telemetry, create=process.topics_create)
        services = [builder(name)(parts[name], kafka, database) for name in names]
        collect_seldom()
        stop = asyncio.Event()
        checks = [draining(stop)]
        status = StatusServer(
            process.status_host, process.status_port, lambda: [*checks, *(c for s in services for c in s.checks())], telemetry
        )
        await status.start()
        try:
            return await run(
                services,
                telemetry=telemetry,
                settings=kafka,
                stop=stop,
                drain_delay_s=process.drain_delay_s,
                on_ready=lambda: telemetry.log.info("service_ready", part="process", status_port=status.port),
            )
        finally:
            await status.stop()
    except NotAllowed as error:
        telemetry.log.error("not_allowed", error=error, missing=[right.grant for right in error.missing])  # noqa: TRY400  as below
        return EXIT_FAILED
    except (WinnowError, KafkaError, OSError) as error:
        telemetry.log.error("service_failed", part="process", doing="start", error=error)  # noqa: TRY400  the text says what to do
        return EXIT_FAILED
    finally:
        for part in (*parts.values(), telemetry):
            part.close()
        exports.close()


async def _topics(names: Sequence[str], kafka: KafkaSettings, telemetry: Telemetry, *, create: bool) -> None:
    """See what the broker allows, create and check the topics; wait a while for a broker that is still coming up."""
    deadline = asyncio.get_running_loop().time() + BROKER_PATIENCE_S
    while True:
        try:
            await rights.check(kafka, names)
            await ensure_topics(kafka, telemetry, may_create=create)
        except KafkaError as error:
            found = await told(kafka, error)
            if isinstance(found, Permanent) or asyncio.get_running_loop().time() > deadline:
                raise found from error  # a password does not become right by waiting
            telemetry.log.warning("attempt_failed", doing="topics", error=found)
            await asyncio.sleep(1.0)
        else:
            return


def settings_of(name: str) -> type[BaseSettings]:
    """The settings class of a service, for documentation and checks."""
    module = importlib.import_module(f"services.{name}.settings")
    return next(v for v in vars(module).values() if isinstance(v, type) and issubclass(v, BaseSettings) and v.__module__ == module.__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m services",
        description="Run Winnow's services in one process. Settings: environment variables WINNOW_* (docs/configuration.md).",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(NAMES)}; none: all of them")
    names = parser.parse_args(argv).names or list(NAMES)
    unknown = [n for n in names if n not in NAMES]
    if unknown:
        parser.error(f"there is no service {', '.join(unknown)}; there are {', '.join(NAMES)}")
    try:
        return asyncio.run(serve(list(dict.fromkeys(names))))
    except ValidationError as error:
        for problem in error.errors(include_input=False, include_url=False):
            name = "_".join(str(part) for part in problem["loc"]).upper()
            sys.stderr.write(f"WINNOW_{name.removeprefix('WINNOW_')}: {problem['msg']}\n")
        return EXIT_CONFIG
    except SettingsError as error:  # a variable that should be JSON; its text names the field and quotes nothing
        sys.stderr.write(f"WINNOW_ settings: {error}\n")
        return EXIT_CONFIG


if __name__ == "__main__":
    sys.exit(main())
