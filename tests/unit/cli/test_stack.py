"""A Winnow on somebody else's database and broker: what `winnow up` says where they are not there."""

from pathlib import Path

import pytest

from winnow.cli.connection import NotConnected, Unreachable
from winnow.cli.stack import Plan, Stack

#: Nothing listens here.
NOWHERE = {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("mysql://u:hidden-word@127.0.0.1/d", NotConnected),
        ("no address with hidden-word", NotConnected),
        ("postgresql://u:hidden-word@127.0.0.1:1/d", Unreachable),
    ],
)
def test_a_wrong_database_is_told_in_words(tmp_path: Path, url: str, error: type[Exception]) -> None:
    """A URL that is none, and a database that does not answer, end as an error that says what to do and quotes no password."""
    stack = Stack(Plan(state=tmp_path), say=lambda _: None, environment=NOWHERE | {"WINNOW_DATABASE_URL": url})
    with pytest.raises(error) as caught:
        stack.start()
    assert "hidden-word" not in str(caught.value)
    assert "database" in str(caught.value)
    stack.stop()
