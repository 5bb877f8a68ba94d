"""Known vulnerabilities of locked packages by a local copy of advisories, for places that reach no database: OSV documents, YAML or JSON.

`WINNOW_ADVISORIES` names a folder of them, for example a checkout of `pypa/advisory-database`. Versions are compared as PEP 440 says,
ranges as the OSV schema does (https://ossf.github.io/osv-schema/, section "Evaluation").
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

ECOSYSTEM = "PyPI"
#: Where a document names the packages that it is about; only those that name a locked one are parsed.
NAMED = re.compile(r"""["']?name["']?\s*:\s*["']?([A-Za-z0-9][A-Za-z0-9._-]*)""")
#: Bytes of a document; what is larger is none.
MOST_BYTES = 4 * 1024 * 1024


class NoAdvisories(Exception):
    """The folder has no document that could be read; nothing was looked up."""


@dataclass(frozen=True)
class Hit:
    """A locked package that an advisory is about."""

    package: str
    version: str
    advisory: str
    #: The first version without it, where the advisory names one above the locked version.
    fixed: str | None
    summary: str


@dataclass(frozen=True)
class Looked:
    """What was found, and in what."""

    hits: tuple[Hit, ...]
    documents: int
    #: Day of the latest document; None where none says.
    latest: date | None


def canonical(name: str) -> str:
    """The name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> dict[str, str]:
    """Packages of a lock file that come from an index, with their versions."""
    return {canonical(p["name"]): p["version"] for p in tomllib.loads(lock)["package"] if "registry" in p.get("source", {})}


def look(folder: Path, packages: Mapping[str, str]) -> Looked:
    """Look all of `packages` up. Raise `NoAdvisories` where there is nothing to look in."""
    hits: dict[tuple[str, str], Hit] = {}
    documents, latest = 0, None
    for text, path in _texts(folder):
        documents += 1
        days = re.findall(r"(?:modified|published)[\"']?\s*:\s*[\"']?(\d{4}-\d{2}-\d{2})", text)
        latest = max([*days, *([latest] if latest else [])], default=None)
        if not any(canonical(name) in packages for name in NAMED.findall(text)):
            continue
        advisory = _parsed(text, path)
        for hit in _hits(advisory, packages):
            hits.setdefault((hit.package, _known_as(advisory)), hit)
    if not documents:
        raise NoAdvisories(f"there is no advisory under {folder}")
    found = tuple(sorted(hits.values(), key=lambda hit: (hit.package, hit.advisory)))
    return Looked(hits=found, documents=documents, latest=None if latest is None else date.fromisoformat(latest))


def _texts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every document under the folder that can be one."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".yaml", ".yml", ".json"} and path.is_file() and path.stat().st_size <= MOST_BYTES:
            text = path.read_text(encoding="utf-8", errors="replace")
            if "affected" in text and "id" in text:
                yield text, path


def _parsed(text: str, path: Path) -> Mapping[str, Any]:
    """The document; a broken one is an error, for it may be the one that counts."""
    try:
        made = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as exc:
        msg = f"{path} is no advisory that can be read ({type(exc).__name__})"
        raise NoAdvisories(msg) from exc
    return made if isinstance(made, Mapping) else {}


def _known_as(advisory: Mapping[str, Any]) -> str:
    """One name for advisories of several databases about the same thing."""
    names = [str(advisory.get("id", "")), *map(str, advisory.get("aliases") or ())]
    return next((name for name in sorted(names) if name.startswith("CVE-")), names[0])


def _hits(advisory: Mapping[str, Any], packages: Mapping[str, str]) -> Iterator[Hit]:
    """Locked packages that are affected; a withdrawn advisory affects none."""
    if advisory.get("withdrawn"):
        return
    for affected in advisory.get("affected") or ():
        package = affected.get("package") or {}
        name = canonical(str(package.get("name", "")))
        if package.get("ecosystem") != ECOSYSTEM or name not in packages:
            continue
        version = packages[name]
        if is_affected(affected, version):
            text = str(advisory.get("summary") or advisory.get("details") or "").strip().splitlines()
            summary = text[0][:160] if text else ""
            yield Hit(name, version, str(advisory.get("id")), first_fixed(affected, version), summary)


def is_affected(affected: Mapping[str, Any], version: str) -> bool:
    """Whether `version` is listed, or lies in one of the ranges. A version that cannot be compared counts only where it is listed."""
    listed = [str(one) for one in affected.get("versions") or ()]
    if version in listed:
        return True
    own = _version(version)
    if own is None:
        return False
    if any(_version(one) == own for one in listed):
        return True
    return any(_in_range(events, own) for events in _ranges(affected))


def first_fixed(affected: Mapping[str, Any], version: str) -> str | None:
    """The smallest fixed version above `version`."""
    own = _version(version)
    fixed = [v for events in _ranges(affected) for kind, v in events if kind == "fixed" and (own is None or v > own)]
    return str(min(fixed)) if fixed else None


def _ranges(affected: Mapping[str, Any]) -> Iterator[list[tuple[str, Version]]]:
    """Events of each range of versions, in their order; ranges of commits say nothing about a release."""
    for one in affected.get("ranges") or ():
        if one.get("type") in {"ECOSYSTEM", "SEMVER"}:
            events = [
                (kind, made) for event in one.get("events") or () for kind, said in event.items() if (made := _event(said)) is not None
            ]
            # Of one version, what ends the range comes first.
            yield sorted(events, key=lambda event: (event[1], event[0] == "introduced"))


def _in_range(events: Iterable[tuple[str, Version]], own: Version) -> bool:
    inside = False
    for kind, version in events:
        if kind == "introduced" and version <= own:
            inside = True
        elif (kind == "fixed" and version <= own) or (kind == "last_affected" and version < own):
            inside = False
    return inside


def _event(said: object) -> Version | None:
    """The version of an event; "0" is before all of them."""
    return Version("0.dev0") if str(said) == "0" else _version(str(said))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
