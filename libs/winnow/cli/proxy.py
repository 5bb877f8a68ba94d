"""`winnow proxy`: stand between a host without a hook and its model."""

from typing import Annotated

import typer

from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent
from winnow.contracts.vocabulary import Mode


def proxy(
    *,
    upstream: Annotated[str, typer.Option(metavar="URL", help="The model provider's base URL, for example https://api.openai.com.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8485,
    address: Annotated[str, typer.Option(help="Address to listen on; keys of the provider pass through it.")] = "127.0.0.1",
    fleet: Annotated[
        str | None, typer.Option(envvar="WINNOW_FLEET", help="The API key's fleet; left out: that of `winnow up`, else default.")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="The most that may happen to a summary.")] = Mode.SHADOW,
    deadline: Annotated[float, typer.Option(min=0.1, max=600.0, help="Seconds that a compaction waits for Winnow at most.")] = 10.0,
) -> None:
    """Pass requests on to a model provider, and have the summaries of Codex, Crush, Continue and Gemini CLI judged.

    Point the host's base URL here, with the path that it has: http://127.0.0.1:8485/v1. All other requests and answers pass byte for byte,
    streamed ones too. Whatever is wrong with Winnow, the host gets the provider's answer.
    """
    import uvicorn

    from winnow.cli.connection import gateway, running
    from winnow.client import HttpTransport, SyncWinnowClient
    from winnow.client.hosts import Bridge
    from winnow.client.proxy import Proxy

    found = running()
    name = fleet or (found.fleet if found else "default")
    try:
        transport = HttpTransport(*gateway())
        with SyncWinnowClient(transport, deadline_s=deadline) as client:
            bridges: dict[str, Bridge] = {}

            def bridge_of(host: str) -> Bridge:
                return bridges.setdefault(host, Bridge(client, host=host, fleet=name, mode=mode))

            app = Proxy(upstream, bridge_of)
            Terminal().note(f"http://{address}:{port} to {upstream}, fleet {name}, mode {mode.value}; Ctrl-C ends it")
            # No access log: paths and query strings of a provider may hold what is nobody's business.
            uvicorn.run(app, host=address, port=port, log_level="warning", access_log=False, server_header=False, date_header=False)
    except ValueError as exc:
        raise Permanent(str(exc)) from None
