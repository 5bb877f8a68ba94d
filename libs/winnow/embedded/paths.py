"""Where Winnow keeps things on one machine."""

import os
from pathlib import Path


def state_dir() -> Path:
    """Return the folder of data that must survive: `$WINNOW_STATE_DIR`, `$XDG_STATE_HOME/winnow` or `~/.local/state/winnow`."""
    return _place("WINNOW_STATE_DIR", "XDG_STATE_HOME", Path(".local", "state"))


def cache_dir() -> Path:
    """Return the folder of what can be fetched again: `$WINNOW_CACHE_DIR`, `$XDG_CACHE_HOME/winnow` or `~/.cache/winnow`."""
    return _place("WINNOW_CACHE_DIR", "XDG_CACHE_HOME", Path(".cache"))


def _place(own: str, xdg: str, below_home: Path) -> Path:
    if chosen := os.environ.get(own):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get(xdg, "")
    # The XDG specification: a relative path in one of its variables is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / below_home) / "winnow"
