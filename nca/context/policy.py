"""When a compaction is due, and how far it goes: the only place that compares usage with a threshold.

`decide` is asked at four moments and answers with an action. The state that it needs between two questions is a
`PolicyState`, which nothing but this module changes: each thing that can happen to it is a method that gives the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Literal, NamedTuple

from nca.config.schema import INFO_THRESHOLD, ContextSettings
from nca.config.tables import Injection
from nca.context.budget import Budget, Measurement
from nca.context.history import History, complete_turns

MOST_FREE_RATIO = 0.5
"""A compaction frees at least this share of the part that can shrink."""
PLACEHOLDER_TOKENS = 24
"""Tokens that the replacement of all left-out messages takes in any case."""
REARM_RATIO = 0.05
"""No second automatic compaction before the usage has grown by this share of the budget."""
PREPARE_BELOW_RATIO = 0.05
"""Preparation begins this share of the budget below the compaction threshold, if context.idle_threshold is 0."""
WAIT_RATIO = 0.1
"""A compaction waits for the end of a step within this share of the budget, and within half of the rest."""
MOST_UNHELPFUL = 2
"""After so many automatic compactions in a row that saved nothing, none is tried until the budget is exceeded."""
WARNING_THRESHOLD = 0.80
"""From this usage on a notice is a warning, whether or not a compaction is due."""
USUAL_TARGET_RATIO = 0.8
"""The target as a share of the threshold, if the threshold is set low."""
NEAREST_TARGET_RATIO = 0.9
"""A target nearer to the threshold than this would make compactions many and small."""
SAME_WINDOW = 0.8
"""A compaction ends within a few hundredths of its target; one that ended lower than this had another."""
_HAIR = 1e-6
"""Floats: 0.55 * 100 is 55.000000000000007, and 55 of 100 is at the threshold."""


class Share(NamedTuple):
    """A share of the budget that depends on the window: the usual one; in a small window so many tokens up to a share.

    In a small window room is short: the loss is not worth the saving (`python -m benchmarks.targets`).
    """

    usual: float
    tokens: int
    most: float

    def of(self, budget: Budget, given: float | str) -> float:
        """The share in this budget, unless one is given."""
        if not isinstance(given, str):
            return given
        return max(self.usual, min(self.most, self.tokens / budget.budget_tokens))


COMPACT, TARGET = Share(0.80, 38_000, 0.95), Share(0.40, 20_000, 0.80)

Moment = Literal["after turn", "idle", "before request", "compaction tried"]
"""`compaction tried`: before the same request again, once the compaction that was decided on is over."""
Action = Literal["nothing", "notice", "prepare", "compact", "refuse"]
NoticeLevel = Literal["info", "warning"]
Crossed = Literal["info", "warning", "due", "full"]
_RISING: tuple[Crossed, ...] = ("info", "warning", "due", "full")
Trigger = Literal["threshold", "model"]


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The state of one context window between decisions.

    rearm_tokens   no automatic compaction below this usage, unless the budget is exceeded
    said_tokens    the usage that a compaction has said: if it is above the info threshold, notices would say the same
                   again, until the usage has fallen below it; 0: none
    unhelpful      automatic compactions in a row that saved nothing
    shown          the crossings that the person has been told about
    trigger        the cause of the next compaction: a change of the model, or the threshold
    """

    rearm_tokens: int = 0
    said_tokens: int = 0
    unhelpful: int = 0
    shown: frozenset[Crossed] = frozenset()
    trigger: Trigger = "threshold"

    def rearmed(self, measured: Measurement) -> PolicyState:
        """After a compaction, a preview or a look that found nothing worth doing: wait until usage has grown."""
        growth = int(REARM_RATIO * measured.budget.budget_tokens)
        return replace(self, rearm_tokens=measured.used_tokens + growth)

    def compacted(self, measured: Measurement) -> PolicyState:
        """After a compaction; `measured` is the size then."""
        return replace(FRESH.rearmed(measured), said_tokens=measured.used_tokens)

    def compacted_in_vain(self, measured: Measurement) -> PolicyState:
        """After an automatic compaction that saved nothing."""
        return replace(self.rearmed(measured), unhelpful=self.unhelpful + 1)

    def edited(self, measured: Measurement) -> PolicyState:
        """After an undo, a redo or another change of the view that a person made: it is theirs, so leave it alone."""
        return replace(self.rearmed(measured), unhelpful=0)

    def reconfigured(self) -> PolicyState:
        """After a change of settings or pins: a compaction may help again."""
        return replace(self, unhelpful=0)

    def model_changed(self) -> PolicyState:
        """After a change of the model: everything that is due in its window is due again."""
        return PolicyState(trigger="model")

    def used_beside_more(self, measured: Measurement, settings: ContextSettings, fixed_tokens: int) -> int:
        """The usage beside which more has its room: as it is, or as a compaction leaves it if more makes one due.

        fixed_tokens  of what no compaction takes
        """
        if settings.auto != "on" or self.has_given_up:
            return measured.used_tokens
        least = _floor_tokens(measured.budget, fixed_tokens, aim_ratio(measured.budget, settings))
        return min(measured.used_tokens, least)

    @property
    def has_given_up(self) -> bool:
        """Compaction has not helped; it is tried again only if the budget is exceeded."""
        return self.unhelpful >= MOST_UNHELPFUL

    @property
    def gives_up_now(self) -> bool:
        """The last compaction was the one that made it give up: the moment for one `insufficient` event."""
        return self.unhelpful == MOST_UNHELPFUL


