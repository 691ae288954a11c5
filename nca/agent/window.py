"""The context window of one session: its log in memory and on disk, its view, its measure.

Everything that enters goes through here, durable first; everything that asks "how full?" asks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from nca.agent.instructions import PromptOf, SystemPrompt
from nca.agent.state import SessionState
from nca.agent.tool_selection import check_names, idle_rules, offered
from nca.config.loaded import LoadedSettings
from nca.config.schema import ContextSettings, Settings
from nca.context.budget import Budget, Measurement
from nca.context.meter import Meter
from nca.context.plan import Proposal
from nca.context.policy import FRESH, Action, Decision, Moment, Rung, decide, is_made_for_less, rungs_ahead, thresholds
from nca.context.repair_cost import repair_costs
from nca.context.request import request_messages
from nca.context.rules.untouchable import is_within_step
from nca.context.view import View, put_aside
from nca.errors import ProviderFailure, StoreUnreachable
from nca.messages import Entry, Message, Usage
from nca.models.catalog import ModelFacts
from nca.models.claude import compaction_refusal
from nca.sessions import view_rows
from nca.sessions.usage import BESIDE, Learned, UsageRow
from nca.sessions.views import CURRENT, CompactionRecord
from nca.tools.toolbox import Toolbox

FOR_ITS_SIZE = frozenset({"threshold", "idle", "model"})
"""Triggers of compactions that nobody asked for, and that came down to the window's target."""
MOST_TAKEN_UP = 500
"""A resumed session learns from so many of its newest reports: enough for a fit, within a few milliseconds."""


