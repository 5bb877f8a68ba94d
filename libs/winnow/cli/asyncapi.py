"""`winnow asyncapi`: the contract of the bus."""

import json
import sys
from typing import Annotated

import typer


def asyncapi(
    prefix: Annotated[str, typer.Option(help="Put before every topic name.", envvar="WINNOW_TOPIC_PREFIX")] = "",
) -> None:
    """Print the AsyncAPI 3 document of all topics and events."""
    from winnow.contracts.asyncapi import document

    # In one piece and in UTF-8 whatever the locale: the output is committed and compared.
    sys.stdout.buffer.write((json.dumps(document(prefix), indent=2, ensure_ascii=False) + "\n").encode())
