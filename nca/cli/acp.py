"""`nca acp`: serve an editor by the Agent Client Protocol on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nca.cli import flags

if TYPE_CHECKING:
    from nca.acp.person import EditorPerson
    from nca.agent.conversation import Conversation
    from nca.config.servers import McpServer
    from nca.events import Event, Listener
    from nca.sessions.store import Store
    from nca.tools.editor import Editor


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

    from nca.cli.startup import load_settings, open_store, settings_of
    from nca.errors import UsageError

    try:
        import acp as _sdk  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "nca acp needs the package agent-client-protocol, which is not installed.",
            advice="Install it where nca is: pip install agent-client-protocol",
        ) from error

    from nca.acp.serve import serve
    from nca.acp.stdio import private_streams

    given = settings_of(**locals())
    loaded = load_settings(given, config, trust=trust)
    if sys.stdin.isatty():
        print(
            "nca acp: an editor starts this (see docs/editors.md); nca opens the chat here. Ctrl-D ends.",
            file=sys.stderr,
        )
    streams = private_streams()
    notices: list[Event] = []
    with open_store(loaded, notices.append) as store:
        opener = _Opener(store, given, config, trust=trust, notices=notices)
        return asyncio.run(serve(opener, streams))


class _Opener:
    """Opens conversations with the settings of their folders. The first of them hears what opening the store said."""

    def __init__(
        self, store: Store, given: Mapping[str, Any], config: Path | None, *, trust: bool, notices: list[Event]
    ) -> None:
        self.store = store
        self.models: Sequence[str] = ()
        self._given, self._config, self._trust = given, config, trust
        self._notices = notices

    async def open(
        self,
        directory: Path,
        session: str | None,
        servers: Sequence[McpServer],
        listener: Listener,
        person: EditorPerson,
        editor: Editor,
    ) -> Conversation:
        import asyncio

        from nca.cli.remembered_model import open_chat_conversation
        from nca.cli.startup import choose_model, load_settings
        from nca.config.servers import merged
        from nca.terminal.panels.session_loader import SessionToOpen

        loaded = load_settings(self._given, self._config, trust=self._trust, remembers=True, project=directory)
        if servers:
            both = merged(loaded.settings.mcp.servers, tuple(servers))
            loaded = loaded.with_value("mcp.servers", both, "the editor")
        choice = await asyncio.to_thread(choose_model, loaded)
        earlier = SessionToOpen(self.store.find(session) if session else None)
        conversation, choice = await open_chat_conversation(
            loaded, choice, self.store, listener, earlier, person, directory=directory, editor=editor
        )
        self.models = (choice.model, *choice.alternatives)
        while self._notices:
            listener(self._notices.pop(0))
        return conversation