class Window:
    """The contents of the next request, and its budget."""

    def __init__(self, state: SessionState, toolbox: Toolbox, prompt_of: PromptOf) -> None:
        """Raises ConfigError if the file of a section of the system prompt cannot be used, or as `use` does."""
        check_names(state.loaded, toolbox.names)
        self.state = state
        self._toolbox = toolbox
        self._prompt_of = prompt_of
        self.store, self.session, self.history = state.store, state.session, state.history
        self._policy = FRESH
        self._looked_at: tuple[View | None, int] = None, 0
        self.meter = Meter()
        self._take_model(prompt_of(state.settings, state.facts))

    def use(self, loaded: LoadedSettings, facts: ModelFacts) -> None:
        """Take other settings or another model.

        Raises ConfigError if they leave no budget, or deny a tool that there is not; then nothing changed.
        """
        check_names(loaded, self._toolbox.names)
        facts = self.state.as_met(facts)
        prompt = self._prompt_of(loaded.for_model(facts.name).settings, facts)
        self.state.use(loaded, facts)
        self._take_model(prompt)

    def use_model(self, facts: ModelFacts) -> None:
        """Take another model, as `use` does."""
        self.use(self.loaded, facts)

    def _take_model(self, prompt: SystemPrompt) -> None:
        facts, before = self.facts, self.meter
        self.prompt = prompt
        self.tools = self._offered()
        self._policy = self._policy.reconfigured()
        self.meter, goes_on = self.state.meter_after(before, prompt.text, self.tools)
        if before.model != facts.name:
            self._policy = self._policy.model_changed() if before.model else self._policy
            self._is_cut_noted = False
            self._most_answer_tokens = 0
            self.refused_tokens = 0
            if not goes_on:
                self._take_up_reports()

    @property
    def loaded(self) -> LoadedSettings:
        return self.state.loaded

    @property
    def settings(self) -> Settings:
        return self.state.settings

    @property
    def facts(self) -> ModelFacts:
        return self.state.facts

    @property
    def can_see(self) -> bool:
        return self.state.can_see

    @property
    def budget(self) -> Budget:
        return self.state.budget

    @property
    def context(self) -> ContextSettings:
        return self.state.context

    def measure(self) -> Measurement:
        return self.meter.measure(self.history, self.budget)

    def used_beside_more(self) -> int:
        """The usage beside which more has its room: as it is, or as a compaction leaves it."""
        pinned_raw = sum(self.history.run_tokens(pin, pin) for pin in self.history.pins)
        fixed = self.meter.total(self.meter.fixed_raw + pinned_raw)
        return self._policy.used_beside_more(self.measure(), self.context, fixed)

    def decide(self, moment: Moment) -> Decision:
        """The action to take now. A notice in the decision counts as shown."""
        decision = self._decided(moment)
        self._policy = decision.state
        return decision

    def due(self) -> Action:
        """The action before the next request, if nothing is added to it."""
        return self._decided("before request").action

    def is_larger_than_view(self) -> bool:
        """Whether nca itself compacted for a smaller window than this one. At most once for each view and budget.

        A view to which a person went back is theirs.
        """
        view, budget_tokens = self.history.view, self.budget.budget_tokens
        is_of_log = "summarize" in self.context.stages and not self.context.max_turns
        if not view.items or self.context.auto != "on" or not is_of_log:
            return False
        if self._looked_at[0] is view and self._looked_at[1] == budget_tokens:
            return False
        self._looked_at = view, budget_tokens
        views = self.session.views
        record = views.record(views.same_as_current()[-1])
        is_for_size = record.trigger in FOR_ITS_SIZE and views.redo_id is None
        return is_for_size and is_made_for_less(record.tokens_after, self.measure(), self.context)

    def rearm(self) -> None:
        """Wait until usage has grown before the next automatic compaction."""
        self._policy = self._policy.rearmed(self.measure())

    def compacted_in_vain(self) -> bool:
        """Note that an automatic compaction saved nothing. True if no further one will be tried."""
        self._policy = self._policy.compacted_in_vain(self.measure())
        return self._policy.gives_up_now

    def take_pins(self) -> None:
        """Read the session's pins again, which may have changed."""
        if (pins := self.session.views.pins()) != self.history.pins:
            self.history.pins, self._policy = pins, self._policy.reconfigured()

    def rungs_ahead(self, *, prepares: bool) -> list[Rung]:
        """The automatic actions as the context fills, lowest threshold first."""
        by_provider = self.provider_compacts_at > 0
        return rungs_ahead(self.measure(), self._policy, self.context, prepares=prepares, by_provider=by_provider)

    def append(self, *messages: Message) -> list[Entry]:
        """Append messages to the log, and so to the view. Durable on return."""
        entries = self.session.log.append(messages)
        for entry in entries:
            self.history.append(entry)
        return entries

    def append_beside(self, *messages: Message) -> list[Entry]:
        """Append messages to the log that are not part of the conversation. Durable on return."""
        entries = self.session.rewinds.append_beside(messages)
        for entry in entries:
            self.history.append(entry)
        before, after = self.history.view, self.session.views.current()
        self.history.view = after
        self.meter.shows_same(before, after)
        return entries

    def request_messages(self, *also: Message) -> list[dict[str, Any]]:
        """The messages of the next request; `also`: after those that the view shows."""
        return request_messages(
            self.history,
            system_prompt=self.prompt.text,
            provider=self.facts.provider,
            model=self.facts.name,
            with_blocks=self.provider_compacts_at > 0,
            can_see=self.can_see,
            also=also,
        )

    def next_messages(self) -> list[dict[str, Any]]:
        """The messages of the next request without the person's coming message."""
        messages = self.request_messages() if self.history.head else []
        if not messages and self.prompt.text:
            messages = [{"role": "system", "content": self.prompt.text}]
        return messages

    @property
    def provider_compacts_at(self) -> int:
        """The request size in tokens from which the provider compacts; 0: it is not asked to."""
        if not self.context.provider_side or self.provider_side_refusal:
            return 0
        return thresholds(self.budget, self.context, self._policy).compact

    @property
    def provider_side_refusal(self) -> str:
        """Why `context.provider_side` has no effect with this model; "" if it has, or is off."""
        wanted = self.context.provider_side
        if not wanted:
            return ""
        return compaction_refusal(self.facts, self.compacts_from)

    @property
    def compacts_from(self) -> int:
        """The usage in tokens from which the settings have a compaction."""
        return thresholds(self.budget, self.context).compact

    def notices(self) -> Iterator[str]:
        """Notes for a person about the settings and this model's window, one line each."""
        yield from idle_rules(self.state.loaded, self._toolbox.names)
        if self.state.left_out is not None:
            first, last = self.state.left_out
            yield (
                f"Messages {first:,} to {last:,} are left out of the context: the session is many times as long as the"
                " window. recall finds them, the next compaction keeps what matters in them, and /context undo shows"
                " them again."
            )
        if self.facts.is_window_guess and not (self.settings.model.context_window or self.state.is_window_learned):
            tokens = f"{self.budget.window_tokens:,}"
            yield (
                f"The context window of {self.facts.name} is not known; {tokens} tokens are assumed"
                " (set it with /config model.context_window N)."
            )
        if self.state.way_out:
            yield self.state.way_out
        if self.settings.model.reasoning not in ("auto", "off") and not self.facts.can_reason:
            yield f"model.reasoning has no effect: {self.facts.name} does not reason."
        if refusal := self.provider_side_refusal:
            yield f"context.provider_side has no effect: {refusal}; nca compacts here."

    @property
    def spent(self) -> float:
        """US dollars for all requests of this session, as far as prices are known."""
        # Rounded, because ten times 0.1 is 0.9999999999999999.
        return round(self.session.usage.totals().cost or 0.0, 9)

    def answer_tokens(self) -> int:
        """The most tokens of the answer: the reserve, within the model's own limit."""
        caps = (self.budget.reserve_tokens, self.facts.max_output_tokens, self._most_answer_tokens)
        return min(cap for cap in caps if cap)

    def shorten_answer(self, failure: ProviderFailure) -> bool:
        """Ask for a shorter answer after its length was refused; False if it cannot be shorter.

        If the length exceeds the window, the window is learned. Else the answer keeps to the limit that the provider
        named, or to a quarter if it named none.
        """
        before = self.answer_tokens()
        limit, asked = failure.limit_tokens or 0, failure.asked_tokens or 0
        if not failure.is_overflow:
            self._most_answer_tokens = limit if 0 < limit < before else before // 4
        elif not self.learn_window(limit):
            self._most_answer_tokens = before - (asked - limit) if 0 < asked - limit < before else before // 4
        return 0 < self.answer_tokens() < before

    def record_beside(self, model: str, usage: Usage, *, seq: int = BESIDE) -> None:
        """Record usage that is not about a request of this view: it costs, but teaches nothing about counts.

        seq  UNREPORTED: nca's own count, because no report came
        """
        self.session.usage.record(seq, model, usage, self.session.views.current_id)

    def learn(self, raw_tokens: int, calls: int, head: int, usage: Usage, prompt_tokens: int | None = None) -> None:
        """Take a provider's report of the request that counted `raw_tokens` raw when the log ended at `head`.

        prompt_tokens: what the last sampling read, if the answer took several and `usage` is their sum.
        """
        if prompt_tokens is None:
            self.session.usage.record(head, self.facts.name, usage, self.session.views.current_id)
        else:
            self.record_beside(self.facts.name, usage)
        self.meter.learn(raw_tokens, self.history, prompt_tokens or usage.prompt_tokens, calls)
        if prompt_tokens is None:
            self._count_answer(head, usage)
        calibration = self.meter.calibration
        with suppress(StoreUnreachable):  # the next report teaches the same
            self.state.answered(prompt_tokens or usage.prompt_tokens)
            if calibration.samples:
                self.store.save_learned(self.facts.name, Learned(calibration.ratio, None, calibration.samples))

    def learn_window(self, window_tokens: int) -> bool:
        """Take the window that an overflow error named; True if it is news."""
        is_news = self.state.learn_window(window_tokens)
        if is_news:
            self.take_tools()
        return is_news

    def note_refused(self) -> None:
        """A request overflowed although it should fit, so the real window is smaller than assumed."""
        self.refused_tokens = self.measure().used_tokens

    def note_cut(self) -> bool:
        """The provider left out a part of the request. True the first time for a model."""
        is_first, self._is_cut_noted = not self._is_cut_noted, True
        return is_first

    def take_tools(self) -> None:
        """Offer the tools that the toolbox has now. Only between turns: it changes the beginning of every request."""
        self.tools = self._offered()
        self.meter.take_tools(self.tools)

    def commit(self, proposal: Proposal, record: CompactionRecord) -> CompactionRecord:
        """Put a proposed view in force: in the store, then here."""
        committed = self.session.views.commit(proposal.view, record, expected_head=proposal.head)
        self.meter.forget(proposal.view)
        self.history.view = proposal.view
        self._policy = self._policy.compacted(self.measure())
        return committed

    def put_in_force(self, view: View, cause: str, *, trigger: str = "manual") -> CompactionRecord | None:
        """Commit a view that no plan made, such as one that the person asked for; None if it is the one in force."""
        return self.go_to(view, cause, trigger) if view != self.history.view else None

    def go_to(
        self, view: View, cause: str, trigger: str, *, parent: int = CURRENT, files: int = 0, pins: tuple[int, ...] = ()
    ) -> CompactionRecord:
        """Commit such a view. `parent`: the stored one that it begins from; the rest: see `SessionViews.commit`."""
        before, after = self.measure().used_tokens, self.meter.used_again(self.history, view)
        record = CompactionRecord(trigger=trigger, stages=(cause,), tokens_before=before, tokens_after=after)
        head = self.history.head
        committed = self.session.views.commit(view, record, expected_head=head, parent=parent, files=files, pins=pins)
        self.show(view)
        return committed

    def put_aside(self, first: int) -> None:
        """The messages from `first` on are no part of the conversation. Durable on return."""
        self.go_to(put_aside(self.history.view, [(first, self.history.head)]), view_rows.BESIDE, view_rows.BESIDE)

    def show(self, view: View) -> None:
        """Show a view that is current in the store. Raises StoreError if its messages cannot be read."""
        self.history.tokens_of(view)
        if view != self.history.view:
            self.history.view = view
            self._policy = self._policy.edited(self.measure())

    def _offered(self) -> list[dict[str, Any]]:
        """The tools that the model is offered; none that compacts if a person has turned compaction off."""
        off = {name for name in self._toolbox.names if self.settings.tools.is_off(name)}
        off |= {"compact"} if self.context.auto == "off" else set()
        return offered(self._toolbox, self.facts, self.budget, off)

    def _decided(self, moment: Moment) -> Decision:
        return decide(
            self.measure(),
            self._policy,
            self.context,
            moment,
            by_provider=self.provider_compacts_at > 0,
            is_within_step=is_within_step(self.history),
        )

    def _take_up_reports(self) -> None:
        """Learn again from the reports of a resumed session, so that it shows the usage that it ended with."""
        # Another agent's requests had another system prompt and other tools: they teach nothing.
        origin = self.session.info.origin
        own_since = origin.messages if origin else 0
        rows = [row for row in self.session.usage.reports(MOST_TAKEN_UP) if row.seq >= own_since]
        ours = [row for row in rows if row.model == self.facts.name and row.seq <= self.history.head]
        ours = [row for row in ours if self.session.views.is_sound(row.view_id)]
        reports: dict[int, tuple[int, int, int]] = {}
        for view_id in dict.fromkeys(row.view_id for row in ours):
            places = [place for place, row in enumerate(ours) if row.view_id == view_id]
            view, seqs = self.session.views.load(view_id), [ours[place].seq for place in places]
            counts = self.history.counts_until(view, seqs)
            added = repair_costs(self.history, view, seqs, self.meter.provider)
            for place, (text, calls), mended in zip(places, counts, added, strict=True):
                reports[place] = (text + mended, calls, ours[place].usage.prompt_tokens)
        self.meter.relearn([reports[place] for place in range(len(ours))], self.history)
        same = self.session.views.same_as_current()
        of_view = (row for row in reversed(rows) if row.view_id in same)
        self._restore_anchor(next(of_view, None))

    def _count_answer(self, head: int, usage: Usage) -> None:
        """Take the counted answer to the request that ended at `head`, if it follows in the log."""
        if self.history.head > head and self.history.message(head + 1).role == "assistant":
            self.meter.answered(self.history, self.history.message(head + 1), usage)

    def _restore_anchor(self, last: UsageRow | None) -> None:
        """Anchor the count at the last report of the current view, if it still fits."""
        if last is None or last.model != self.facts.name:
            return
        if last.seq > self.history.head or last.seq < self.history.view.tail - 1:
            return
        raw = self.meter.raw_until(self.history, last.seq)
        self.meter.restore(raw, self.history, last.usage.prompt_tokens)
        self._count_answer(last.seq, last.usage)
