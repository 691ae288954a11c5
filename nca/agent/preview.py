"""The preview of a compaction: its numbers and its summary, before anything changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from nca.agent.compaction_diff import newly_hidden, newly_stubbed
from nca.context.plan import Proposal
from nca.context.view import Range, Summary, View
from nca.messages import clean_text


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compaction would do. Counts in tokens, costs in US dollars (None: no price is known).

    message         one line for a person
    seconds, cost   what making the proposal took: its summary
    input_cost      of one input token
    """

    proposal: Proposal
    view_before: View
    message: str = ""
    seconds: float = 0.0
    cost: float | None = None
    input_cost: float | None = None

    @property
    def summary(self) -> Summary | None:
        """The new summary, or None."""
        old = {item.id for item in self.view_before.items if isinstance(item, Summary)}
        new = [item for item in self.proposal.view.items if isinstance(item, Summary) and item.id not in old]
        return new[-1] if new else None

    @property
    def goes(self) -> tuple[Range, ...]:
        """The messages that would be hidden."""
        return newly_hidden(self.view_before, self.proposal.view)

    @property
    def stubbed(self) -> int:
        """How many messages would be shortened."""
        return newly_stubbed(self.view_before, self.proposal.view)

    def request_cost(self, tokens: int) -> float | None:
        """The price of one request of so many tokens, without a cache."""
        return tokens * self.input_cost if self.input_cost is not None else None

    def with_prose(self, prose: str) -> Preview:
        """The preview with another text of the summary. What code keeps beside it stays."""
        summary = self.summary
        prose = clean_text(prose).strip()
        if summary is None or prose == summary.prose.strip():
            return self
        head, _, rest = summary.text.partition(summary.prose) if summary.prose else (summary.text, "", "")
        text = f"{head}{prose}{rest}" if summary.prose else f"{head}\n\n{prose}"
        edited = msgspec.structs.replace(summary, text=text, prose=prose, made_by="you")
        items = tuple(edited if item is summary else item for item in self.proposal.view.items)
        view = msgspec.structs.replace(self.proposal.view, items=items)
        return replace(self, proposal=replace(self.proposal, view=view))
