"""Which broker the tests run on."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from winnow.embedded import APACHE_KAFKA, BrokerHandle, Capability, KafkaBroker, MeshBroker, MissingToolError, distribution

KAFKA, MESH, EXTERNAL = "kafka", "mesh", "external"


class ExternalBroker:
    """A broker that somebody else runs, named by KAFKA_BOOTSTRAP; not ours to stop (`BrokerHandle`)."""

    def __init__(self, bootstrap: str) -> None:
        """Name it."""
        self._bootstrap = bootstrap

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return self._bootstrap

    @property
    def capabilities(self) -> frozenset[Capability]:
        """It is taken for Apache Kafka."""
        return APACHE_KAFKA

    @property
    def alive(self) -> bool:
        """We are told that it runs."""
        return True

    @property
    def log_file(self) -> Path | None:
        """Not ours."""
        return None

    def start(self) -> Self:
        """Do nothing: it runs."""
        return self

    def stop(self) -> None:
        """Do nothing: others may use it."""

    def kill(self) -> None:
        """Refuse; a test that kills names `Capability.CONTROL`."""
        msg = "the broker of KAFKA_BOOTSTRAP is not ours to kill; mark the test with needs('control')"
        raise AssertionError(msg)

    def restart(self) -> None:
        """Refuse; a test that restarts names `Capability.CONTROL`."""
        self.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChoice:
    """The broker of this run, decided before anything is started."""

    name: str
    capabilities: frozenset[Capability]
    notice: str = ""  # for the terminal summary
    problem: str = ""  # why tests that need a broker must fail
    bootstrap: str = ""  # of an external one

    def make(self, directory: Path) -> BrokerHandle:
        """Return a broker that is not started yet, with its files in `directory`."""
        if self.name == EXTERNAL:
            return ExternalBroker(self.bootstrap)
        return KafkaBroker(directory) if self.name == KAFKA else MeshBroker(directory)


def choose(why_kafka_is_missing: Callable[[], str | None] = distribution.why_missing) -> BrokerChoice:
    """Decide by the environment, else take Apache Kafka where it can run, else the embedded broker, with a notice.

    KAFKA_BOOTSTRAP names a running broker; WINNOW_TEST_BROKER=kafka or mesh forces one; WINNOW_REQUIRE_KAFKA=1 or CI=true makes it an
    error where Apache Kafka cannot run.
    """
    if bootstrap := os.environ.get("KAFKA_BOOTSTRAP"):
        notice = f"integration ran on the broker at {bootstrap} (KAFKA_BOOTSTRAP)"
        return BrokerChoice(name=EXTERNAL, capabilities=APACHE_KAFKA, notice=notice, bootstrap=bootstrap)
    forced = os.environ.get("WINNOW_TEST_BROKER", "")
    mesh = BrokerChoice(name=MESH, capabilities=frozenset({Capability.CONTROL}))
    if forced == MESH:
        return replace(mesh, notice="integration ran on the embedded broker: WINNOW_TEST_BROKER=mesh")
    kafka = BrokerChoice(name=KAFKA, capabilities=APACHE_KAFKA | {Capability.CONTROL})
    if forced not in {"", KAFKA}:
        return replace(kafka, problem=f"WINNOW_TEST_BROKER={forced}: the choice is kafka or mesh")
    return without_kafka(missing) if (missing := why_kafka_is_missing()) else kafka


def without_kafka(why: str) -> BrokerChoice:
    """Return what to do where Apache Kafka cannot run: fail where it is required, else the embedded broker and a notice."""
    required = [name for name in ("WINNOW_REQUIRE_KAFKA", "CI") if os.environ.get(name, "").lower() in {"1", "true"}]
    if os.environ.get("WINNOW_TEST_BROKER") == KAFKA:
        required.append("WINNOW_TEST_BROKER=kafka")
    if required:
        return BrokerChoice(name=KAFKA, capabilities=APACHE_KAFKA, problem=f"{' and '.join(required)}: Apache Kafka is required, but {why}")
    notice = f"integration ran on the embedded broker: Java 17 or Maven missing ({why.splitlines()[0]})"
    return BrokerChoice(name=MESH, capabilities=frozenset({Capability.CONTROL}), notice=notice)


def fetched(choice: BrokerChoice, progress: Callable[[str], None]) -> BrokerChoice:
    """Fetch the jars now, outside any test's time limit; return the choice that is left if that fails."""
    if choice.name != KAFKA or choice.problem:
        return choice
    try:
        distribution.obtain(progress)
    except MissingToolError as error:
        return without_kafka(str(error))
    return choice
