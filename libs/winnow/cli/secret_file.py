"""A secret in a file that its owner alone can read."""

import os
from pathlib import Path


def read(path: Path) -> str | None:
    """The secret, or None where there is none."""
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def write(path: Path, secret: str) -> None:
    """Put a secret there, mode 0600 from its first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{secret}\n")
