"""`nca serve`: the engine over HTTP. `nca acp`: an agent for editors, by the Agent Client Protocol."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags
from nca.cli.printing import echo
from nca.cli.startup import (
    choose_model,
    load_settings,
    named_place,
    open_chat_conversation,
    open_store,
    settings_of,
    tell,
)
from nca.errors import UsageError, install_command, system_reason

if TYPE_CHECKING:
    from nca.acp.client import EditorPerson
    from nca.agent.conversation import Conversation
    from nca.config.servers import McpServer
    from nca.events import Listener
    from nca.serve.service import Options
    from nca.sessions.store import Store


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
        str, typer.Option(metavar="PLACE", help="For the views of requests with a key: a file, or a URL of PostgreSQL.")
    ] = "",
    keep_messages: Annotated[
        bool, typer.Option("--keep-messages", help="Keep the messages of requests with a key, for GET /v1/recall.")
    ] = False,
    max_body_mb: Annotated[int, typer.Option(help="The largest body of a request, in MiB.", min=1, max=1024)] = 32,
    timeout: Annotated[float, typer.Option(help="Seconds that a request may take.", min=0.1, max=3600)] = 60.0,
) -> int:
    """Serve the context engine over HTTP: compress, compact, check and recall.

    Paths: /v1/compress, /v1/responses/compact, /v1/context/check and /v1/recall; /healthz and /readyz.
    """
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
        for note in views.notes:
            tell(note)
        views.close()  # what there is to say of the store is said here, once
    _check_free(host, port)
    _listen(options, host, port, workers)
    return 0


def _check_free(host: str, port: int) -> None:
    """Raises UsageError where nobody can listen there now."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        reason = system_reason(error)
        raise UsageError(
            f"nca serve cannot listen on {host}, port {port} ({reason}).",
            advice="Choose a free port with --port (0 takes any), or an address of this machine with --host.",
        ) from error


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


def acp(
    model: flags.Model = None,
    compact_threshold: flags.CompactThreshold = None,
    disable_compaction: flags.DisableCompaction = False,
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    permission: flags.Permission = None,
    max_cost: flags.MaxCost = None,
    trust: flags.Trust = False,
    profile: flags.Profile = None,
    config: flags.Config = None,
) -> int:
    """Work in an editor: the Agent Client Protocol on standard input and output. The editor starts this."""
    import asyncio
    from functools import partial

    try:
        import acp as _sdk  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "nca acp needs the package agent-client-protocol, which is not installed.",
            advice=f"To install it: {install_command('agent-client-protocol')}",
        ) from error

    from nca.acp.agent import serve
    from nca.acp.stdio import private_streams

    given = settings_of(**locals())
    loaded = load_settings(given, config, trust=trust)
    if sys.stdin.isatty():
        said = "An editor starts this (command nca, argument acp); nca loop opens the chat here. Ctrl-D ends."
        echo(f"nca acp: {said}", err=True)
    streams = private_streams()
    opener = _Opener(given, config, trust=trust)
    return asyncio.run(serve(partial(open_store, loaded, is_new=True), opener.open, streams))


class _Opener:
    """Opens conversations with the settings of their folders."""

    def __init__(self, given: Mapping[str, Any], config: Path | None, *, trust: bool) -> None:
        self._given, self._config, self._trust = given, config, trust

    async def open(
        self,
        store: Store,
        directory: Path,
        session: str | None,
        servers: Sequence[McpServer],
        listener: Listener,
        person: EditorPerson,
        release: Callable[[], Awaitable[None]],
    ) -> tuple[Conversation, Sequence[str]]:
        import asyncio

        from nca.config.servers import merged
        from nca.terminal.panels.session_loader import SessionToOpen

        loaded = load_settings(self._given, self._config, trust=self._trust, remembers=True, project=directory)
        if servers:
            both = merged(loaded.settings.mcp.servers, tuple(servers))
            loaded = loaded.with_value("mcp.servers", both, "the editor")
        choice = await asyncio.to_thread(choose_model, loaded)
        earlier = SessionToOpen(store.find(session) if session else None)
        await release()
        conversation, choice = await open_chat_conversation(
            loaded, choice, store, listener, earlier, person, directory=directory
        )
        return conversation, (choice.model, *choice.alternatives)
