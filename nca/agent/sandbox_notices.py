"""Say that commands run without a sandbox, and offer the one that this machine has."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from nca.agent.state import SessionState
from nca.events import Listener, Notice
from nca.tools.programs import is_available

_TURN_ON = "/config tools.sandbox bwrap turns it on in this chat, nca config set --user tools.sandbox bwrap for good."
OFFER = (
    "Commands can run in a sandbox on this machine: they could change only this project, and reach neither the network"
    f" nor your keys. {_TURN_ON} nca says this once."
)
WITHOUT = "In the mode auto, commands run unasked and without a sandbox: they can do all that you can."
_MARK = "sandbox-offered"


class SandboxNotices:
    """As an offer, once for good; in the mode `auto`, once in each chat.

    `root` is the project; its programs are not trusted as the sandbox.
    """

    def __init__(self, state: SessionState, root: Path, emit: Listener) -> None:
        self._state = state
        self._root = root
        self._emit = emit
        self._is_done = {True: False, False: False}

    async def before_command(self, *, is_asked: bool) -> None:
        """A command is about to be asked about, or to run unasked."""
        if self._is_done[is_asked] or self._state.settings.tools.sandbox != "off":
            return
        self._is_done[is_asked] = True
        mark = self._state.loaded.data_dir / _MARK
        is_known = self._state.loaded.origin("tools.sandbox") != "default" or await asyncio.to_thread(
            os.path.exists, mark
        )
        if is_asked and is_known:
            return
        can_have = await asyncio.to_thread(is_available, os.environ.get("PATH", ""), self._root)
        if not is_asked:
            self._emit(Notice(f"{WITHOUT} There is one: {_TURN_ON}" if can_have else WITHOUT, is_usual=True))
        elif can_have:
            self._emit(Notice(OFFER))
            with contextlib.suppress(OSError):  # then it is said again
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
