"""Data that lies beside the checkout: real summaries and benchmarks, too large or not ours to ship."""

import shutil
import tempfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

#: Memory as a folder, where Linux has it.
MEMORY = Path("/dev/shm")

#: Bytes that must be free there; a test run's databases and copies need a tenth of that. Containers often have 64 MB.
MEMORY_NEEDED = 4 * 1024**3


def quick_place() -> Path:
    """Return the place for temporary data: memory where there is enough, for a slow disk makes a new database cost 3 s instead of 1."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    return MEMORY if roomy else Path(tempfile.gettempdir())


def shared_data(*parts: str) -> Path:
    """Return the path of a file or folder of the shared data; skip the test that asks where it is absent."""
    path = SHARED_DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{'/'.join(parts)}, which lies outside the repository")
    return path
