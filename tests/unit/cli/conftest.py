"""Running the command line inside the test process."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from winnow.cli.app import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def winnow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path) -> Callable[..., Ran]:
    """Run `winnow` with these words; an empty state folder, no WINNOW_ variable of the machine."""
    import os

    for name in [n for n in os.environ if n.startswith("WINNOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WINNOW_STATE_DIR", str(tmp_path / "state"))

    def call(*words: str) -> Ran:
        capsys.readouterr()
        code = run(list(words))
        captured = capsys.readouterr()
        return Ran(code=int(code), out=captured.out, err=captured.err)

    return call
