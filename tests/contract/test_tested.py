"""Every page of the console, command, adapter, reader and host program has a test that names it."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from services.gateway.console import pages
from tests.console.test_pages import PAGES
from winnow.cli.app import build
from winnow.client import hosts
from winnow.client.readers import READERS
from winnow.hosts_assets import PROGRAMS

TESTS = Path(__file__).parents[1]
#: Templates that no address has alone: parts of others, and the page of an error, which is `missing` among the pages.
PARTS = {"base", "macros", "failed"}


def commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command that does something."""
    if not hasattr(command, "commands"):
        return [path]
    return [words for name, one in command.commands.items() for words in commands(one, (*path, name))]


@pytest.fixture(scope="module")
def texts() -> str:
    """All tests but this one."""
    return "\n".join(path.read_text() for path in TESTS.rglob("test_*.py") if path != Path(__file__))


def test_every_command_is_run_by_a_test(texts):
    """Its words stand in a row in a test."""
    missing = [
        words for words in commands(get_command(build())) if not re.search(r",\s*".join(f'"{re.escape(word)}"' for word in words), texts)
    ]
    assert missing == []


def test_every_page_is_opened_in_the_browser():
    """Each template is one of the pages that Chromium opens in both schemes and at phone width."""
    templates = {path.stem.replace("_", "-") for path in (Path(pages.__file__).parent / "templates").glob("*.html")}
    assert templates - PARTS - set(PAGES) == set()


def test_every_adapter_reader_and_program_is_tested(texts):
    """Each module of the adapters is imported by a test, each reader reads, and each program is installed or run."""
    adapters = {path.stem for path in Path(hosts.__file__).parent.glob("*.py")} - {"__init__", "bridge"}
    assert {name for name in adapters if f"winnow.client.hosts.{name} import" not in texts} == set()
    assert {name for name in (*READERS, *PROGRAMS) if f'"{name}"' not in texts} == set()
