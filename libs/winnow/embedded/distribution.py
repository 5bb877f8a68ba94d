"""Apache Kafka's jars and a Java to run them: found, or fetched once with Maven into the cache."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import MissingToolError
from winnow.embedded.lock import FileLock
from winnow.embedded.paths import cache_dir

KAFKA_VERSION = "4.4.0"
SCALA_VERSION = "2.13"

#: The version that fits the logging interface Kafka ships; it ignores newer ones and says nothing then.
SLF4J_VERSION = "1.7.36"

#: Kafka 4 brokers do not run on less.
OLDEST_JAVA = 17

#: Seconds for 44 jars, 43 MB: 4 s on a fast line.
DOWNLOAD_TIMEOUT_S = 600.0

#: Seconds for `java -version`.
JAVA_TIMEOUT_S = 60.0

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>winnow</groupId>
  <artifactId>kafka-runtime</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{SCALA_VERSION}</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>{SLF4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaDistribution:
    """What it takes to run a Kafka class."""

    java: Path
    libs: Path

    def command(self, main: str, *arguments: str | Path, options: tuple[str, ...] = ()) -> list[str | Path]:
        """Return the command line that runs the class `main`; Kafka's own log lines at warning and above."""
        logger = "-Dorg.slf4j.simpleLogger"
        logging = (f"{logger}.defaultLogLevel=warn", f"{logger}.showDateTime=true", f"{logger}.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS")
        return [self.java, *options, *logging, "-cp", f"{self.libs}/*", main, *arguments]


def why_missing() -> str | None:
    """Return what keeps Apache Kafka from running here, as a sentence that says what to install; None: nothing does."""
    try:
        _java()
        if _libs_in_place() is None:
            _maven()
    except MissingToolError as error:
        return str(error)
    return None


def obtain(progress: Callable[[str], None] = lambda _: None) -> KafkaDistribution:
    """Return Kafka, fetching it first if need be; `progress` gets one line if that happens.

    The jars are `$WINNOW_KAFKA_LIBS` (the libs folder of a Kafka download), else `kafka-VERSION` in the cache folder.

    Raises:
        MissingToolError: no Java 17, or no Maven to fetch with, or the download failed.
    """
    java = _java()
    libs = _libs_in_place() or _download(progress)
    return KafkaDistribution(java=java, libs=libs)


def _cached() -> Path:
    return cache_dir() / f"kafka-{KAFKA_VERSION}"


def _libs_in_place() -> Path | None:
    if chosen := os.environ.get("WINNOW_KAFKA_LIBS"):
        libs = Path(chosen).expanduser().absolute()
        if not list(libs.glob("kafka_*.jar")):
            text = f"WINNOW_KAFKA_LIBS: no kafka_*.jar in {libs}; name the libs folder of an Apache Kafka 4 download"
            raise MissingToolError(text)
        return libs
    return _cached() if _cached().is_dir() else None


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    advice = f"Apache Kafka needs Java {OLDEST_JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"
    if not found or not os.access(found, os.X_OK):
        text = f"{advice}; JAVA_HOME has no bin/java" if home else f"{advice}; there is no java on PATH"
        raise MissingToolError(text)
    answer = subprocess.run([found, "-version"], check=False, capture_output=True, text=True, errors="replace", timeout=JAVA_TIMEOUT_S)  # noqa: S603 - found above
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None or int(version[1]) < OLDEST_JAVA:
        text = f"{advice}; {found} is {version[1] if version else 'of unknown version'}"
        raise MissingToolError(text)
    return Path(found)


def _maven() -> Path:
    found = shutil.which("mvn")
    if not found:
        text = (
            f"fetching Apache Kafka {KAFKA_VERSION} needs Maven (Debian: apt-get install maven), "
            "or point WINNOW_KAFKA_LIBS at the libs folder of a Kafka download"
        )
        raise MissingToolError(text)
    return Path(found)


def _download(progress: Callable[[str], None]) -> Path:
    """Fetch the jars into a folder beside the final one and rename it: what is there is whole, whoever looks and whenever we die."""
    maven, target = _maven(), _cached()
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.with_name(f"{target.name}.lock"))
    lock.acquire(Deadline.after(DOWNLOAD_TIMEOUT_S))
    with lock:
        if target.is_dir():
            return target  # another process fetched it while we waited
        progress(f"fetching Apache Kafka {KAFKA_VERSION} (43 MB) into {target}")
        work = target.with_name(f".{target.name}.new")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "pom.xml").write_text(POM)
        command: list[str | Path] = [
            maven,
            "-q",
            "-B",
            "-C",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={work / 'libs'}",
        ]
        try:
            answer = subprocess.run(  # noqa: S603 - found above
                command, check=False, cwd=work, capture_output=True, text=True, errors="replace", timeout=DOWNLOAD_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            text = f"Maven did not fetch Apache Kafka within {DOWNLOAD_TIMEOUT_S:.0f} s; check the network and try again"
            raise MissingToolError(text) from None
        if answer.returncode or not (work / "libs" / f"kafka_{SCALA_VERSION}-{KAFKA_VERSION}.jar").exists():
            output = (answer.stdout + answer.stderr).strip()[-2000:]
            text = f"Maven could not fetch Apache Kafka {KAFKA_VERSION}; check its network access:\n{output}"
            raise MissingToolError(text)
        (work / "libs").rename(target)
        shutil.rmtree(work)
    return target
