"""`winnow version`."""

from typing import Annotated

import typer

from winnow import __version__
from winnow.cli.terminal import Terminal


def version(*, as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False) -> None:
    """Print the version of Winnow, of its parser and its features."""
    from winnow.compaction.analysis import FEATURES_VERSION
    from winnow.compaction.parse import PARSER_VERSION

    terminal = Terminal()
    if as_json:
        terminal.json({"version": __version__, "parser": PARSER_VERSION, "features": FEATURES_VERSION})
    else:
        terminal.show(f"winnow {__version__} (parser {PARSER_VERSION}, features {FEATURES_VERSION})")
