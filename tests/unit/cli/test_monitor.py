"""`winnow monitor`: files of losses, offline."""

import importlib.util
import io
import json
import random
import sys
from pathlib import Path

import pytest


@pytest.fixture
def drifting(tmp_path):
    """2,000 healthy units at half the budget of .1, then 600 at twice the budget."""
    source = random.Random(1)
    path = tmp_path / "drifting.txt"
    path.write_text("".join(f"{int(source.random() < (0.05 if i < 2_000 else 0.2))}\n" for i in range(2_600)))
    return path


def test_json_has_one_line_a_file(winnow, drifting, tmp_path):
    """Each file is one object with units, alarm, evidence and window; a healthy and an empty file have neither alarm nor window."""
    (tmp_path / "healthy.txt").write_text("0\n" * 50 + "\n")
    (tmp_path / "empty.txt").write_text("")
    ran = winnow("monitor", str(drifting), str(tmp_path / "healthy.txt"), str(tmp_path / "empty.txt"), "--alpha", ".1", "--json")
    drift, healthy, empty = map(json.loads, ran.out.splitlines())
    assert ran.code == 0
    assert list(drift) == ["file", "n", "alarm", "log_e", "change_window"]
    assert (drift["file"], drift["n"]) == (str(drifting), 2_600)
    assert 2_000 < drift["alarm"] < 2_600
    assert drift["log_e"] > 2.99  # ln 20
    first, last = drift["change_window"]
    assert first <= 2_001 <= last <= drift["alarm"]
    assert (healthy["n"], healthy["alarm"], healthy["change_window"]) == (50, None, None)
    assert healthy["log_e"] < 0
    assert empty == {"file": str(tmp_path / "empty.txt"), "n": 0, "alarm": None, "log_e": 0.0, "change_window": None}


def test_standard_input_and_paired_losses(winnow, monkeypatch):
    """A dash reads standard input, and --lo -1 takes paired differences."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n0\n-1\n" + b"1\r\n" * 20)))
    ran = winnow("monitor", "-", "--alpha", ".05", "--lo", "-1", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["alarm"] is not None


@pytest.mark.parametrize(
    "line",
    [
        b"nan",
        b"inf",
        b"-1e-9",
        b"1.0000001",
        b"true",
        b"1_0",
        b"0x1",
        b"",
        b"1,0",
        b"\x00",
        b"\xff\xfe",
        "\N{ARABIC-INDIC DIGIT ONE}".encode(),
        b"9" * 1_000_000,
        b"(" * 1_000_000,
        b"1 0",
        b"--1",
        b".",
    ],
    ids=range(17),
)
def test_a_bad_line_is_named(winnow, tmp_path, line):
    """A line that is no loss fails its file with name and number on standard error; the other files go on."""
    (tmp_path / "bad.txt").write_bytes(b"0\n1\n" + line + b"\n0\n")
    (tmp_path / "good.txt").write_text("0\n")
    ran = winnow("monitor", str(tmp_path / "bad.txt"), str(tmp_path / "good.txt"), "--alpha", ".1", "--json")
    assert ran.code == 1
    assert [json.loads(r)["file"] for r in ran.out.splitlines()] == [str(tmp_path / "good.txt")]
    assert "bad.txt, line 3: " in ran.err
    assert len(ran.err) < 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--alpha", "0"], "alpha must lie"),
        (["--alpha", "nan"], "alpha must be a finite"),
        (["--alpha", ".1", "--delta", "1"], "delta must lie"),
        (["--alpha", ".1", "--lo", "-2"], "lo must be"),
        (["--alpha", ".1", "--method", "hope"], "method must be one of"),
        (["--alpha", ".1", "--plot", "chart.gif"], ".svg or .png"),
        (["--alpha", ".1", "--horizon", "9", "--arl", "9"], "arl belongs to mode arl"),
    ],
)
def test_parameters_that_mean_nothing(winnow, drifting, words, said):
    """A parameter out of range is refused in words before any file is read."""
    ran = winnow("monitor", str(drifting), *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_a_file_that_is_not_there(winnow, tmp_path):
    """A missing file is named, with exit code 1."""
    ran = winnow("monitor", str(tmp_path / "nowhere.txt"), "--alpha", ".1")
    assert ran.code == 1
    assert "nowhere.txt: No such file" in ran.err


def test_a_person_reads_a_table(winnow, drifting):
    """Without --json there is a table, and below it what an alarm means."""
    ran = winnow("monitor", str(drifting), "--alpha", ".1", "--warn-alpha", ".075")
    assert "change likely at" in ran.out
    assert "No alarm is no proof" in ran.err


def test_a_horizon_ends_the_watch(winnow, drifting):
    """With a horizon the units behind it are not folded: the drift after it raises no alarm."""
    assert json.loads(winnow("monitor", str(drifting), "--alpha", ".1", "--horizon", "1500", "--json").out)["alarm"] is None
    assert json.loads(winnow("monitor", str(drifting), "--alpha", ".1", "--horizon", "5000", "--json").out)["alarm"] > 2_000


def test_plots(winnow, drifting, tmp_path):
    """A plot is drawn as SVG or PNG; the same losses give the same SVG."""
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg", "c.png"):
        assert winnow("monitor", str(drifting), "--alpha", ".1", "--plot", str(tmp_path / name)).code == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "likely change" in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(winnow, drifting, tmp_path, monkeypatch):
    """Where matplotlib is missing, a plot is refused before the work, with the command that installs it."""
    real = importlib.util.find_spec
    monkeypatch.setattr("winnow.cli.monitor_plot.find_spec", lambda name: None if name == "matplotlib" else real(name))
    ran = winnow("monitor", str(drifting), "--alpha", ".1", "--plot", str(tmp_path / "a.svg"))
    assert ran.code == 1
    assert "pip install 'winnow-compaction[plots]'" in ran.err


def test_a_thousand_files_in_one_call(winnow, tmp_path):
    """A thousand files are a thousand lines, in the order given."""
    names = [str(tmp_path / f"{i}.txt") for i in range(1_000)]
    for i, name in enumerate(names):
        Path(name).write_text("0\n" * (i % 7))
    found = [json.loads(r) for r in winnow("monitor", *names, "--alpha", ".05", "--json").out.splitlines()]
    assert [(f["file"], f["n"]) for f in found] == [(name, i % 7) for i, name in enumerate(names)]
