"""A view over a conversation that another program keeps: each request fits the window, and the log stays whole.

`nca.compact` starts over each time. A `ContextView` continues from its last compaction, so that the beginning of a
request stays the same until the next one (a provider's prompt cache holds), and compacted messages can be recalled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, zip_longest
from threading import Lock
from typing import Any, TypeVar

import msgspec

from nca.agent.archive import Archive
from nca.config.schema import Fit
from nca.context.budget import Budget, Measurement
from nca.context.file_reads import arguments_of
from nca.context.history import History
from nca.context.plan import Asking
from nca.context.policy import decide
from nca.context.request import resolve
from nca.errors import ContextDoesNotFit, ViewInUse
from nca.library.beside_loop import beside_loop, drive_beside_loop
from nca.library.compaction import items_of
from nca.library.engine import AsyncSummarizer, Engine, Summarizer
from nca.library.inputs import history_of, in_library, read_conversation, read_text, settings_of
from nca.library.view_state import BEGINNING, read_state, saved_in
from nca.messages import Entry, Message, with_tool_names
from nca.sessions import Session, Store
from nca.shapes.shaped import ShapedMessages
from nca.tools.recall import Recall

M = TypeVar("M")
_ONE_EACH = (
    "Use one ContextView for each conversation; if its own messages were changed or taken back, continue with"
    " ContextView(state=view.state)."
)
_ONE_A_REQUEST = "Use one key for each conversation, and a new ContextView for each request."
NOT_YET = "Nothing can be recalled yet: this view has fitted no request."
_encoder = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """A request that fits. Counts in tokens.

    messages   valid messages in the shape of the input: dicts, of a type that every client takes
    compacted  whether this call compacted
    items      the view, by position from 1: `verbatim`, `stub`, `summary` and `marker` items (see `CompactionResult`)
    request    the object that was passed in, with these messages; None for a list
    notices    problems, one sentence each
    positions  by message as `items` and `recall` number them: its first row in the list that was passed in, from 1; 0
               for a system prompt beside the list
    """

    messages: list[Any]
    compacted: bool
    used_tokens: int
    budget_tokens: int
    items: list[dict[str, Any]]
    request: dict[str, Any] | None = None
    notices: tuple[str, ...] = ()
    positions: list[int] = field(default_factory=list)

    def shown(self, messages: Sequence[M], shorten: Callable[[M, str], M], new: Callable[[str], M]) -> list[M]:
        """The same request in a program's own messages, one for each message that was passed in.

        shorten  returns a message with another text, if its content was cut or cleared
        new      returns the message that replaces others: a summary, or the line about left-out messages
        """
        shown: list[M] = []
        for item in self.items:
            match item:
                case {"type": "verbatim", "first": first, "last": last}:
                    shown.extend(messages[first - 1 : last])
                case {"type": "stub", "seq": seq, "text": text}:
                    shown.append(shorten(messages[seq - 1], text))
                case {"text": str(text)} if text:
                    shown.append(new(text))
        return shown


class _RecallTool:
    """The OpenAI-shaped definition of the tool that reads compacted messages. `recall` answers it.

    It is the same for all views, so the class has it as well: `ContextView(tools=[ContextView.recall_tool])`.
    """

    def __get__(self, view: ContextView | None, owner: type[ContextView]) -> Any:
        tool = (view or owner())._recall
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", "function": function}


class ContextView:
    """The view of one conversation.

    The conversation is the last input: the next messages must begin with it, and only one request at a time is
    fitted. Anything else is refused, because two conversations in one view would read each other's words. `recall` may
    be called from several threads. In an event loop, use `afit` and `arecall`.

    model, context_window, max_output_tokens, summarizer, tools, settings, fit   as for `nca.compact`; for `afit` the
                    summarizer may be asynchronous
    system_prompt   counted, if it is not a message of the conversation
    has_recall      False: the model has no tool that calls `recall`, so the view mentions none
    state           the `state` of an earlier view of this conversation
    store, key      the store that keeps the state instead, and its name there: each `fit` uses the last state,
                    so that any process may fit the next request. `state` and `recall` are as of the last `fit`

    Raises UsageError, ConfigError.
    """

    def __init__(
        self,
        *,
        model: str = "",
        context_window: int = 0,
        max_output_tokens: int = 0,
        system_prompt: str = "",
        summarizer: Summarizer | AsyncSummarizer | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        fit: Fit | None = None,
        has_recall: bool = True,
        state: Mapping[str, Any] | None = None,
        store: Store | None = None,
        key: str = "",
        keeps_messages: bool = False,
    ) -> None:
        self._engine = Engine(
            settings_of(settings, context_window=context_window, max_output_tokens=max_output_tokens, fit=fit),
            model,
            tools=tools,
            system_prompt=read_text(system_prompt, "system_prompt"),
            summarizer=summarizer,
        )
        self._has_recall = has_recall
        self._state = self._kept = read_state(state)
        self._saved = saved_in(store, key, state, keeps_messages=keeps_messages)
        self._advice = _ONE_EACH if self._saved is None else _ONE_A_REQUEST
        self._log = _Log(self._engine.budget)
        self._is_fitting = Lock()
        self._is_left = False
        """Whether a cancelled `afit` may have left a step, which ends by itself and still holds the lock."""

    @property
    def state(self) -> dict[str, Any]:
        """The state for the next process, JSON-serializable. Keep it beside the conversation."""
        state: dict[str, Any] = msgspec.to_builtins(self._state)
        return state

    def fit(self, messages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> FittedRequest:
        """The next request of the whole conversation, compacted if due.

        Pass all messages each time: those of the last request, and the newer ones.
        Raises InvalidMessages, ViewInUse (with a store also if another process has fitted the conversation meanwhile),
        StoreError, and ContextDoesNotFit if the newest messages alone exceed the budget.
        """
        self._begin(waits=self._is_left)
        try:
            return self._engine.run(self._fitting(messages))
        finally:
            self._is_fitting.release()

    async def afit(self, messages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> FittedRequest:
        """`fit` in an event loop: the work is done in a thread, and the summarizer may be asynchronous.

        Do not change the messages before it returns. If it is cancelled, the view is unchanged or has fitted them, and
        the next request waits for a step that was being done. Raises what `fit` raises.
        """
        if self._is_left:
            await beside_loop(lambda: None)  # the thread does one step after the other, so that one has ended
        self._begin(waits=False)
        try:
            work, release = self._fitting(messages), self._is_fitting.release
            return await drive_beside_loop(work, self._engine.answer, at_end=release)
        except BaseException:
            self._is_left = True
            raise

    def _begin(self, *, waits: bool) -> None:
        if not self._is_fitting.acquire(blocking=waits):
            raise ViewInUse("This view is fitting another request.", advice=self._advice)
        self._is_left = False

    def _fitting(self, messages: Any) -> Asking[FittedRequest]:
        """Make a request; yields the engine's questions. Ending it early changes nothing."""
        kept = self._kept
        try:
            shaped = read_conversation(messages)
            history = history_of(shaped.messages)
            self._log.refuse_other(history, self._advice)
            if self._saved is None:
                fitted = yield from self._fit(shaped, history)
            else:
                before = self._saved.read()
                self._kept = before.state
                fitted = yield from self._fit(shaped, history)
                self._saved.save(self._kept, before, history)
        except BaseException:
            self._kept = kept
            raise
        self._state = self._kept
        self._log.take(history)
        return fitted

    def _fit(self, shaped: ShapedMessages, history: History) -> Asking[FittedRequest]:
        self._resume(history)
        engine = self._engine
        engine.obey(shaped)
        self._log.budget = engine.budget
        decision = decide(self._measured(history), self._kept.policy, engine.settings, "before request")
        self._keep(policy=decision.state)
        before = history.view
        notices = (yield from self._compact(history)) if decision.action == "compact" else engine.notices()
        measured = self._measured(history)
        if not measured.fits:
            raise _too_large(measured)
        shown = shaped.repair(resolve(history), engine.facts.provider)
        rows = shaped.write(shown, [entry.message for entry in history.entries]).rows
        return FittedRequest(
            messages=rows,
            compacted=history.view is not before,
            used_tokens=measured.used_tokens,
            budget_tokens=measured.budget.budget_tokens,
            items=items_of(history, history.view),
            request=shaped.request(rows),
            notices=notices,
            positions=shaped.positions,
        )

    recall_tool = _RecallTool()

    def recall(self, **arguments: Any) -> str:
        """Answer a call of `recall_tool`: `query`, or `expand="12-15"`. It searches the last request that fit.

        For a wrong argument, and before the first fit, it returns a text for the model. Raises StoreError, and
        SessionNotFound if the store keeps the messages but has none.
        """
        if self._saved is not None and self._saved.keeps_messages and not self._log.history.entries:
            self._log.take(self._saved.history())
        if not self._log.history.entries:
            return NOT_YET
        try:
            with self._log.reading:
                return self._recall.answer(**self._recall.read(arguments)).text
        except ValueError as error:  # ToolError is one
            return str(error)

    async def arecall(self, **arguments: Any) -> str:
        """`recall` in an event loop: the search is done in a thread."""
        return await beside_loop(lambda: self.recall(**arguments))

    @cached_property
    def _recall(self) -> Recall:
        return Recall(Archive(self._log))

    def _resume(self, history: History) -> None:
        """Show the log as the last view did, if it still begins with the messages that the view covers."""
        covered = self._kept.view.tail - 1
        if covered > history.head or (covered and self._hash(history, covered) != self._kept.covers):
            self._kept = BEGINNING
        history.view = self._kept.view

    def _compact(self, history: History) -> Asking[tuple[str, ...]]:
        engine = self._engine
        try:
            proposal = yield from engine.planning(history, is_repeated=True, has_recall=self._has_recall)
        except ContextDoesNotFit as error:
            if not self._measured(history).fits:
                raise in_library(error) from None
            proposal = None
        if proposal is None or not proposal.compacted:
            self._keep(policy=self._kept.policy.compacted_in_vain(self._measured(history)))
            return engine.notices(proposal)
        history.view = proposal.view
        self._keep(view=proposal.view, covers=self._hash(history, proposal.view.tail - 1))
        self._keep(policy=self._kept.policy.compacted(self._measured(history)))
        return engine.notices(proposal)

    def _keep(self, **changes: Any) -> None:
        self._kept = msgspec.structs.replace(self._kept, **changes)

    def _measured(self, history: History) -> Measurement:
        return Measurement(self._engine.meter.used(history), self._engine.budget)

    @staticmethod
    def _hash(history: History, count: int) -> str:
        digest = hashlib.sha256()
        for entry in history.entries[:count]:
            digest.update(_encoder.encode(_words(entry.message)))
        return digest.hexdigest()