FRESH = PolicyState()
"""Nothing has happened yet."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The action to take now.

    notice   the level of the notice to show with it; None: none, or it has been shown
    is_due   a compaction is due, whether or not the settings let it happen by itself
    state    the state behind this decision
    trigger  the cause of a compaction
    """

    action: Action
    state: PolicyState
    notice: NoticeLevel | None = None
    is_due: bool = False
    trigger: Trigger = "threshold"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Usages in tokens: a notice above `info`, a warning from `warn` on; preparation and compaction from these on."""

    info: int
    warn: int
    prepare: int
    compact: int


@dataclass(frozen=True, slots=True)
class Rung:
    """An automatic action as the context fills: at so many tokens, or `is_reached` now."""

    action: Literal["notice", "prepare", "compact"]
    tokens: int
    is_reached: bool


def decide(
    measured: Measurement,
    state: PolicyState,
    settings: ContextSettings,
    moment: Moment,
    *,
    by_provider: bool = False,
    is_within_step: bool = False,
) -> Decision:
    """Decide the action at this moment.

    by_provider     the provider compacts, so only an exceeded budget is ours
    is_within_step  a step of the model's plan is being worked on: its end is the better moment, while there is room
    """
    at = thresholds(measured.budget, settings, state, by_provider=by_provider)
    used, is_due = measured.used_tokens, measured.used_tokens >= at.compact
    # If nothing follows, a compaction that is due says no more than the warning before it, until nothing can be sent.
    due: Crossed = "warning" if settings.auto == "off" else "due"
    due = due if settings.auto == "on" or measured.fits else "full"
    match moment:
        case "after turn":
            state = replace(state, said_tokens=state.said_tokens if used > at.info else 0)
            above = due if is_due else _crossed(used, at) if _is_news(state, at, settings) else None
            return _notified(state, above, is_due=is_due)
        case "idle":
            prepares = settings.auto == "on" and not by_provider and used >= at.prepare
            return Decision("prepare" if prepares else "nothing", state, is_due=is_due)
        case "before request" if is_due and is_within_step and _may_wait(used, at, measured.budget, state):
            return Decision("nothing", state, is_due=True)
        case "before request" if is_due:
            decision = _notified(replace(state, trigger="threshold"), due, is_due=True)
            if settings.auto != "off":
                return replace(decision, action="compact", trigger=state.trigger)
            return decision if measured.fits else replace(decision, action="refuse")
        case "before request":
            return Decision("nothing", replace(state, trigger="threshold"))
        case "compaction tried":
            return Decision("nothing" if measured.fits else "refuse", state, is_due=is_due)


def _is_news(state: PolicyState, at: Thresholds, settings: ContextSettings) -> bool:
    """Whether a notice says more than the last compaction did. Where none comes by itself, each notice does."""
    return state.said_tokens <= at.info or state.has_given_up or settings.auto != "on"


def _crossed(used: int, at: Thresholds) -> Crossed | None:
    return "warning" if used >= at.warn else "info" if used > at.info else None


def _notified(state: PolicyState, above: Crossed | None, *, is_due: bool) -> Decision:
    """The notice of this crossing, once; falling below it lets its notice come again."""
    reached = _RISING[: _RISING.index(above) + 1] if above else ()
    shown = frozenset[Crossed]({above} if above else ()) | state.shown.intersection(reached)
    new = above if above not in state.shown else None
    notice: NoticeLevel | None = "warning" if new == "due" or new == "full" else new
    return Decision("notice" if notice else "nothing", replace(state, shown=shown), notice, is_due)


def thresholds(
    budget: Budget, settings: ContextSettings, state: PolicyState = FRESH, *, by_provider: bool = False
) -> Thresholds:
    """The usage of each action. Above the budget the context is compacted in any state."""
    ratio = _compact_ratio(budget, settings)
    below = max(ratio - PREPARE_BELOW_RATIO, ratio / 2)
    info_ratio = min(INFO_THRESHOLD, below) if settings.info_threshold == INFO_THRESHOLD else settings.info_threshold
    info = floor(info_ratio * budget.budget_tokens + _HAIR)
    warn, over_budget = max(_from(WARNING_THRESHOLD, budget), state.rearm_tokens), budget.budget_tokens + 1
    if by_provider or state.has_given_up:
        return Thresholds(info, over_budget, over_budget, over_budget)
    compact = min(max(_from(ratio, budget), state.rearm_tokens), over_budget)
    prepare = max(_from(settings.idle_threshold or below, budget), state.rearm_tokens)
    return Thresholds(info, min(warn, compact), min(prepare, compact), compact)


def _may_wait(used: int, at: Thresholds, budget: Budget, state: PolicyState) -> bool:
    """Whether a compaction that is due may wait for the end of a step. Not in a window that has become smaller."""
    room = min(int(WAIT_RATIO * budget.budget_tokens), (budget.budget_tokens - at.compact) // 2)
    return state.trigger == "threshold" and used < at.compact + room


def is_due(measured: Measurement, settings: ContextSettings) -> bool:
    """Whether a compaction is due for a request of this size, without any other knowledge."""
    return decide(measured, FRESH, settings, "before request").is_due


def rungs_ahead(
    measured: Measurement, state: PolicyState, settings: ContextSettings, *, prepares: bool, by_provider: bool = False
) -> list[Rung]:
    """The actions as the context fills from here, lowest first. `prepares`: idle time is used for preparation."""
    at, used = thresholds(measured.budget, settings, state, by_provider=by_provider), measured.used_tokens
    if settings.auto == "off":
        return []
    compact = Rung("compact", at.compact, used >= at.compact)
    if compact.is_reached:
        return [compact]
    is_ahead = used <= at.info < at.compact and _is_news(state, at, settings)
    rungs = [Rung("notice", at.info, is_reached=False)] if is_ahead else []
    if prepares and settings.auto == "on" and at.prepare < at.compact:
        rungs.append(Rung("prepare", at.prepare, used >= at.prepare))
    return sorted([*rungs, compact], key=lambda rung: rung.tokens)


def is_worth_it(tokens_saved: int, budget: Budget) -> bool:
    """Whether a compaction that was prepared below the threshold saves enough to lose the provider's cache for it."""
    return tokens_saved >= REARM_RATIO * budget.budget_tokens


