"""nca itself, measured like the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from side import Adapter, Replayed, Row, serve

import nca
from nca.config.extensions import STAGES
from nca.config.schema import ContextSettings, PruneSettings
from nca.context.budget import Budget
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer
from nca.context.policy import is_due
from nca.context.request import request_messages
from nca.context.summary import SummaryReply
from nca.context.view import View
from nca.messages import Entry, Message
from nca.wire import message_from_dict, messages_from_list

STAGES_OF = {
    "1, 2, 4": ("prune", "deduplicate", "truncate"),
    "1, 2, 4 in a session": ("prune", "deduplicate", "truncate"),
    "1, 2": ("prune", "deduplicate"),
    "extract": STAGES,
    "summary": STAGES,
}
"""In a session every message was counted when it came; else all are counted anew."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A log, counted, and the view of it that is sent."""

    messages: list[Message]
    history: History
    meter: Meter
    view: View

    def __copy__(self) -> Shown:
        return self


class Nca(Adapter):
    variants = tuple(STAGES_OF)
    counter = "nca's estimate"

    def native(self, rows: list[Row]) -> Any:
        messages = messages_from_list(rows)
        return Shown(messages, _history(messages), Meter(), View())

    def plain(self, native: Any) -> list[Row]:
        return request_messages(native.history, view=native.view)

    def count(self, native: Any) -> int:
        return native.meter.used_with(native.history, native.view)

    def first_estimate(self, native: Any, model: str) -> int:
        """As a chat counts that takes the session up."""
        meter = Meter(provider=model.partition("/")[0])
        meter.look(native.history)
        return meter.used(native.history)

    def check(self, native: Any, task: Row) -> Any:
        return native.meter.measure(native.history, Budget.of(task["window_tokens"]))

    def compact(self, native: Any, task: Row) -> Any:
        is_cold = task["variant"] != "1, 2, 4 in a session"
        history, meter = (_history(native.messages), Meter()) if is_cold else (native.history, native.meter)
        view = planned(history, meter, task).view
        return Shown(native.messages, history, meter, view)

    def from_dicts(self, rows: list[Row], task: Row) -> list[Row]:
        """As a library: `nca.compact`, which also checks the messages, counts them and keeps a record."""
        window, budget = task["window_tokens"], task["budget_tokens"]
        return nca.compact(
            rows,
            context_window=window,
            max_output_tokens=window - budget,
            target=task["target_tokens"] / budget,
            stages=STAGES_OF[task["variant"]],
            fit="cut",
        ).messages

    def is_overflow(self, error: Row) -> bool:
        failure = nca.classify_provider_error(error["body"], status=error["status"], provider=error["provider"])
        return failure.is_overflow

    def replayed(self, task: Row) -> Replayed:
        return InAnAgent(self, task)


class InAnAgent(Replayed):
    """Log and view, as nca's own agent has them; with all stages, it decides as nca does by default."""

    def __init__(self, adapter: Adapter, task: Row) -> None:
        super().__init__(adapter, task)
        self.history, self.meter = History(), Meter()

    def append(self, row: Row) -> None:
        self.history.append(Entry(self.history.head + 1, message_from_dict(row)))

    def request(self) -> list[Row]:
        budget, settings = Budget.of(self.task["window_tokens"]), ContextSettings()
        measured, has_all = self.meter.measure(self.history, budget), STAGES_OF[self.task["variant"]] == STAGES
        if is_due(measured, settings) if has_all else measured.used_tokens > self.task["trigger_tokens"]:
            aim = {"target_tokens": 0, "is_repeated": True} if has_all else {}
            self.history.view = planned(self.history, self.meter, self.task | aim).view
            self.compactions += 1
        return request_messages(self.history)


def _history(messages: list[Message]) -> History:
    return History(Entry(seq, message) for seq, message in enumerate(messages, 1))


def planned(history: History, meter: Meter, task: Row) -> Any:
    told = task.get("summary") if task["variant"] == "summary" else None
    planning = compact(
        history,
        meter,
        Budget.of(task["window_tokens"]),
        _settings(task["variant"]),
        target_tokens=task["target_tokens"],
        is_repeated=task.get("is_repeated", False),
        has_summarizer=bool(told),
    )
    return run(planning, (lambda _: SummaryReply(told, "scripted")) if told else no_summarizer)


def _settings(variant: str) -> ContextSettings:
    if variant != "1, 2":
        return ContextSettings(stages=STAGES_OF[variant])
    # What results can save at most: none is protected but the newest two.
    everything = PruneSettings(protect_tokens=0, minimum_savings_tokens=0)
    return ContextSettings(stages=STAGES_OF[variant], prune=everything)


if __name__ == "__main__":
    serve(Nca())
