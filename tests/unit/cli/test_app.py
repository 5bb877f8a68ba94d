"""The command tree: light, honest about what is missing, and clear about every error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from winnow.cli import app, exits
from winnow.cli.endpoints import Endpoints, read, remove, write
from winnow.cli.settings import BadSetting, kafka_settings
from winnow.contracts import errors

ENDPOINTS = Endpoints(
    gateway_url="http://127.0.0.1:1", api_key="wnw_x", fleet="default", kafka_bootstrap_servers="127.0.0.1:2", topic_prefix="p.",
    database_url="postgresql+asyncpg://postgres:secret@127.0.0.1:3/winnow", pid=os.getpid(),
)  # fmt: skip


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50, env={**os.environ, **env})


def test_every_command_of_the_manual_is_there_and_explains_itself(winnow):
    """`--help` names all commands, and each has a help text of its own."""
    wanted = {
        "up", "submit", "watch", "show", "runs", "judge", "judge-train", "parse", "dead-letters", "erase", "asyncapi", "db",
        "demo", "keys", "fleet", "retention", "readers", "topics", "env", "version", "monitor", "eval", "certify",
        "certificates", "calibrate", "bandit", "plan", "reproduce", "rejudge", "report", "hosts", "canaries", "streams", "alerts",
        "release", "proxy", "mcp",
        "audit", "doctor", "lag", "backup", "restore",
    }  # fmt: skip
    commands = {command.name for command in app.build().registered_commands} | {group.name for group in app.build().registered_groups}
    assert commands == wanted
    assert winnow("--help").code == 0
    for name in wanted:
        ran = winnow(name, "--help")
        assert (ran.code, ran.err) == (0, ""), name
        assert f"winnow {name}" in ran.out


def test_help_imports_no_library_of_the_services():
    """`winnow --help` loads neither the bus nor the database nor numpy."""
    ran = python(
        "import sys\nfrom winnow.cli.app import run\nrun(['--help'])\n"
        "print([m for m in ('faststream', 'aiokafka', 'sqlalchemy', 'numpy', 'httpx', 'fastapi', 'opentelemetry') if m in sys.modules])"
    )
    assert ran.stdout.splitlines()[-1] == "[]", ran.stderr


def test_a_bare_installation_says_what_to_install():
    """Without the extras, the command prints the line that brings them and exits with 1; no traceback."""
    ran = python("import sys\nsys.modules['typer'] = None\nfrom winnow.cli import main\nmain(['runs'])")
    assert ran.returncode == 1
    assert "pip install 'winnow-compaction[services]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_broken_installation_is_not_called_a_bare_one():
    """A module of ours that is missing is a defect, and shows as one."""
    ran = python("import sys\nsys.modules['winnow.cli.app'] = None\nfrom winnow.cli import main\nmain(['runs'])")
    assert "ModuleNotFoundError" in ran.stderr


@pytest.mark.parametrize(
    "words", [["nonsense"], ["parse"], ["judge", "x"], ["fleet", "set-mode", "a", "b"], ["show", "no-uuid"], ["runs", "--limit", "0"]]
)
def test_what_is_not_understood_is_2_and_told_on_standard_error(winnow, words):
    """Usage errors print nothing on standard output."""
    ran = winnow(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["runs"],
        ["submit", "-"],
        ["watch"],
        ["show", "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30"],
        ["keys", "list"],
        ["topics", "ensure"],
        ["env"],
    ],
)
def test_without_a_winnow_to_talk_to_the_error_says_how_to_get_one(winnow, words):
    """Every online command names `winnow up`, and the variables where there are some."""
    ran = winnow(*words)
    assert (ran.code, ran.out) == (1, "")
    assert "winnow up" in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound(), 3), (errors.Gone(), 3), (errors.Conflict(), 4), (errors.Retryable(), 5), (errors.Permanent(), 1),
        (errors.TooLarge(), 1), (errors.WinnowError(), 1),
    ],
)  # fmt: skip
def test_an_error_has_its_exit_code(error, code):
    """Not found, conflict and unreachable can be told apart by a script."""
    assert exits.code_of(error) == code


def test_erasing_asks_and_does_nothing_where_nobody_answers(winnow):
    """Without --yes and without a terminal, `winnow erase` refuses."""
    ran = winnow("erase", "--fleet", "default", "--run", "a[b]\x1b")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert "a[b]\\x1b" in ran.err


def test_replaying_needs_a_choice(winnow):
    """`winnow dead-letters replay` without ids and filters plays nothing."""
    assert winnow("dead-letters", "replay").code == 2


def test_endpoints_are_found_while_their_process_lives_and_are_nobody_elses_to_read(tmp_path):
    """The file is 0600, complete, and not believed once its process has ended or it is not ours."""
    write(tmp_path, ENDPOINTS)
    assert read(tmp_path) == ENDPOINTS
    assert ((tmp_path / "up.json").stat().st_mode & 0o777) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["up.json"]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    value = json.loads((tmp_path / "up.json").read_text())
    for content in (json.dumps(value | {"pid": ended.pid}), "{", "[]", json.dumps(value | {"later": 1}), json.dumps({"pid": 1})):
        (tmp_path / "up.json").write_text(content)
        assert read(tmp_path) is None
    remove(tmp_path)
    remove(tmp_path)
    assert read(tmp_path) is None


def test_env_prints_variables_that_a_shell_can_read(winnow, tmp_path):
    """`eval "$(winnow env)"` sets exactly the addresses and the key of the running Winnow."""
    (tmp_path / "state").mkdir()
    write(tmp_path / "state", ENDPOINTS)
    ran = winnow("env")
    shell = subprocess.run(
        ["sh", "-c", ran.out + 'echo "$WINNOW_API_KEY $WINNOW_DATABASE_URL"'], capture_output=True, text=True, check=True
    )
    assert shell.stdout.split() == [ENDPOINTS.api_key, ENDPOINTS.database_url]


def test_a_bad_setting_is_named_and_its_value_is_not():
    """A password in a wrong variable must not end up in a log."""
    with pytest.raises(BadSetting) as caught:
        kafka_settings({"WINNOW_PARTITIONS": "hunter2"})
    assert "WINNOW_PARTITIONS" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_settings_come_from_the_variables_that_are_given():
    """A prefix in the given environment counts, one of the process does not."""
    assert kafka_settings({"WINNOW_TOPIC_PREFIX": "t."}).topic_name("x") == "t.x"


def test_an_unexpected_reader_end_is_no_failure():
    """`winnow topics list | head -1` ends quietly."""
    ran = subprocess.run(
        ["sh", "-c", f"{sys.executable} -c \"from winnow.cli import main; main(['topics', 'list'])\" | head -1"],
        capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.stdout.startswith("topic")


@pytest.mark.parametrize("words", ["version", "asyncapi", "--help", "plan certificate --alpha .1 --true .05"])
def test_a_reader_that_has_enough_is_no_failure(words):
    """`winnow ... | head -0` ends with 0 and quietly, whichever way the command writes."""
    script = f"{sys.executable} -m winnow.cli {words} | sleep 0; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=50)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
@pytest.mark.parametrize("words", [["version"], ["asyncapi"], ["plan", "certificate", "--alpha", ".1", "--true", ".05"]])
def test_an_output_that_is_full_is_told(words):
    """What cannot be written to standard output ends as one line and 1, whether it was written at once or gathered."""
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run([sys.executable, "-m", "winnow.cli", *words], stdout=full, stderr=subprocess.PIPE, check=False, timeout=50)
    assert (ran.returncode, ran.stderr.decode()) == (1, "winnow: standard output: No space left on device\n")


def test_the_version_is_asked_for_in_either_way(winnow):
    """`winnow --version` and `winnow version` print the same."""
    option, command = winnow("--version"), winnow("version")
    assert (option.code, option.out) == (0, command.out)
    assert option.out.startswith("winnow ")


def test_a_folder_where_a_file_should_be_written_is_told(winnow, tmp_path):
    """Where results cannot go, one line names the place."""
    (tmp_path / "in").write_text("")
    ran = winnow("judge", str(tmp_path / "in"), "--out", str(tmp_path))
    assert (ran.code, ran.err) == (1, f"winnow: {tmp_path}: Is a directory\n")


def test_an_argument_that_is_no_utf_8_is_told(winnow, monkeypatch):
    """A byte that a terminal of another encoding sent has no way to the gateway: one line and 1, before anything is asked."""
    monkeypatch.setenv("WINNOW_GATEWAY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WINNOW_API_KEY", "wnw_" + "x" * 43)
    ran = winnow("runs", "\udcff")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert "UTF-8" in ran.err