class _Log:
    """The conversation for `Archive`, in a memory store that is filled on the first search.

    reading: held while the log is searched or replaced
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.history = History()
        self.reading = Lock()
        self._session: Session | None = None
        self._stored_count = 0

    def take(self, history: History) -> None:
        with self.reading:
            kept = self._stored_count
            if kept and _words(self.history.entries[kept - 1].message) != _words(history.entries[kept - 1].message):
                self._shelf.close()  # it has an answer that has grown as it was
                del self._shelf
                self._session, self._stored_count = None, 0
            self.history = history

    def refuse_other(self, history: History, advice: str) -> None:
        """Raises ViewInUse if the history does not continue the last. Only its last message may have grown."""
        for seq, (old, new) in enumerate(zip_longest(self.history.entries, history.entries), 1):
            if old is None:
                return
            is_last = seq == len(self.history.entries)
            if new is None or not (_words(old.message) == _words(new.message) or (is_last and _has_grown(old, new))):
                what = "is missing" if new is None else "has changed"
                raise ViewInUse(f"Message {seq} {what} since the last request of this view.", advice=advice)

    @cached_property
    def _shelf(self) -> Store:
        return Store.open(None)

    @property
    def store(self) -> Store:
        """The store with all messages of the history."""
        self._fill()
        return self._shelf

    @property
    def session(self) -> Session:
        """All messages of the history."""
        return self._fill()

    def _fill(self) -> Session:
        if self._session is None:
            self._session = self._shelf.create(directory="", model="")
        messages = with_tool_names(entry.message for entry in self.history.entries)
        self._session.log.append(list(islice(messages, self._stored_count, None)))
        self._stored_count = len(self.history.entries)
        return self._session


def _words(message: Message) -> tuple[str, str, list[tuple[str, object]]]:
    """The words that tell conversations apart. A program may write the same words in another form the next time."""
    calls: list[tuple[str, object]] = [(call.name, arguments_of(call) or call.arguments) for call in message.tool_calls]
    return message.role, message.text.strip(), calls


def _has_grown(old: Entry, new: Entry) -> bool:
    """Whether an answer goes on: the items of the Responses API that follow each other are one message."""
    (before, text, calls), (after, longer, more) = _words(old.message), _words(new.message)
    is_longer = not text or longer == text or longer.startswith(f"{text}\n")
    return before == after == "assistant" and is_longer and more[: len(calls)] == calls


def _too_large(measured: Measurement) -> ContextDoesNotFit:
    used, budget = measured.used_tokens, measured.budget.budget_tokens
    return ContextDoesNotFit(
        f"The request needs {used:,} tokens; the budget is {budget:,}, and the settings forbid to compact.",
        advice="Set context.auto = on.",
        used_tokens=used,
        budget_tokens=budget,
    )
