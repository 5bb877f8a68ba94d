"""The look for known vulnerabilities in a local copy of advisories: made-up ones, and none that is overlooked."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.contract import advisories, scan

LOCK = """
[[package]]
name = "winnow-compaction"
source = { editable = "." }

[[package]]
name = "made-up"
version = "1.5.0"
source = { registry = "https://index.example/simple" }
"""


def advisory(*events: dict[str, str], name: str = "Made_Up", versions: tuple[str, ...] = (), **more) -> dict:
    """A document about one package, as OSV writes it."""
    affected = {
        "package": {"name": name, "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}] if events else [],
        "versions": list(versions),
    }
    return {"id": "PYSEC-2026-1", "modified": "2026-11-29T00:00:00Z", "summary": "It runs what it reads", "affected": [affected]} | more


def told(tmp_path, *documents: dict, text: str | None = None):
    """What the scan says of a lock file with `made-up` 1.5.0."""
    for n, document in enumerate(documents):
        place = tmp_path / f"v{n}" / ("a.json" if n % 2 else "a.yaml")
        place.parent.mkdir()
        place.write_text(json.dumps(document) if n % 2 else yaml.safe_dump(document))
    if text is not None:
        (tmp_path / "broken.yaml").write_text(text)
    return scan.told_by(tmp_path, LOCK)


@pytest.mark.parametrize(
    ("document", "hit"),
    [
        (advisory({"introduced": "0"}, {"fixed": "1.5.1"}), True),
        (advisory({"introduced": "0"}, {"fixed": "1.5.0"}), False),
        (advisory({"introduced": "0"}, {"fixed": "1.5"}), False),
        (advisory({"introduced": "1.5"}), True),
        (advisory({"introduced": "1.6"}), False),
        (advisory({"introduced": "0"}, {"last_affected": "1.5.0"}), True),
        (advisory({"introduced": "0"}, {"last_affected": "1.4"}), False),
        (advisory({"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "1.4"}, {"fixed": "2"}), True),
        (advisory({"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "1.6"}), False),
        (advisory(versions=("1.5",)), True),
        (advisory(versions=("1.4", "1.6")), False),
        (advisory({"introduced": "0"}, name="made-up-too"), False),
        (advisory({"introduced": "0"}, withdrawn="2026-11-30T00:00:00Z"), False),
    ],
)
def test_a_locked_package_is_found_where_its_version_is_affected(tmp_path, document, hit):
    """Ranges, lists and names as the OSV schema says; a withdrawn advisory and another package say nothing."""
    findings, said = told(tmp_path, document)
    assert [finding.place for finding in findings] == (["made-up 1.5.0"] if hit else [])
    assert "1 packages in 1 local advisories, the latest of 2026-11-29" in said


def test_a_finding_says_what_is_wrong_and_which_version_mends_it(tmp_path):
    """Id, summary and the smallest fixed version above ours; the same in two databases is one finding."""
    one = advisory({"introduced": "0"}, {"fixed": "1.5.2"}, {"introduced": "2"}, {"fixed": "2.1"}, aliases=["CVE-2026-1"])
    findings, _ = told(tmp_path, one, one | {"id": "GHSA-aaaa", "aliases": ["CVE-2026-1"]})
    assert [finding.what for finding in findings] == ["PYSEC-2026-1: It runs what it reads (mended in 1.5.2)"]


def test_ranges_of_commits_and_other_ecosystems_say_nothing_of_a_release(tmp_path):
    """Only versions on the index are compared."""
    commits, other = advisory({"introduced": "0"}), advisory({"introduced": "0"})
    commits["affected"][0]["ranges"][0]["type"] = "GIT"
    other["affected"][0]["package"]["ecosystem"] = "npm"
    assert told(tmp_path, commits, other)[0] == []


@pytest.mark.parametrize("text", ["affected: id: {made-up", "id: [\n affected name: made-up"])
def test_what_cannot_be_read_is_said_and_not_passed_over(tmp_path, text):
    """An empty folder, a missing one and a broken document are findings: nothing was looked up."""
    (finding,), said = scan.told_by(tmp_path / "nowhere", LOCK)
    assert (finding.place, said) == ("WINNOW_ADVISORIES", "no local copy of advisories could be read")
    (finding,), _ = told(tmp_path, text=f"name: made-up\n{text}")
    assert "broken.yaml is no advisory that can be read" in finding.what


def test_the_folder_is_looked_in_where_one_is_set(tmp_path, monkeypatch):
    """The scan says what was looked up locally, and beside it what could not be asked."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(advisory({"introduced": "0"}, name="aiokafka")))
    monkeypatch.setenv("WINNOW_ADVISORIES", str(tmp_path))
    monkeypatch.setattr(scan, "asked", lambda: ([], "not looked up online: nobody answers"))
    findings, said = scan.vulnerabilities()
    assert [finding.place.split()[0] for finding in findings] == ["aiokafka"]
    assert said.endswith("the latest of 2026-11-29; not looked up online: nobody answers")
    monkeypatch.delenv("WINNOW_ADVISORIES")
    assert scan.vulnerabilities() == ([], "not looked up online: nobody answers")


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_a_range_is_what_lies_between_its_ends(own, low, high):
    """From the introduction on, below the fix; a version that is both counts as affected."""
    affected = {"ranges": [{"type": "ECOSYSTEM", "events": [{"fixed": f"{high}"}, {"introduced": f"{low}"}]}]}
    inside = advisories.is_affected(affected, f"{own}")
    assert inside is (low <= own and (own < high or high <= low))
