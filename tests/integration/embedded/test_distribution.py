"""Finding Java and fetching Kafka's jars, with programs that only pretend to be Java and Maven."""

import subprocess
import sys
from pathlib import Path

import pytest

from winnow.embedded import MissingToolError, distribution

JAR = f"kafka_{distribution.SCALA_VERSION}-{distribution.KAFKA_VERSION}.jar"

MAVEN = """\
echo call >> {calls}
for word; do
    case $word in -DoutputDirectory=*) out=${{word#*=}} ;; esac
done
mkdir -p "$out"
: > "$out/{jar}"
"""


def program(path: Path, body: str) -> None:
    """Write a shell script."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Java 17 and a Maven that makes one jar and counts its calls in the file `calls`."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("WINNOW_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("JAVA_HOME", "WINNOW_KAFKA_LIBS"):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    program(tmp_path / "bin" / "mvn", MAVEN.format(calls=tmp_path / "calls", jar=JAR))
    return tmp_path


def test_fetches_once(machine: Path) -> None:
    """The first call fetches and says so; the next finds the jars in the cache and needs no Maven."""
    lines: list[str] = []
    libs = distribution.obtain(lines.append).libs
    assert (libs / JAR).exists()
    assert len(lines) == 1
    (machine / "bin" / "mvn").unlink()
    assert distribution.obtain(lines.append).libs == libs
    assert len(lines) == 1
    assert libs.parent == machine / "cache"


def test_two_processes_fetch_once(machine: Path) -> None:
    """Two processes that want the jars at the same time make one download between them, and both get it."""
    code = "from winnow.embedded import distribution; print(distribution.obtain().libs)"
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate()[0].strip() for process in processes}
    assert answers == {str(machine / "cache" / f"kafka-{distribution.KAFKA_VERSION}")}
    assert (machine / "calls").read_text().splitlines() == ["call"]


@pytest.mark.parametrize("body", ["echo no route to host; exit 1", "exit 0"])
def test_failed_download_leaves_nothing(machine: Path, body: str) -> None:
    """A download that fails, or that claims success without the jar, is an error, and the next try starts afresh."""
    good = (machine / "bin" / "mvn").read_text()
    program(machine / "bin" / "mvn", body)
    with pytest.raises(MissingToolError, match="could not fetch Apache Kafka"):
        distribution.obtain()
    (machine / "bin" / "mvn").write_text(good)
    assert (distribution.obtain().libs / JAR).exists()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is 11"),
        ('java version "1.8.0_292"', "is 8"),
        ("what?", "is of unknown version"),
        ('openjdk version "17" 2021-09-14', None),
        ('openjdk version "21-ea" 2023-09-19', None),
    ],
)
def test_java_versions(machine: Path, answer: str, text: str | None) -> None:
    """Java 17 and newer will do, whatever its version looks like; anything else is named, with what to install."""
    program(machine / "bin" / "java", f"echo '{answer}' >&2")
    if text is None:
        assert distribution.why_missing() is None
    else:
        with pytest.raises(MissingToolError, match=f"needs Java 17.*apt-get install openjdk.*{text}"):
            distribution.obtain()


def test_what_is_missing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Maven or Java is told what to install; an explicit libs folder needs no Maven and is checked."""
    monkeypatch.setenv("PATH", str(machine / "bin"))
    assert distribution.why_missing() is None
    (machine / "bin" / "mvn").unlink()
    assert "apt-get install maven" in (distribution.why_missing() or "")
    monkeypatch.setenv("WINNOW_KAFKA_LIBS", str(machine / "libs"))
    assert "no kafka_*.jar" in (distribution.why_missing() or "")
    (machine / "libs").mkdir()
    (machine / "libs" / JAR).touch()
    assert distribution.obtain().libs == machine / "libs"
    (machine / "bin" / "java").unlink()
    assert "there is no java on PATH" in (distribution.why_missing() or "")
    monkeypatch.setenv("JAVA_HOME", str(machine / "jdk"))
    assert "JAVA_HOME has no bin/java" in (distribution.why_missing() or "")