def is_made_for_less(tokens_after: int, measured: Measurement, settings: ContextSettings) -> bool:
    """Whether a compaction with this result aimed at a smaller window, and this one has room."""
    target = int(aim_ratio(measured.budget, settings) * measured.budget.budget_tokens)
    return tokens_after < SAME_WINDOW * target and is_worth_it(target - measured.used_tokens, measured.budget)


def target_tokens(budget: Budget, fixed_tokens: int, target_ratio: float) -> int:
    """The target of a compaction: never below the fixed part plus the same share of the rest, up to half of that."""
    return max(int(target_ratio * budget.budget_tokens), _floor_tokens(budget, fixed_tokens, target_ratio))


def _floor_tokens(budget: Budget, fixed_tokens: int, target_ratio: float) -> int:
    free = max(0, budget.budget_tokens - fixed_tokens)
    return fixed_tokens + max(int(min(MOST_FREE_RATIO, target_ratio) * free), min(free, PLACEHOLDER_TOKENS))


def room_tokens(budget: Budget, target_ratio: float) -> int:
    """The most that this target leaves beside the fixed part."""
    return max(int(target_ratio * budget.budget_tokens), PLACEHOLDER_TOKENS)


def target_ratio(budget: Budget, settings: ContextSettings) -> float:
    """The share of the budget that a compaction comes down to."""
    return TARGET.of(budget, settings.target_ratio)


def aim_ratio(budget: Budget, settings: ContextSettings) -> float:
    """The same for an automatic compaction: far enough below its threshold to be rare.

    If a person has set context.idle_threshold, that counts: the prepared view is used from the next message on.
    """
    at = thresholds(budget, settings)
    trigger_ratio = (at.prepare if settings.idle_threshold else at.compact) / budget.budget_tokens
    ratio = target_ratio(budget, settings)
    return ratio if ratio <= NEAREST_TARGET_RATIO * trigger_ratio else USUAL_TARGET_RATIO * trigger_ratio


def most_target_tokens(budget: Budget, settings: ContextSettings) -> int:
    """How far the target may rise so that no message of the person goes; 0: somebody has set it."""
    is_set = not isinstance(settings.target_ratio, str)
    return 0 if is_set else int(NEAREST_TARGET_RATIO * thresholds(budget, settings).compact)


def has_too_many_turns(history: History, max_turns: int) -> bool:
    """Whether the oldest half of the complete turns is to be trimmed; 0 means no limit.

    Looks at every message that is shown, so ask once a turn.
    """
    return max_turns > 0 and len(complete_turns(history.visible(), history.pins)) > max_turns


def reminder_is_reached(injection: Injection, used_tokens: int, usage_ratio: float) -> bool:
    """Whether the usage is at a reminder's threshold; never for a reminder that counts turns."""
    if injection.over_tokens:
        return used_tokens >= injection.over_tokens
    return bool(injection.over_usage) and usage_ratio >= injection.over_usage


def _compact_ratio(budget: Budget, settings: ContextSettings) -> float:
    """The share of the budget from which on compaction is due, by its share or its number, whichever comes first."""
    ratio = COMPACT.of(budget, settings.compact_threshold)
    return min(ratio, settings.compact_tokens / budget.budget_tokens) if settings.compact_tokens else ratio


def _from(ratio: float, budget: Budget) -> int:
    """The first whole token at a share of the budget."""
    return ceil(ratio * budget.budget_tokens - _HAIR)
