"""The container set-up: valid, without secrets, and each of its commands starts in a clean environment and becomes ready."""

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic_settings import BaseSettings

from tests.harness import wait_for
from winnow.embedded import Deadline, ports
from winnow.embedded.child import Child

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
SERVICES = ("gateway", "retriever", "judge", "pruner", "drift_monitor")
JOBS = ("migrate", "topics")
#: Seconds until a service must be ready: it imports for 2 s and joins its group on a machine that does other things too.
READY_S = 50.0
#: Seconds until a service must have ended after SIGTERM: its own hard limit is 28 s.
STOP_S = 32.0


def compose() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())


def seconds(text: str) -> float:
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text)
    assert parts, text
    return int(parts[1] or 0) * 60 + int(parts[2] or 0)


def test_the_file_is_valid_by_the_compose_specification():
    """The specification's own JSON schema accepts the file."""
    schema = json.loads(resources.files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(compose())


def test_the_schema_does_refuse_a_misspelt_key():
    """The check above would notice a mistake."""
    schema = json.loads(resources.files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    broken = compose()
    broken["services"]["judge"]["comand"] = ["x"]
    assert list(jsonschema.validators.validator_for(schema)(schema).iter_errors(broken))


def test_every_process_of_the_design_has_a_container():
    """Broker, database, both jobs and one container a service."""
    assert {"kafka", "postgres", *JOBS, *SERVICES} <= set(compose()["services"])
    assert compose()["services"]["kafka"]["image"].startswith("apache/kafka:4.")
    assert compose()["services"]["postgres"]["image"] == "postgres:18"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_the_jobs_is_watched_and_has_time_to_drain(name):
    """Jobs first, a health check, no privileges, and more grace than the services give themselves."""
    from winnow.messaging.settings import KafkaSettings

    service = compose()["services"][name]
    assert service["command"][-1] == name
    assert {job: service["depends_on"][job]["condition"] for job in JOBS} == dict.fromkeys(JOBS, "service_completed_successfully")
    assert service["healthcheck"]["test"][0] == "CMD"
    assert seconds(service["stop_grace_period"]) > KafkaSettings.model_fields["hard_exit_s"].default
    assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_waits_for_its_server_and_is_not_started_for_ever(name):
    """A job needs its server healthy, ends, and is tried again only where it failed."""
    job = compose()["services"][name]
    assert [c["condition"] for c in job["depends_on"].values()] == ["service_healthy"]
    assert job["restart"] == "on-failure"


def test_servers_have_health_checks_and_keep_their_data():
    """Broker and database are watched, and their data lies in volumes."""
    for name in ("kafka", "postgres"):
        server = compose()["services"][name]
        assert server["healthcheck"]["test"][0] == "CMD"
        assert server["volumes"][0].split(":")[0] in compose()["volumes"]


def test_no_secret_stands_in_the_files():
    """Passwords are required variables; nothing in the file would do as one."""
    text = FILE.read_text()
    passwords = re.findall(r"(?:PASSWORD: |://winnow:)(\S+?)[@\s]", text)
    assert passwords
    assert all(p.startswith("${WINNOW_POSTGRES_PASSWORD:?") for p in passwords)
    assert "PASSWORD" not in (ROOT / "Dockerfile").read_text()


def test_ports_are_published_on_this_machine_only():
    """Nothing but the gateway, and Grafana for who asks for it, is reachable from outside the network, and from this machine alone."""
    published = {name: s["ports"] for name, s in compose()["services"].items() if "ports" in s}
    assert set(published) == {"gateway", "grafana"}
    assert all(port.startswith("127.0.0.1:") for ports_of in published.values() for port in ports_of)


def test_every_winnow_variable_in_the_file_is_a_setting():
    """A variable that nothing reads would be a promise that is not kept."""
    from services.__main__ import NAMES, settings_of
    from services.gateway.console.settings import ConsoleSettings
    from services.settings import ProcessSettings
    from winnow.messaging.settings import KafkaSettings
    from winnow.storage.settings import DatabaseSettings
    from winnow.telemetry.settings import TelemetrySettings

    known = {f"WINNOW_{f.upper()}" for s in (ProcessSettings, KafkaSettings, DatabaseSettings, TelemetrySettings) for f in s.model_fields}
    known |= {f"WINNOW_{f.upper()}" for name in NAMES for f in settings_of(name).model_fields}
    known |= {f"WINNOW_{f.upper()}" for f in ConsoleSettings.model_fields}
    for name, service in compose()["services"].items():
        assert {v for v in service.get("environment", {}) if v.startswith("WINNOW_")} <= known, name


def secret_settings() -> dict[str, set[str]]:
    """Variables whose value is a secret, by the service that reads them; what all services read stands under an empty name."""
    from services.__main__ import NAMES, settings_of
    from services.gateway.console.settings import ConsoleSettings
    from winnow.messaging.settings import KafkaSettings

    def of(*classes: type[BaseSettings]) -> set[str]:
        return {f"WINNOW_{n.upper()}" for c in classes for n, field in c.model_fields.items() if "SecretStr" in str(field.annotation)}

    found = {name: of(settings_of(name)) for name in NAMES} | {"": of(KafkaSettings)}
    return found | {"gateway": found["gateway"] | of(ConsoleSettings)}


def test_a_secret_comes_from_outside_and_to_the_service_that_needs_it_alone():
    """Secrets of the console and of the webhook are passed through by name, without a value, to one service; judges' keys have a file."""
    services, secrets = compose()["services"], secret_settings()
    assert "WINNOW_CONSOLE_SECRET" in secrets["gateway"]
    assert "WINNOW_WEBHOOK_SECRET" in secrets["drift_monitor"]
    passed = {
        name: {v for v, value in service.get("environment", {}).items() if value is None and v in set().union(*secrets.values())}
        for name, service in services.items()
    }
    assert {name: said for name, said in passed.items() if said} == {
        "gateway": {"WINNOW_CONSOLE_SECRET"}, "drift_monitor": {"WINNOW_WEBHOOK_SECRET"},
    }  # fmt: skip
    assert [name for name, s in services.items() if "judges.env" in str(s.get("env_file"))] == ["judge"]


@pytest.mark.parametrize("name", [*SERVICES, *JOBS, "winnow", "retention"])
def test_any_other_setting_can_be_given(name):
    """A file that need not be there holds what the compose file does not say; it and the others with secrets are not tracked."""
    assert {"path": "winnow.env", "required": False} in compose()["services"][name]["env_file"]
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {".env", "winnow.env", "judges.env"} <= set(ignored)


def test_the_command_at_the_top_writes_what_is_asked_for(tmp_path):
    """The line to copy makes a file with every secret that has no default, long enough for the settings that read it."""
    text = FILE.read_text()
    [line] = re.findall(r"^#   (printf .* > \.env)", text, re.MULTILINE)
    assert line in (ROOT / "docs" / "operations.md").read_text()
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, done.stderr
    said = dict(entry.split("=", 1) for entry in (tmp_path / ".env").read_text().splitlines())
    assert set(said) == {*re.findall(r"\$\{(WINNOW_\w+):\?", text), "WINNOW_CONSOLE_SECRET"}
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in said.values())


def test_the_image_runs_as_nobody_in_particular_and_from_locked_dependencies():
    """The last stage has a user that is not root; dependencies come from the lock file."""
    text = (ROOT / "Dockerfile").read_text()
    last = text.rsplit("FROM ", 1)[1]
    assert re.search(r"^USER winnow$", last, re.MULTILINE)
    assert text.count("uv sync --frozen") == 2
    assert re.search(r'^CMD \["python", "-m", "services"\]$', last, re.MULTILINE)


def test_the_image_is_built_from_all_that_the_package_needs():
    """What the build copies is let through by `.dockerignore`, and exists."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        part for line in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE) for part in line.split()[:-1]
    }
    assert copied == let_through
    assert all((ROOT / part).exists() for part in copied)


def clean_environment(name: str, **settings: str) -> dict[str, str]:
    """PATH and HOME, and the variables that the compose file gives this service, with addresses of our own."""
    given = compose()["services"][name]["environment"]
    own = {k: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(v)) for k, v in given.items() if v is not None and k.startswith("WINNOW_")}
    return {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": "/nonexistent"} | own | settings


def command_of(name: str) -> list[str]:
    """The command of the compose file, with its program found as the container finds it."""
    first, *rest = compose()["services"][name]["command"]
    found = shutil.which(first, path=str(Path(sys.executable).parent))
    assert found, first
    return [found, *rest]


@pytest.mark.timeout(150)
def test_each_command_starts_in_a_clean_environment_and_becomes_ready(broker, empty_database, topic_prefix, tmp_path):
    """With nothing but PATH, HOME and WINNOW_ variables, the jobs succeed and every service gets ready, and ends by SIGTERM with 0."""
    common = {
        "WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
        "WINNOW_DATABASE_URL": empty_database.dsn,
        "WINNOW_TOPIC_PREFIX": topic_prefix,
        "WINNOW_PARTITIONS": "2",
    }
    for job in JOBS:
        done = subprocess.run(
            command_of(job), env=clean_environment(job, **common), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
    running: dict[str, tuple[Child, int]] = {}
    try:
        for name in SERVICES:
            port = ports.pick()
            env = clean_environment(name, **common, WINNOW_STATUS_PORT=str(port), WINNOW_STATUS_HOST="127.0.0.1")
            if name == "gateway":
                env |= {"WINNOW_CONSOLE_SECRET": "s" * 48, "WINNOW_CONSOLE_COOKIE_SECURE": "true", "WINNOW_DRAIN_DELAY_S": "0.1"}
                env |= {"WINNOW_GATEWAY_PORT": str(ports.pick(avoid=[port])), "WINNOW_GATEWAY_HOST": "127.0.0.1"}
            running[name] = Child(command_of(name), log=tmp_path / f"{name}.log", cwd=tmp_path, env=env), port
        for name, (child, port) in running.items():
            wait_for(lambda child=child, port=port: not child.alive or is_ready(port), READY_S, what=f"{name} to be ready")
            assert child.alive, f"{name}: {child.output()}"
        for child, _ in running.values():
            child.send(signal.SIGTERM)
        for name, (child, _) in running.items():
            assert child.wait(Deadline.after(STOP_S)), f"{name} does not stop: {child.output()}"
            assert child.returncode == 0, f"{name}: {child.output()}"
    finally:
        for child, _ in running.values():
            child.kill()


def is_ready(port: int) -> bool:
    """What the container's health check asks."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=4) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
