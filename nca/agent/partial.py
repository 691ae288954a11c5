"""The answer that is being streamed: shown as it comes, and saved at intervals for a nca that is killed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib

from nca.errors import NcaError
from nca.events import Listener, ReasoningDelta, RequestRead, TextDelta
from nca.messages import Message, clean_text
from nca.models.client import Delta
from nca.sessions.log import SessionLog

SAVED_SECONDS, SAVED_BYTES = 2.0, 4_096
"""It is saved at least this often, even while the model stalls."""


class PartialAnswer:
    """`text` and `reasoning` of one answer as far as they came; "" before it begins and once it is whole."""

    def __init__(self, log: SessionLog, emit: Listener) -> None:
        self.text = self.reasoning = ""
        self._log, self._emit = log, emit
        self._unsaved_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self.text = self.reasoning = ""
        self._unsaved_bytes = 0

    def take(self, delta: Delta) -> None:
        """Keep and show a piece of the answer, and save the answer so far at intervals."""
        if delta.of_tokens:
            self._emit(RequestRead(delta.read_tokens, delta.of_tokens))
        if delta.reasoning:
            self.reasoning += delta.reasoning
            self._emit(ReasoningDelta(delta.reasoning))
        if delta.text:
            self.text += delta.text
            self._unsaved_bytes += len(delta.text.encode("utf-8", "surrogatepass"))
            self._emit(TextDelta(delta.text))
        if self._unsaved_bytes >= SAVED_BYTES:
            self._save()
        elif self._unsaved_bytes and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAVED_SECONDS, self._save_late)

    def take_out(self) -> Message | None:
        """The text so far as an interrupted message, once; None if there is none."""
        text, self.text = self.text, ""
        if not text.strip():
            return None
        return Message("assistant", clean_text(text), reasoning=clean_text(self.reasoning), is_interrupted=True)

    def _save(self) -> None:
        self._log.save_partial(clean_text(self.text), clean_text(self.reasoning))
        self._unsaved_bytes = 0

    def _save_late(self) -> None:
        """Save without waiting for the next piece, because the model may have stalled."""
        self._timer = None
        if self.text and self._unsaved_bytes:
            with contextlib.suppress(NcaError):  # the next save reports the error
                self._save()
