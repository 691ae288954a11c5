"""The context window of one session: its log in memory and on disk, its view, its measure.

Everything that enters goes through here, durable first; everything that asks "how full?" asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nca.compat.stages import keep_text
from nca.config.loaded import LoadedSettings
from nca.config.schema import ContextSettings, Settings
from nca.context.budget import Budget, Measurement
from nca.context.calibration import Calibration
from nca.context.draft import Draft
from nca.context.history import History
from nca.context.log import Log
from nca.context.meter import Meter
from nca.context.plan import Proposal
from nca.context.policy import FRESH, Action, Decision, Moment, Rung, decide, rungs_ahead, thresholds
from nca.context.repair_cost import repair_costs
from nca.context.request import request_messages
from nca.context.view import Marker, View
from nca.errors import ConfigError, ProviderFailure, StoreError
from nca.messages import Entry, Message, Usage
from nca.models import provider_compaction
from nca.models.catalog import ModelFacts
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.usage import BESIDE, Learned, UsageRow
from nca.sessions.views import CompactionRecord

FEWEST_RESTORED_TURNS = 3
"""Seed 3: max(3, max_context_turns / 6) turns are restored."""
Offer = Callable[[ModelFacts, Budget], Sequence[dict[str, Any]]]
"""The definitions of tools that a model with such a budget is told of."""
MOST_TAKEN_UP = 500
"""The newest reports that a resumed session takes up: more than enough for a fit, in a few thousandths of a second."""


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
        offer: Offer = lambda facts, budget: (),
    ) -> None:
        self.store = store
        self.session = session
        self.system_prompt = system_prompt
        self._offer = offer
        self.history = History(Log(session.log), session.views.current(), session.views.pins())
        self._policy = FRESH
        self.is_cut_told = False
        """The person knows that the provider leaves out a part of what it is sent."""
        self._standing: tuple[int, float | None] | None = None
        self._most_answer_tokens = 0
        """What the provider allows for an answer, once it has refused more; 0: it has not."""
        self.meter = Meter()
        self.use(loaded, facts)

    def use(self, loaded: LoadedSettings, facts: ModelFacts, system_prompt: str | None = None) -> None:
        """Take other settings or another model, and what it is told first where that changes too.

        Raises ConfigError where they make no budget, and nothing has changed.
        """
        settings = loaded.for_model(facts.name).settings
        learned = self.store.learned(facts.name)
        limits = [facts.window_tokens, learned.window_tokens]
        window = settings.model.context_window or min(limit for limit in limits if limit)
        self.budget = Budget.of(window, settings.model.max_output_tokens, settings.context.max_tokens)
        self.system_prompt = self.system_prompt if system_prompt is None else system_prompt
        self.settings: Settings = settings
        self.facts = facts
        self.tools = list(self._offer(facts, self.budget))
        unlearned = Calibration.unlearned(facts.provider, count_as=settings.context.count_as)
        calibration = Calibration(learned.ratio, learned.samples) if learned.samples else unlearned
        anchor = None
        is_same, has_model = self.meter.model == facts.name, bool(self.meter.model)
        self._policy = self._policy.reconfigured()
        if is_same:
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
        if not is_same:
            self._policy = self._policy.model_changed() if has_model else self._policy
            self.is_cut_told = False
            self._most_answer_tokens = 0
            self._take_up_reports()

    @property
    def context(self) -> ContextSettings:
        return self.settings.context

    def measure(self) -> Measurement:
        return self.meter.measure(self.history, self.budget)

    def decide(self, moment: Moment) -> Decision:
        """What is to be done now; the notice that goes with it counts as shown."""
        decision = self._decided(moment)
        self._policy = decision.state
        return decision

    def due(self) -> Action:
        """What is to be done before the next request, if nothing is added to it."""
        return self._decided("before request").action

    def rearm(self) -> None:
        """From here, usage must grow before the next automatic compaction."""
        self._policy = self._policy.rearmed(self.measure())

    def compacted_in_vain(self) -> bool:
        """An automatic compaction saved nothing. True where it was the one after which no further one is tried."""
        self._policy = self._policy.compacted_in_vain(self.measure())
        return self._policy.gives_up_now

    def take_pins(self) -> None:
        """Take up the session's pins, after they have changed."""
        self.history.pins = self.session.views.pins()
        self._policy = self._policy.reconfigured()

    def rungs_ahead(self, *, prepares: bool) -> list[Rung]:
        """What happens by itself as the context fills from here, lowest first."""
        by_provider = self.provider_compacts_at > 0
        return rungs_ahead(self.measure(), self._policy, self.context, prepares=prepares, by_provider=by_provider)

    def append(self, *messages: Message) -> list[Entry]:
        """Durable on return, then in the view's tail."""
        entries = self.session.log.append(messages)
        for entry in entries:
            self.history.append(entry)
        return entries

    def request_messages(self) -> list[dict[str, Any]]:
        return request_messages(
            self.history,
            system_prompt=self.system_prompt,
            provider=self.facts.provider,
            model=self.facts.name,
            with_blocks=self.provider_compacts_at > 0,
            can_see=self.facts.can_see,
        )

    def next_messages(self) -> list[dict[str, Any]]:
        """How the next request begins: what is there of it before the person has typed."""
        messages = self.request_messages() if self.history.head else []
        if not messages and self.system_prompt:
            messages = [{"role": "system", "content": self.system_prompt}]
        return messages

    @property
    def provider_compacts_at(self) -> int:
        """Tokens of a request from which on the provider compacts by itself; 0: it is not asked to."""
        if not self.context.provider_side or self.provider_side_refusal:
            return 0
        return thresholds(self.budget, self.context, self._policy).compact

    @property
    def provider_side_refusal(self) -> str:
        """Why `context.provider_side` has no effect with this model; "" where it has, or is not wanted."""
        wanted = self.context.provider_side
        if not wanted:
            return ""
        return provider_compaction.refusal(self.facts, thresholds(self.budget, self.context).compact)

    def notices(self) -> Iterator[str]:
        """What a person should know of this model's window, one line each."""
        if self.facts.window_is_assumed and not self.settings.model.context_window:
            tokens = f"{self.budget.window_tokens:,}"
            yield (
                f"The context window of {self.facts.name} is not known; {tokens} tokens are assumed"
                " (/config model.context_window N says better)."
            )
        if refusal := self.provider_side_refusal:
            yield f"context.provider_side has no effect: {refusal}; nca compacts here."

    @property
    def spent(self) -> float:
        """US dollars for all that was asked in this session, as far as prices are known."""
        # Ten calls at 0.1 are 0.9999999999999999, and they have cost a dollar.
        return round(self.session.usage.totals().cost or 0.0, 9)

    @property
    def standing(self) -> tuple[int, float | None]:
        """What the compactions that stand saved, in tokens, and cost in US dollars (None: no cost is known)."""
        if self._standing is None:
            self._standing = self.session.views.totals_in_effect()
        return self._standing

    def answer_tokens(self) -> int:
        """What the answer may cost: the reserve, within the model's own cap."""
        caps = (self.budget.reserve_tokens, self.facts.max_output_tokens, self._most_answer_tokens)
        return min(cap for cap in caps if cap)

    def shorten_answer(self, failure: ProviderFailure) -> bool:
        """Ask for less room after it was refused; False where no less can be asked for.

        Where it exceeds the window, the window is learned; else the answer keeps to the limit that the provider told,
        or to a quarter where it told none.
        """
        before = self.answer_tokens()
        limit, asked = failure.limit_tokens or 0, failure.asked_tokens or 0
        if not failure.is_overflow:
            self._most_answer_tokens = limit if 0 < limit < before else before // 4
        elif not self.learn_window(limit):
            self._most_answer_tokens = before - (asked - limit) if 0 < asked - limit < before else before // 4
        return 0 < self.answer_tokens() < before

    def record_beside(self, model: str, usage: Usage) -> None:
        """Keep what was used for something else than one request of this view: it is paid for, and measures nothing."""
        self.session.usage.record(BESIDE, model, usage, self.session.views.current_id)

    def learn(self, raw_tokens: int, calls: int, head: int, usage: Usage, prompt_tokens: int | None = None) -> None:
        """Take a provider's report of the request that counted `raw_tokens` raw when the log ended at `head`.

        prompt_tokens: what its last sampling read, where the answer took several and `usage` is their sum.
        """
        if prompt_tokens is None:
            self.session.usage.record(head, self.facts.name, usage, self.session.views.current_id)
        else:
            self.record_beside(self.facts.name, usage)
        self.meter.learn(raw_tokens, self.history, prompt_tokens or usage.prompt_tokens, calls)
        if prompt_tokens is None:
            self._count_answer(head, usage)
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
        self.take_tools()
        return True

    def take_tools(self) -> None:
        """Take up what the toolbox offers now; between two turns only, as it changes every request's beginning."""
        self.tools = list(self._offer(self.facts, self.budget))
        self.meter.take_tools(self.tools)

    def commit(self, proposal: Proposal, record: CompactionRecord) -> CompactionRecord:
        """Put a proposed view in force, on disk first."""
        committed = self.session.views.commit(proposal.view, record, expected_head=proposal.head)
        self._stands(committed)
        self.meter.forget(proposal.view)
        self.history.view = proposal.view
        self._policy = self._policy.compacted(self.measure())
        return committed

    def clear(self) -> CompactionRecord | None:
        """A new, empty view; None where there is nothing to clear."""
        if self.history.view_tokens == 0:
            return None
        before = self.measure().used_tokens
        view = View((Marker(f"clear{self.history.head}", ((1, self.history.head),), ""),), self.history.head + 1)
        return self.put_in_force(view, "clear", before, self.meter.used_again(self.history, view))

    def restore_text(self) -> CompactionRecord | None:
        """Show of a resumed session only the words of its newest turns (session.restore); None where nothing goes."""
        draft = Draft(self.history, self.meter)
        before = self.measure().used_tokens
        newest = max(FEWEST_RESTORED_TURNS, self.context.max_turns // 6)
        keep_text(draft, newest, f"restore{self.history.head}")
        view = draft.view()
        after = self.meter.used_again(self.history, view)
        if view == self.history.view or after >= before:
            return None
        return self.put_in_force(view, "restore", before, after)

    def undo(self) -> CompactionRecord | None:
        return self._moved(self.session.views.undo(), self.session.views.redo)

    def redo(self) -> CompactionRecord | None:
        return self._moved(self.session.views.redo(), self.session.views.undo)

    def put_in_force(self, view: View, stage: str, before: int, after: int) -> CompactionRecord:
        """A view that a person asked for, on disk first."""
        record = CompactionRecord(trigger="manual", stages=(stage,), tokens_before=before, tokens_after=after)
        committed = self.session.views.commit(view, record, expected_head=self.history.head)
        self._stands(committed)
        self.history.view = view
        self._policy = self._policy.edited(self.measure())
        return committed

    def _decided(self, moment: Moment) -> Decision:
        by_provider = self.provider_compacts_at > 0
        return decide(self.measure(), self._policy, self.context, moment, by_provider=by_provider)

    def _stands(self, record: CompactionRecord) -> None:
        """One compaction more that stands: the others need not be added up anew."""
        if self._standing is not None:
            saved, cost = self._standing
            costs = [one for one in (cost, record.cost) if one is not None]
            saved += record.tokens_before - record.tokens_after
            self._standing = saved, sum(costs) if costs else None

    def _moved(
        self, record: CompactionRecord | None, back: Callable[[], CompactionRecord | None]
    ) -> CompactionRecord | None:
        """Take up the view that the store went to; where what it shows cannot be read, the store goes `back`."""
        if record is not None:
            try:
                view = self.session.views.current()
                self.history.tokens_of(view)
            except StoreError:
                back()
                raise
            self._standing = None
            self.history.view = view
            self._policy = self._policy.edited(self.measure())
        return record

    def _take_up_reports(self) -> None:
        """A resumed session shows the number that it ended with, and has learned what its reports taught."""
        rows = self.session.usage.reports(MOST_TAKEN_UP)
        ours = [row for row in rows if row.model == self.facts.name and row.seq <= self.history.head]
        reports: dict[int, tuple[int, int, int]] = {}
        for view_id in dict.fromkeys(row.view_id for row in ours):
            places = [place for place, row in enumerate(ours) if row.view_id == view_id]
            view, seqs = self.session.views.load(view_id), [ours[place].seq for place in places]
            counts = self.history.counts_until(view, seqs)
            added = repair_costs(self.history, view, seqs, self.meter.provider)
            for place, (text, calls), mended in zip(places, counts, added, strict=True):
                reports[place] = (text + mended, calls, ours[place].usage.prompt_tokens)
        self.meter.relearn([reports[place] for place in range(len(ours))], self.history)
        of_view = (row for row in reversed(rows) if row.view_id == self.session.views.current_id)
        self._restore_anchor(next(of_view, None))

    def _count_answer(self, head: int, usage: Usage) -> None:
        """The answer to the request that ended at `head` was counted too, where it follows it in the log."""
        if self.history.head > head and self.history.message(head + 1).role == "assistant":
            self.meter.answered(self.history, self.history.message(head + 1), usage)

    def _restore_anchor(self, last: UsageRow | None) -> None:
        """The last report of the view in force is the anchor, if it still fits."""
        if last is None or last.model != self.facts.name:
            return
        if last.seq > self.history.head or last.seq < self.history.view.tail - 1:
            return
        raw = self.meter.raw_until(self.history, last.seq)
        self.meter.restore(raw, self.history, last.usage.prompt_tokens)
        self._count_answer(last.seq, last.usage)
