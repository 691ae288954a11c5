"""The context window of one session: its log in memory and on disk, its view, its measure.

Everything that enters goes through here, durable first; everything that asks "how full?" asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nca.config.loaded import LoadedSettings
from nca.config.schema import ContextSettings, Settings
from nca.context.budget import REARM_RATIO, Budget, Measurement
from nca.context.calibration import Calibration
from nca.context.draft import Draft
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal
from nca.context.request import request_messages
from nca.context.stages.condense import keep_text
from nca.context.view import Marker, View
from nca.errors import ConfigError
from nca.messages import Entry, Message, Usage
from nca.models.catalog import ModelFacts
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.usage import Learned
from nca.sessions.views import CompactionRecord

FEWEST_RESTORED_TURNS = 3
"""Seed 3: max(3, max_context_turns / 6) turns are restored."""


class Window:
    """What the next request holds and what it may cost."""

    def __init__(
        self,
        store: Store,
        session: Session,
        loaded: LoadedSettings,
        facts: ModelFacts,
        *,
        system_prompt: str,
        tools: Sequence[dict[str, Any]],
    ) -> None:
        self.store = store
        self.session = session
        self.system_prompt = system_prompt
        self.tools = list(tools)
        self.history = History(session.entries(), session.view(), session.pins())
        self.quiet_below = 0
        """No automatic compaction while `used` is below this: one has just happened, or a person undid one."""
        self.meter = Meter()
        self.use(loaded, facts)
        self._restore_anchor()

    def use(self, loaded: LoadedSettings, facts: ModelFacts) -> None:
        """Take other settings or another model. Raises ConfigError where they make no budget."""
        settings = loaded.for_model(facts.name).settings
        learned = self.store.learned(facts.name)
        limits = [facts.window_tokens, learned.window_tokens]
        window = settings.model.context_window or min(limit for limit in limits if limit)
        self.budget = Budget.of(window, settings.model.max_output_tokens, settings.context.max_tokens)
        self.settings: Settings = settings
        self.facts = facts
        unlearned = Calibration.unlearned(settings.context.count_as or facts.provider)
        calibration = Calibration(learned.ratio, learned.samples) if learned.samples else unlearned
        anchor = None
        if self.meter.model == facts.name:
            calibration, anchor = self.meter.calibration, self.meter.anchor
        else:
            self.history.call_raw = 0
        self.meter = Meter(
            model=facts.name,
            provider=facts.provider,
            calibration=calibration,
            system_prompt=self.system_prompt,
            tools=self.tools,
        )
        self.meter.anchor = anchor

    @property
    def context(self) -> ContextSettings:
        return self.settings.context

    def measure(self) -> Measurement:
        return self.meter.measure(self.history, self.budget)

    def append(self, *messages: Message) -> list[Entry]:
        """Durable on return, then in the view's tail."""
        entries = self.session.append(messages)
        for entry in entries:
            self.history.append(entry)
        return entries

    def request_messages(self) -> list[dict[str, Any]]:
        return request_messages(self.history, system_prompt=self.system_prompt, provider=self.facts.provider)

    def answer_tokens(self) -> int:
        """What the answer may cost: the reserve, within the model's own cap."""
        cap = self.facts.max_output_tokens or self.budget.reserve_tokens
        return min(self.budget.reserve_tokens, cap)

    def learn(self, raw_tokens: int, calls: int, head: int, usage: Usage) -> None:
        """Take a provider's report of the request that counted `raw_tokens` raw when the log ended at `head`."""
        self.session.record_usage(head, self.facts.name, usage, self.session.view_id)
        self.meter.learn(raw_tokens, self.history, usage.prompt_tokens, calls)
        learned = self.store.learned(self.facts.name)
        calibration = self.meter.calibration
        if calibration.samples:
            self.store.save_learned(
                self.facts.name, Learned(calibration.ratio, learned.window_tokens, calibration.samples)
            )

    def learn_window(self, window_tokens: int) -> bool:
        """Take the window that an overflow error told; True where it is news. A person's own word is not overruled."""
        if not 0 < window_tokens < self.budget.window_tokens:
            return False
        learned = self.store.learned(self.facts.name)
        self.store.save_learned(self.facts.name, Learned(learned.ratio, window_tokens, learned.samples))
        reserve = self.settings.model.max_output_tokens
        try:
            self.budget = Budget.of(window_tokens, reserve, self.context.max_tokens)
        except ConfigError:
            self.budget = Budget.of(window_tokens, 0, self.context.max_tokens)
        return True

    def commit(self, proposal: Proposal, record: CompactionRecord) -> CompactionRecord:
        """Put a proposed view in force, on disk first."""
        committed = self.session.commit_view(proposal.view, record, expected_head=proposal.head)
        self.meter.forget(proposal.view)
        self.history.view = proposal.view
        self.settle()
        return committed

    def clear(self) -> CompactionRecord | None:
        """A new, empty view; None where there is nothing to clear."""
        if self.history.view_tokens == 0:
            return None
        before = self.measure().used_tokens
        view = View((Marker(f"clear{self.history.head}", ((1, self.history.head),), ""),), self.history.head + 1)
        after = self.meter.used_with(self.history, view)
        record = CompactionRecord(trigger="manual", stages=("clear",), tokens_before=before, tokens_after=after)
        committed = self.session.commit_view(view, record, expected_head=self.history.head)
        self.history.view = view
        self.settle()
        return committed

    def restore_text(self) -> CompactionRecord | None:
        """Show of a resumed session only the words of its newest turns (session.restore); None where nothing goes."""
        draft = Draft(self.history, self.meter)
        before = self.measure().used_tokens
        newest = max(FEWEST_RESTORED_TURNS, self.context.max_turns // 6)
        keep_text(draft, newest, f"restore{self.history.head}")
        view = draft.view()
        after = self.meter.used_with(self.history, view)
        if view == self.history.view or after >= before:
            return None
        record = CompactionRecord(trigger="manual", stages=("restore",), tokens_before=before, tokens_after=after)
        committed = self.session.commit_view(view, record, expected_head=self.history.head)
        self.history.view = view
        self.settle()
        return committed

    def undo(self) -> CompactionRecord | None:
        return self._moved(self.session.undo())

    def redo(self) -> CompactionRecord | None:
        return self._moved(self.session.redo())

    def settle(self) -> None:
        """From here, usage must grow by a share of the budget before the next automatic compaction."""
        self.quiet_below = self.measure().used_tokens + int(REARM_RATIO * self.budget.budget_tokens)

    def _moved(self, record: CompactionRecord | None) -> CompactionRecord | None:
        if record is not None:
            self.history.view = self.session.view()
            self.settle()
        return record

    def _restore_anchor(self) -> None:
        """A resumed session shows the number that it ended with: the last report is its anchor, if it still fits."""
        rows = self.session.usage()
        last = rows[-1] if rows else None
        if last is None or last.model != self.facts.name or last.view_id != self.session.view_id:
            return
        if last.seq > self.history.head or last.seq < self.history.view.tail - 1:
            return
        raw = self.meter.raw_until(self.history, last.seq)
        self.meter.restore(raw, self.history, last.usage.prompt_tokens)
