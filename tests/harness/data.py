"""Data that lies beside the checkout: real summaries and benchmarks, too large or not ours to ship."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


def shared_data(*parts: str) -> Path:
    """Return the path of a file or folder of the shared data; skip the test that asks where it is absent."""
    path = SHARED_DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{'/'.join(parts)}, which lies outside the repository")
    return path
