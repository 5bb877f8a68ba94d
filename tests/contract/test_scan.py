"""The scan of `make scan`: what it finds when there is something, and that there is nothing here."""

import hashlib
import importlib.metadata
import json
import secrets as randomness
from email.message import Message

import pytest

from tests.contract import scan
from tests.harness import REPOSITORY

LOCK = """
[[package]]
name = "winnow-compaction"
source = {{ editable = "." }}

[[package]]
name = "two"
version = "2.0"
source = {{ registry = "https://index.example/simple" }}
wheels = [{{ url = "https://files.example/two-2.0.whl", hash = "{hash_of_others}" }}]

[[package]]
name = "three"
version = "3.0"
source = {{ registry = "https://index.example/simple" }}
wheels = [{{ url = "https://files.example/three-3.0.whl", hash = "{hash_of_others}" }}]

[[package]]
name = "one"
version = "1.0"
source = {{ registry = "{index}" }}
wheels = [{{ url = "https://files.example/one-1.0.whl", hash = "{hash}" }}]
"""
GOOD = {"hash_of_others": "sha256:" + "1" * 64, "index": "https://index.example/simple", "hash": "sha256:" + "0" * 64}


def planted() -> dict[str, str]:
    """Secrets as people leave them behind, put together here so that this file holds none."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    return {
        "aws": "aws_key = AKIA" + "".join(randomness.choice(alphabet) for _ in range(16)),
        "github": "token: ghp_" + randomness.token_hex(18),
        "winnow": "export KEY=wnw_" + randomness.token_urlsafe(32),
        "pem": "-----BEGIN RSA PRIVATE " + "KEY-----\n" + randomness.token_hex(64) + "\n-----END RSA PRIVATE KEY-----",
        "password": 'password = "' + randomness.token_hex(12) + '"',
        "url": "postgresql://winnow:" + randomness.token_hex(8) + "@db.example/winnow",
    }


@pytest.mark.parametrize("name", sorted(planted()))
def test_a_planted_secret_is_found(tmp_path, name):
    """A secret in a source file is found with its line and kind, and its value is not shown; once accepted it is known."""
    text = planted()[name]
    (tmp_path / "module.py").write_text(f"# nothing\n{text}\n")
    (found, *_) = scan.secrets(["module.py"], tmp_path, {})
    assert found.place == "module.py:2"
    assert text.split()[-1] not in found.what
    marks = [finding.what.rpartition("(")[2].rstrip(")") for finding in scan.secrets(["module.py"], tmp_path, {})]
    assert scan.secrets(["module.py"], tmp_path, {"module.py": marks}) == []


def test_hashes_and_made_up_passwords_are_no_secrets(tmp_path):
    """Commit hashes, ids and base64 words are what code is full of; tests make up passwords."""
    (tmp_path / "tests").mkdir()
    words = f"{hashlib.sha256(b'x').hexdigest()} 0b8f6d2e-6c1b-4a55-9f0e-5b8f2f4f8a10 aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ="
    (tmp_path / "module.py").write_text(words)
    (tmp_path / "tests" / "test_it.py").write_text('password = "hunter2-secret"')
    assert scan.secrets(["module.py", "tests/test_it.py"], tmp_path, {}) == []


def test_the_lock_file_is_looked_at():
    """A file without a hash, a package of another index, and a package without files are found."""
    assert scan.lock(LOCK.format(**GOOD)) == []
    for changes in ({"hash": ""}, {"hash": "md5:00"}, {"index": "https://elsewhere.example/simple"}):
        (found,) = scan.lock(LOCK.format(**GOOD | changes))
        assert found.place == "one 1.0"
    assert scan.rules("[tool.uv]\n") != []


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        ({"License-Expression": "MIT"}, True), ({"License-Expression": "GPL-2.0-or-later OR MIT"}, True), ({"License": "LGPL-3.0"}, True),
        ({"License-Expression": "GPL-3.0-only"}, False),
        ({"Classifier": "License :: OSI Approved :: GNU Affero General Public License v3"}, False),
        ({"License": "SSPL"}, False), ({}, False),
    ],
)  # fmt: skip
def test_licences(said, fine):
    """A licence that binds whoever passes Winnow on is found, a choice of two is not, and none is."""
    message = Message()
    message["Name"] = "one"
    for name, value in said.items():
        message[name] = value

    class Package(importlib.metadata.PathDistribution):
        metadata = message

    assert (scan.licences([Package(REPOSITORY)]) == []) is fine


def test_nothing_is_to_be_looked_at_here():
    """The repository as it is: a lock file with hashes, and licences that may be shipped. Its secrets `make scan` looks for."""
    assert scan.lock((REPOSITORY / "uv.lock").read_text()) == []
    assert scan.rules((REPOSITORY / "pyproject.toml").read_text()) == []
    found = scan.shipped()
    assert {"fastapi", "aiokafka", "sqlalchemy"} <= {one.metadata["Name"].lower() for one in found}
    assert scan.licences(found) == []


def test_what_is_known_is_still_there():
    """The list of known ones names files of the repository: what is gone from it goes from the list."""
    known = json.loads(scan.KNOWN.read_text())
    assert set(known) <= set(scan.tracked())
