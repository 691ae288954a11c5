"""The current settings, model, budget and history of a session. Built first; tools and window share it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nca.config.loaded import LoadedSettings
from nca.config.schema import Settings
from nca.context.admission import Limits
from nca.context.budget import Budget
from nca.context.calibration import Calibration, Lessons
from nca.context.history import History
from nca.context.log import Log
from nca.context.meter import Meter
from nca.context.view import Range
from nca.context.within_window import within_window
from nca.errors import ConfigError
from nca.models.catalog import FROM_ERROR, ModelFacts
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.usage import Learned
from nca.sessions.views import CompactionRecord
from nca.tools.files.reading_rules import Reading

RESULT_SHARE_OF_BUDGET = 4
"""One tool result takes at most a quarter of the budget when it enters, so that it can never force itself out."""

LEARNED_SECONDS = 86_400.0
"""A window that an error named holds for a day: whoever restarts a server with more context need not know of it, and
learning it again costs one refused request."""

OPENED = "opened"
"""The trigger of a view that was made when the session was opened."""


class SessionState:
    """Read it when it is needed: settings, model and budget change between two requests.

    loaded    the settings with their origins; `settings` are those for the model that answers
    facts     of the model that answers
    is_chat   whether a person reads along, for ContextSettings.decided
    """

    def __init__(
        self, store: Store, session: Session, loaded: LoadedSettings, facts: ModelFacts, *, is_chat: bool = True
    ) -> None:
        """Raises ConfigError if the settings leave no budget."""
        self.store, self.is_chat = store, is_chat
        self.session = session
        self.history = History(Log(session.log), session.views.current(), session.views.pins())
        self.left_out: Range | None = None
        """Messages that were more than the window holds when the session was opened."""
        self._contradicted: tuple[int, str, str] | None = None
        """The window that was set when an error named a smaller one, as `_set_window` has it."""
        self._without_tools: set[str] = set()
        """Models that have refused tools, with their endpoints."""
        self.use(loaded, facts)
        self._stay_within_window()

    def use(self, loaded: LoadedSettings, facts: ModelFacts) -> None:
        """Take other settings or another model. Raises ConfigError if they leave no budget; then nothing changed."""
        loaded = loaded.for_model(facts.name)
        settings = loaded.settings
        lesson = self.store.learned(_place(facts))
        learned = (lesson.window_tokens or 0) if time.time() - lesson.at < LEARNED_SECONDS else 0
        set_tokens = settings.model.context_window
        # What a person sets holds, until the provider itself says that it is not so.
        is_open = not set_tokens or _set_window(loaded, facts) == self._contradicted
        is_learned = 0 < learned < (set_tokens or facts.window_tokens) and is_open
        self.budget = (
            _learned_budget(learned, settings)
            if is_learned
            else Budget.in_window(set_tokens or facts.window_tokens, settings)
        )
        self.loaded, self.settings, self.facts = loaded, settings, facts
        self.context = settings.context.decided(is_chat=self.is_chat)
        self.learned_tokens, self.is_window_learned = learned, is_learned

    def _stay_within_window(self) -> None:
        """Hide the oldest messages of a log many windows long behind a marker; undo brings them back."""
        if self.context.auto != "on":
            return
        before = self.history.view
        view = within_window(self.history, self.budget.window_tokens)
        if view == before:
            return
        self.left_out = before.tail, view.tail - 1
        if not self.session.is_read_only:
            sizes = [self.session.log.rough_tokens(first) for first in (before.tail, view.tail)]
            record = CompactionRecord(
                trigger=OPENED, stages=("truncate",), tokens_before=sizes[0], tokens_after=sizes[1]
            )
            self.session.views.commit(view, record, expected_head=self.history.head)
        self.history.view = view

    @property
    def can_see(self) -> bool:
        """Whether the model takes images: what the setting says, else what was looked up."""
        images = self.settings.model.images
        return self.facts.can_see if images == "auto" else images == "yes"

    @property
    def limits(self) -> Limits:
        """The size of one tool result when it enters."""
        return Limits.of(self.context.admission, self.budget.budget_tokens // RESULT_SHARE_OF_BUDGET)

    @property
    def last_todo(self) -> dict[str, Any]:
        """The arguments of the newest todo call in the log."""
        return (self.history.newest_list or (0, {}))[1]

    def learn_window(self, window_tokens: int) -> bool:
        """Take the window that an overflow error named; True if it is news. It never enlarges the window."""
        if not 0 < window_tokens < self.budget.window_tokens:
            return False
        self.store.save_learned(_place(self.facts), Learned(window_tokens=window_tokens))
        self.budget = _learned_budget(window_tokens, self.settings)
        self.learned_tokens, self.is_window_learned = window_tokens, True
        self._contradicted = _set_window(self.loaded, self.facts)
        return True

    def leave_out_tools(self, facts: ModelFacts) -> bool:
        """The model has refused a request for its tools: it gets none in this session, from the next `use` on.

        True if that is news.
        """
        is_news = _place(facts) not in self._without_tools
        self._without_tools.add(_place(facts))
        return is_news

    def as_met(self, facts: ModelFacts) -> ModelFacts:
        """The facts of a model with what it has refused in this session."""
        return replace(facts, can_use_tools=False) if _place(facts) in self._without_tools else facts

    def answered(self, prompt_tokens: int) -> None:
        """Forget the window that an error named if the provider has read a larger request."""
        if 0 < self.learned_tokens < prompt_tokens:
            self.store.save_learned(_place(self.facts), Learned())
            self.learned_tokens = 0

    @property
    def facts_in_force(self) -> ModelFacts:
        """`facts` with the window in force."""
        return self.facts.with_window(self.budget.window_tokens, FROM_ERROR if self.is_window_learned else "")

    @property
    def way_out(self) -> str:
        """What to do if the window that an error named is too small; "" if the window is not from one."""
        if not self.is_window_learned:
            return ""
        tokens, where = f"{self.budget.window_tokens:,}", f" at {self.facts.server}" if self.facts.server else ""
        return (
            f"The window of {self.facts.name}{where} is {tokens} tokens, as an error of the provider said. If it is"
            " larger, set model.context_window N (or pass --context-window N)."
        )

    def reading(self, directory: Path) -> Reading:
        """The rules about reading files of the project in `directory`, as they are at each call."""
        return Reading(lambda: self.settings.permissions, directory)

    def meter_after(self, before: Meter, system_prompt: str, tools: Sequence[dict[str, Any]]) -> tuple[Meter, bool]:
        """The meter for the model, and whether it continues from the one `before`: then it learns no report again.

        It does for the same model. Another name alone changes no count: what a provider reported holds for another
        model of its own with the same tokenizer, and what it taught as long as nothing is known of that one.
        """
        facts, learned = self.facts, self.store.learned(self.facts.name)
        unlearned = Calibration.unlearned(facts.provider, facts.name, count_as=self.context.count_as)
        is_same = before.model == facts.name
        is_alike = (before.provider, before.calibration.tokenizer) == (facts.provider, unlearned.tokenizer)
        goes_on = is_same or (bool(before.model) and is_alike and not learned.samples)
        if is_same:
            calibration = before.calibration
        elif goes_on:
            calibration = replace(before.calibration, samples=0, lessons=Lessons())
        else:
            calibration = unlearned.taught(learned.ratio, learned.samples)
            self.history.call_raw = 0
        meter = Meter(
            model=facts.name,
            provider=facts.provider,
            calibration=calibration,
            system_prompt=system_prompt,
            tools=tools,
            anchor=before.anchor if is_same else None,
        )
        meter.waiting_raw = before.waiting_raw
        known = before.anchor
        if goes_on and not is_same and known is not None and known.subject == before.subject(self.history):
            meter.anchor = replace(known, subject=meter.subject(self.history))
        return meter, goes_on


def _place(facts: ModelFacts) -> str:
    """What a learned window is about: one model at one endpoint."""
    return f"{facts.name} at {facts.server or 'its provider'}"


def _set_window(loaded: LoadedSettings, facts: ModelFacts) -> tuple[int, str, str]:
    """The window that is set, where, and for which model."""
    return loaded.settings.model.context_window, loaded.origin("model.context_window"), _place(facts)


def _learned_budget(window_tokens: int, settings: Settings) -> Budget:
    """The budget in a window that an error named, however small."""
    try:
        return Budget.in_window(window_tokens, settings)
    except ConfigError:
        return Budget.of(window_tokens, 0, settings.context.max_tokens)
