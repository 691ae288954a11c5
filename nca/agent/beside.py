"""Ask the model that sees the whole conversation a question that is not part of it.

Question and answer are in the log, outside of the conversation. While a turn is under way they wait for its end: in the
log, nothing comes between a call and its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nca import events
from nca.agent.parts import Parts
from nca.agent.spending import ask_beside
from nca.agent.turn import request_of
from nca.errors import NcaError, UsageError
from nca.humanize import one_line
from nca.messages import Message, clean_text
from nca.models.model import Delta, KeepsPrefix, ModelRequest, server_of
from nca.wire import read_words
from nca.words import Words, text_of

NAME = "btw"
"""The participant's name on the messages of such a question, in the log and in exports."""
NOT_ENDED = "[no result yet: the call waits for the user's approval, or runs]"
INSTRUCTION = "[A question beside the work: answer it from this conversation, and call no tool.]"


class SideQuestions:
    """The questions of one conversation."""

    def __init__(self, parts: Parts) -> None:
        self._window, self._models, self._spending, self._emit = parts.window, parts.models, parts.spending, parts.emit
        self._redactor = parts.redactor
        self._waiting: list[tuple[list[Message], Callable[[], None]]] = []
        """What the log is to take, with whom to tell."""
        self._asking: dict[asyncio.Task[object], str] = {}

    @property
    def can_ask_meanwhile(self) -> bool:
        """Whether to ask while nca works. A model that keeps its evaluated prompt answers one request at a time."""
        return not self._window.session.is_read_only and not isinstance(self._models.active, KeepsPrefix)

    async def ask(self, question: str | Words) -> str:
        """The answer; its text goes to the listeners as it comes. Raises UsageError, CostLimitReached, ProviderError.

        The tools go along, because what a provider has cached begins with them. None of them runs.
        """
        asked, request = self._checked(question)
        self._window.append_beside(asked)
        measured = self._window.measure()
        name, server = self._window.facts.name, server_of(self._models.active)
        self._emit(events.RequestStarted(1, name, measured.used_tokens, measured.budget.budget_tokens, server))
        return await self._answer(request, self._window.append_beside, lambda text: self._emit(events.TextDelta(text)))

    async def ask_meanwhile(self, question: str | Words, logged: Callable[[], None]) -> str:
        """As `ask`, while nca works: no listener hears the text. `logged` is called once the log has it (`settle`)."""
        asked, request = self._checked(question)
        pair, task = [asked], asyncio.current_task()
        assert task is not None
        self._asking[task] = asked.text
        try:
            return await self._answer(request, pair.append)
        finally:
            del self._asking[task]
            self._waiting.append((pair, logged))

    async def _answer(
        self, request: ModelRequest, keep: Callable[[Message], object], show: Callable[[str], None] = lambda _: None
    ) -> str:
        said: list[str] = []

        def hear(delta: Delta) -> None:
            if delta.text:
                said.append(delta.text)
                show(delta.text)

        try:
            reply = await ask_beside(self._window, self._models.active, request, "question", self._emit, hear)
        except BaseException:
            if text := clean_text("".join(said)).strip():
                keep(Message("assistant", text, name=NAME, is_interrupted=True))
            raise
        text = clean_text(reply.message.text).strip()
        if not text:
            raise UsageError("The model gave no answer; no tool was run.", advice="Ask it as a message instead.")
        keep(Message("assistant", text, name=NAME))
        return text

    def settle(self) -> None:
        """Write what waits to the log. To be called while no turn is under way; listeners hear of an error."""
        while self._waiting:
            pair, logged = self._waiting[0]
            try:
                self._window.append_beside(*pair)
            except NcaError as error:
                self._emit(events.ErrorRaised.of(error))
                return
            del self._waiting[0]
            logged()

    async def close(self) -> None:
        """Stop what is being asked, and say so; the log has it."""
        asking = [*self._asking]
        for task in asking:
            self._emit(events.Notice(f"Not answered: /{NAME} {one_line(self._asking[task], 200)}"))
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        self.settle()

    def _checked(self, question: str | Words) -> tuple[Message, ModelRequest]:
        """The question, and the request with it. Raises what keeps it from being asked."""
        window, text = self._window, text_of(self._redactor.said(read_words(question, "typed")))
        if not text.strip():
            raise UsageError("There is no question.", advice="Valid: /btw QUESTION.")
        window.session.refuse_reader()
        self._spending.check()
        asked = Message("user", clean_text(text), name=NAME)
        sent = Message("user", f"{INSTRUCTION}\n\n{asked.text}")
        measured = window.measure()
        needed = measured.used_tokens + window.meter.scaled(window.history.message_tokens(sent))
        if needed > measured.budget.budget_tokens:
            raise UsageError(
                f"There is no room for the question: {needed:,} of {measured.budget.budget_tokens:,} tokens.",
                advice="/compact makes room.",
            )
        # The calls that have no result yet get one for this request.
        calls = window.history.open_calls()
        results = [Message("tool", NOT_ENDED, tool_call_id=call.id, name=call.name) for call in calls]
        return asked, request_of(window, window.request_messages(*results, sent), may_compact=False)
