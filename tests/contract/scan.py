"""`make scan`: what came with the dependencies, and secrets that must not be in the repository.

Four looks. Three need no network: the lock file (each file has a hash, from one index, nothing younger than the rule allows), the licences
of what is shipped, and secrets in tracked files. The fourth looks for known vulnerabilities, in a local copy of advisories
(`WINNOW_ADVISORIES`, see `advisories`) and in a database on the network, and says plainly where it could not.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.contract import advisories
from tests.harness.data import REPOSITORY
from winnow.judging.adapters.masking import detectors

#: Secrets that are known and none: path -> the first digits of their SHA-256. `--accept` writes it; look at each before.
KNOWN = REPOSITORY / ".ci" / "known-secrets.json"
#: Where passwords are made up on purpose, kinds that are told by the words around them say nothing.
MADE_UP = ("tests/", "docs/", "README.md")
BY_WORDS = frozenset({"secret-keyword", "basic-auth-credentials"})
#: Characters of one of Winnow's own keys; a shorter one stands for it in a test.
WHOLE_KEY = 47
#: A private key is found by its head, which no text in the code has whole; the masker takes it out before its detectors look.
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----\s*[A-Za-z0-9+/=\s]{60,}")
#: The lock file's own look checks it; its hashes are no secrets.
NOT_READ = frozenset({"uv.lock"})
#: Extras that are shipped to users.
EXTRAS = ("services", "mcp", "plots", "anthropic", "embedded")
#: Licences that bind whoever passes the product on, or that are none. LGPL and MPL bind those files alone.
BINDING = re.compile(r"(?<!L)\b(?:A?GPL|GNU (?:Affero )?General Public|SSPL|BUSL|Commons Clause|Proprietary|CC-BY-NC)", re.IGNORECASE)
#: Packages whose metadata names no licence, and where it stands instead.
STATED: Mapping[str, str] = {}
#: The database of known vulnerabilities that `uv audit` asks.
VULNERABILITIES = ("api.osv.dev", 443)
ANSWER_S = 5.0


@dataclass(frozen=True)
class Finding:
    """Something that must be looked at."""

    place: str
    what: str


def secrets(paths: Iterable[str], root: Path = REPOSITORY, known: Mapping[str, Sequence[str]] | None = None) -> list[Finding]:
    """Secrets in files that are not among the `known` ones. Their values are not shown."""
    accepted = known if known is not None else _known()
    return [
        Finding(f"{path}:{line}", f"{kind} ({mark})")
        for path, line, kind, mark in _found(paths, root)
        if mark not in accepted.get(path, ())
    ]


def _found(paths: Iterable[str], root: Path) -> Iterator[tuple[str, int, str, str]]:
    """Path, line, kind and mark of every secret."""
    for path in paths:
        if path in NOT_READ or not (root / path).is_file():
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image: the detectors read text
        spans = [(*found.span(), "private-key") for found in PRIVATE_KEY.finditer(text)]
        spans += [(low, high, detector.kind) for detector in detectors() for low, high in detector.spans(text)]
        for low, high, kind in sorted(set(spans)):
            if path.startswith(MADE_UP) and (kind in BY_WORDS or (kind == "winnow-key" and high - low < WHOLE_KEY)):
                continue
            yield path, text.count("\n", 0, low) + 1, kind, hashlib.sha256(text[low:high].encode()).hexdigest()[:16]


def _known() -> dict[str, list[str]]:
    return dict(json.loads(KNOWN.read_text())) if KNOWN.exists() else {}


def lock(text: str) -> list[Finding]:
    """What is wrong in a lock file: all packages come from one index, the one that most of them name."""
    findings: list[Finding] = []
    packages = tomllib.loads(text)["package"]
    ((index, _),) = Counter(p["source"].get("registry", "") for p in packages if "registry" in p["source"]).most_common(1) or [("", 0)]
    for package in packages:
        name, source = f"{package['name']} {package.get('version', '')}".strip(), package["source"]
        if source in ({"editable": "."}, {"virtual": "."}):
            continue
        if source != {"registry": index}:
            findings.append(Finding(name, f"comes from {source}, not from {index}"))
        files: list[dict[str, Any]] = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
        if not files:
            findings.append(Finding(name, "has no file"))
        findings += [Finding(name, f"{file['url'].rsplit('/', 1)[-1]} has no SHA-256") for file in files if not _hashed(file)]
    return findings


def _hashed(file: Mapping[str, Any]) -> bool:
    return re.fullmatch(r"sha256:[0-9a-f]{64}", str(file.get("hash", ""))) is not None


def rules(project: str) -> list[Finding]:
    """What the project must say about its dependencies."""
    said = tomllib.loads(project)["tool"]["uv"]
    return (
        [] if said.get("exclude-newer") else [Finding("pyproject.toml", "tool.uv.exclude-newer is not set: a release must be a week old")]
    )


def shipped() -> list[importlib.metadata.Distribution]:
    """The distributions that an installation with all extras brings, as far as they are here."""
    wanted, seen = [("winnow-compaction", EXTRAS)], dict[str, importlib.metadata.Distribution]()
    while wanted:
        name, extras = wanted.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        try:
            found = seen.get(key) or importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        if key in seen and not extras:
            continue
        seen[key] = found
        for line in found.requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                more = tuple(needed.extras)
                if re.sub(r"[-_.]+", "-", needed.name).lower() not in seen:
                    wanted.append((needed.name, more))
    return [found for name, found in sorted(seen.items()) if name != "winnow-compaction"]


def licence(found: importlib.metadata.Distribution) -> str:
    """What a distribution says of its licence; empty where it says nothing."""
    said = found.metadata
    classifiers = [c.rsplit(" :: ", 1)[-1] for c in said.get_all("Classifier") or () if c.startswith("License ::")]
    text = said.get("License-Expression") or "; ".join(classifiers) or (said.get("License") or "").strip().splitlines()[:1]
    return text if isinstance(text, str) else "".join(text)


def licences(distributions: Iterable[importlib.metadata.Distribution]) -> list[Finding]:
    """Distributions whose licence binds whoever passes Winnow on, or that state none."""
    findings = []
    for found in distributions:
        name = found.metadata["Name"]
        said = licence(found) or STATED.get(name, "")
        # "A or B": one of them may be chosen.
        if not said:
            findings.append(Finding(name, "states no licence; look it up and add it to STATED"))
        elif all(BINDING.search(choice) for choice in re.split(r"\bOR\b", said)):
            findings.append(Finding(name, f"{said}: binds whoever passes the product on"))
    return findings


def vulnerabilities() -> tuple[list[Finding], str]:
    """Known vulnerabilities of locked packages, and a word on where they were looked up and where not."""
    folder = os.environ.get("WINNOW_ADVISORIES")
    found, said = told_by(Path(folder)) if folder else ([], "")
    online, word = asked()
    return found + online, f"{said}; {word}" if said else word


def told_by(folder: Path, lock_text: str | None = None) -> tuple[list[Finding], str]:
    """The same by a local copy of advisories. One that cannot be read is a finding: nothing was looked up in it."""
    packages = advisories.locked((REPOSITORY / "uv.lock").read_text() if lock_text is None else lock_text)
    try:
        looked = advisories.look(folder, packages)
    except advisories.NoAdvisories as exc:
        return [Finding("WINNOW_ADVISORIES", str(exc))], "no local copy of advisories could be read"
    findings = [
        Finding(
            f"{hit.package} {hit.version}", f"{hit.advisory}: {hit.summary} ({f'mended in {hit.fixed}' if hit.fixed else 'not mended'})"
        )
        for hit in looked.hits
    ]
    return findings, f"of {len(packages)} packages in {looked.documents} local advisories, the latest of {looked.latest or 'no day'}"


def asked() -> tuple[list[Finding], str]:
    """The same by the database on the network."""
    uv = os.environ.get("UV") or shutil.which("uv") or shutil.which("uv", path=str(REPOSITORY / ".uv" / "bin"))
    if not uv:
        return [], "not looked up online: there is no uv here"
    try:
        socket.create_connection(VULNERABILITIES, ANSWER_S).close()
    except OSError:
        return [], f"not looked up online: {VULNERABILITIES[0]} cannot be reached from here"
    told = subprocess.run([uv, "audit", "--frozen"], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300)
    text = (told.stdout + told.stderr).strip()
    return ([Finding("uv audit", text[-4000:])] if told.returncode else []), f"by uv audit at {VULNERABILITIES[0]}"


def tracked() -> list[str]:
    """The files of the repository, as git knows them."""
    said = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60)
    return [path for path in said.stdout.split("\0") if path]


def main() -> int:
    """Look, and tell; 1 where something must be looked at."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract.scan", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--accept", action="store_true", help="take the secrets that are found for none, and write them down")
    if parser.parse_args().accept:
        known: dict[str, list[str]] = {}
        for path, _, _, mark in _found(tracked(), REPOSITORY):
            if mark not in known.setdefault(path, []):
                known[path].append(mark)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return 0
    everything = shipped()
    found, word = vulnerabilities()
    looks = {
        "lock file": (lock((REPOSITORY / "uv.lock").read_text()) + rules((REPOSITORY / "pyproject.toml").read_text()), "hashes and source"),
        "licences": (licences(everything), f"of {len(everything)} packages"),
        "secrets": (secrets(tracked()), "in tracked files"),
        "known vulnerabilities": (found, word),
    }
    for name, (findings, what) in looks.items():
        result = f"{len(findings)} to look at" if findings else "nothing found"
        sys.stdout.write(f"{name}: {what}\n" if what.startswith("not ") and not findings else f"{name}, {what}: {result}\n")
        for finding in findings:
            sys.stdout.write(f"  {finding.place}: {finding.what}\n")
    return 1 if any(findings for findings, _ in looks.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
