"""Where a running `winnow up` listens, in a file that the other commands read."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

#: In the state folder; mode 0600, since it holds the database password and the API key.
FILE = "up.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Everything that a client of one Winnow needs."""

    gateway_url: str
    api_key: str
    fleet: str
    kafka_bootstrap_servers: str
    topic_prefix: str
    #: SQLAlchemy URL with password.
    database_url: str
    #: Of the process that runs it.
    pid: int
    #: File with an operator's key for the console, readable by its owner alone.
    console_key_file: str = ""


def write(directory: Path, endpoints: Endpoints) -> None:
    """Put the file there, complete or not at all, readable by its owner only."""
    handle, fresh = tempfile.mkstemp(prefix=f".{FILE}.", dir=directory)  # mkstemp makes it 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(endpoints), file, indent=2)
    Path(fresh).replace(directory / FILE)


def read(directory: Path) -> Endpoints | None:
    """What runs in `directory`; None where nothing does, or where the file is of another version or a process that has ended."""
    try:
        found = Endpoints(**json.loads((directory / FILE).read_text(encoding="utf-8")))
        os.kill(found.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return found


def remove(directory: Path) -> None:
    """Take the file away; harmless where there is none."""
    (directory / FILE).unlink(missing_ok=True)
