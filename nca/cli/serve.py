"""`nca serve`: the engine over HTTP, for programs in any language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nca.serve.service import Options

KEEP_ALIVE_SECONDS = 75
"""An idle connection stays open for longer than clients and proxies keep theirs (aiohttp 15, nginx 60): it is they who
close it, and no request meets a closed one."""


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65_535)] = 8787,
    workers: Annotated[int, typer.Option(help="Processes.", min=1, max=256)] = 1,
    tokens: Annotated[
        Path | None, typer.Option(help="A file with a name and a bearer token on each line; needed beyond loopback.")
    ] = None,
    store: Annotated[
        str,
        typer.Option(metavar="PLACE", help="For the views of requests with a key: a file, or a URL of PostgreSQL."),
    ] = "",
    keep_messages: Annotated[
        bool,
        typer.Option("--keep-messages", help="Keep the messages of requests with a key, for GET /v1/recall."),
    ] = False,
    max_body_mb: Annotated[int, typer.Option(help="The largest body of a request, in MiB.", min=1, max=1024)] = 32,
    timeout: Annotated[float, typer.Option(help="Seconds that a request may take.", min=0.1, max=3600)] = 60.0,
) -> int:
    """Serve the context engine over HTTP: compress, compact, check and recall."""
    from nca.cli.startup import named_place
    from nca.errors import UsageError
    from nca.serve.service import LOOPBACK, Options, open_views, read_tokens

    if tokens is None and host not in LOOPBACK:
        raise UsageError(
            f"--host {host}: others can reach this address, so each request needs a token.",
            advice="Name a file with --tokens, or listen on 127.0.0.1.",
        )
    if keep_messages and not store:
        raise UsageError("--keep-messages: there is no store to keep them in.", advice="Name one with --store.")
    place = named_place("--store", store) if store else None
    options = Options(
        tokens=read_tokens(tokens) if tokens else {},
        store=place.path if place else None,
        store_url=place.url if place else "",
        keeps_messages=keep_messages,
        max_body_bytes=max_body_mb * 1024 * 1024,
        timeout_seconds=timeout,
    )
    if views := open_views(options):
        views.close()  # what is wrong with the store is said here, once
    _listen(options, host, port, workers)
    return 0


def _listen(options: Options, host: str, port: int, workers: int) -> None:
    """Serve until a signal ends it."""
    from functools import partial

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from nca.serve.service import application

    config = uvicorn.Config(
        partial(application, options),
        factory=True,
        host=host,
        port=port,
        workers=workers,
        lifespan="on",
        server_header=False,
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(options.timeout_seconds) + 1,
    )
    if workers == 1:
        uvicorn.Server(config).run()
    else:
        shared = config.bind_socket()
        shared.listen(config.backlog)  # so that nobody is refused before the first worker is ready
        Multiprocess(config, sockets=[shared]).run()
