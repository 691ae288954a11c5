"""Ask a question beside the conversation: the model sees all of it, and nothing is added to it."""

from __future__ import annotations

from nca.agent.fallbacks import Fallbacks
from nca.agent.spending import Spending, ask_beside
from nca.agent.turn import NEVER_TOKENS
from nca.agent.window import Window
from nca.errors import UsageError
from nca.events import Listener, RequestStarted, TextDelta
from nca.messages import Message, clean_text
from nca.models.model import Delta, ModelRequest, server_of

BESIDE = "btw"
"""The participant's name on the messages of such a question, in the log and in exports."""
INSTRUCTION = "[A question beside the work: answer it from this conversation, and call no tool.]"


class Beside:
    """Question and answer are in the log, and no part of the conversation."""

    def __init__(self, window: Window, models: Fallbacks, spending: Spending, emit: Listener) -> None:
        self._window = window
        self._models = models
        self._spending = spending
        self._emit = emit

    async def ask(self, question: str) -> str:
        """The answer; its text goes to the listeners as it comes. Raises UsageError, CostLimitReached, ProviderError.

        The tools go along, because what a provider has cached begins with them. None of them runs.
        """
        window = self._window
        if not question.strip():
            raise UsageError("There is no question.", advice="Valid: /btw QUESTION.")
        window.session.refuse_reader()
        self._spending.check()
        asked = Message("user", clean_text(question), name=BESIDE)
        request = self._request(asked)
        window.append_beside(asked)
        said: list[str] = []
        measured = window.measure()
        budget, server = measured.budget.budget_tokens, server_of(self._models.active)
        self._emit(RequestStarted(1, window.facts.name, measured.used_tokens, budget, server))

        def hear(delta: Delta) -> None:
            if delta.text:
                said.append(delta.text)
                self._emit(TextDelta(delta.text))

        try:
            reply = await ask_beside(window, self._models.active, request, "question", self._emit, hear)
        except BaseException:
            if text := clean_text("".join(said)).strip():
                window.append_beside(Message("assistant", text, name=BESIDE, is_interrupted=True))
            raise
        text = clean_text(reply.message.text).strip()
        if not text:
            raise UsageError("The model gave no answer; no tool was run.", advice="Ask it as a message instead.")
        window.append_beside(Message("assistant", text, name=BESIDE))
        return text

    def _request(self, asked: Message) -> ModelRequest:
        window = self._window
        sent = Message("user", f"{INSTRUCTION}\n\n{asked.text}")
        measured = window.measure()
        needed = measured.used_tokens + window.meter.scaled(window.history.message_tokens(sent))
        if needed > measured.budget.budget_tokens:
            raise UsageError(
                f"There is no room for the question: {needed:,} of {measured.budget.budget_tokens:,} tokens.",
                advice="/compact makes room.",
            )
        return ModelRequest(
            window.request_messages(sent),
            window.tools,
            window.answer_tokens(),
            window.settings.model.own_temperature,
            # Without a wish to compact the blocks of earlier ones could not go back.
            window.provider_compacts_at and NEVER_TOKENS,
            window.settings.model.reasoning,
        )
