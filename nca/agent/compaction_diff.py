"""The parts of the view that a compaction takes and keeps: the preview before it, and the difference after it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from nca.agent.usage_breakdown import window_parts
from nca.agent.window import Window
from nca.context.parts import FIXED, TALK, split, view_parts
from nca.context.plan import Proposal
from nca.context.summary import CUT
from nca.context.summary_writer import BY_CODE
from nca.context.view import Marker, Range, Stub, Summary, View, merge_ranges, without_ranges
from nca.errors import StoreError
from nca.messages import clean_text
from nca.sessions.views import CompactionRecord
from nca.tools.planning import Compact


@dataclass(frozen=True, slots=True)
class CompactionDiff:
    """The view before and after a compaction.

    before, after  tokens by kind (`nca.context.parts.KINDS`), of the log at that time; they add up to what the
                   compaction's record says
    hidden         the messages that it hid
    stubs          the messages that it shortened
    made           the summaries and markers that it put in
    """

    record: CompactionRecord
    before: dict[str, int]
    after: dict[str, int]
    hidden: tuple[Range, ...]
    stubs: tuple[int, ...]
    made: tuple[Summary | Marker, ...]

    @property
    def shortened(self) -> int:
        return len(self.stubs)


def compaction_diff(window: Window, record: CompactionRecord) -> CompactionDiff:
    """The diff of a compaction of this session. Raises StoreDamaged if one of its views cannot be read."""
    views, history = window.session.views, window.history
    before, after = views.load(record.view_before), views.load(record.view_after)
    # The store does not say how long the log was then: not shorter than the view, and the rest by the clock.
    end = max(after.tail - 1, bisect_right(history.entries, record.at, key=lambda entry: entry.at))
    old, new = view_parts(history, before, end), view_parts(history, after, end)
    parts, kinds = window_parts(window), [kind for kind in TALK if old[kind] or new[kind]]
    fixed = {kind: parts[kind] for kind in FIXED if parts[kind]}
    return CompactionDiff(
        record,
        _counted(fixed, old, kinds, record.tokens_before),
        _counted(fixed, new, kinds, record.tokens_after),
        newly_hidden(before, after),
        newly_stubbed(before, after),
        tuple(item for item in after.items if isinstance(item, Summary | Marker) and item not in before.items),
    )


def writer_in_words(made_by: str) -> str:
    """Who wrote a summary: `code`, a model's name, or both. "" if there is none."""
    model, _, code = made_by.rpartition(" + ")
    return f"{model} and code" if model and code == BY_CODE else "code" if made_by == BY_CODE else made_by


def stages_in_words(stages: Sequence[str], made_by: str) -> str:
    """`prune, summarize with code`: the stages that acted, and who wrote the summary."""
    using = f" with {writer_in_words(made_by)}" if made_by else ""
    return ", ".join(f"{stage}{using if stage == 'summarize' else ''}" for stage in stages)


def summary_writer(window: Window, record: CompactionRecord) -> str:
    """Who wrote the summary that a compaction put in; "" if there is none, or one of its views cannot be read."""
    views = window.session.views
    try:
        before, after = views.load(record.view_before), views.load(record.view_after)
    except StoreError:
        return ""
    return new_writer(before, after)


class _Wish(msgspec.Struct):
    reason: str = ""


def reason_asked(window: Window, record: CompactionRecord) -> str:
    """Why the model asked for a compaction, in its words; "" if it did not ask, or its call cannot be read."""
    if record.trigger != "asked":
        return ""
    with suppress(StoreError, msgspec.MsgspecError):
        since = window.session.views.stored_view(record.view_after).since
        # It was made before the next request: the newest step with calls is the one that asked.
        messages = (window.history.entries[seq - 1].message for seq in range(since - 1, 0, -1))
        calls = next((message.tool_calls for message in messages if message.tool_calls), ())
        call = next((one for one in calls if one.name == Compact.name), None)
        return clean_text(msgspec.json.decode(call.arguments, type=_Wish).reason) if call is not None else ""
    return ""


def new_writer(before: View, after: View) -> str:
    """The same of two views. Where the prose is that of before, joined or cut, code has written what is new.

    A model may write the same words again: then they speak of more messages.
    """
    made = [item for item in after.items if isinstance(item, Summary) and item not in before.items]
    if not made:
        return ""
    earlier = [item for item in before.items if isinstance(item, Summary) and item.prose]
    prose, told = made[-1].prose.removesuffix(CUT), [span for item in earlier for span in item.prose_of or item.ranges]
    is_kept = prose and prose in "\n\n".join(item.prose for item in earlier)
    speaks_of_more = without_ranges(made[-1].prose_of or made[-1].ranges, told)
    return BY_CODE if is_kept and not speaks_of_more else made[-1].made_by


def newly_hidden(before: View, after: View) -> tuple[Range, ...]:
    """The messages that the second view hides and the first does not."""
    return without_ranges(_hidden(after), _hidden(before))


def newly_stubbed(before: View, after: View) -> tuple[int, ...]:
    """The messages that the second view shortens and the first shows whole, or shortens in another way."""
    old = {item for item in before.items if isinstance(item, Stub)}
    return tuple(item.seq for item in after.items if isinstance(item, Stub) and item not in old)


def _hidden(view: View) -> tuple[Range, ...]:
    return merge_ranges(span for item in view.items if isinstance(item, Summary | Marker) for span in item.ranges)


def _counted(fixed: Mapping[str, int], raw: Counter[str], kinds: Sequence[str], tokens: int) -> dict[str, int]:
    """A request of so many tokens by kind, as `/context` splits it."""
    fixed = fixed if sum(fixed.values()) < tokens else {}  # another model's, say
    return {**fixed, **split(tokens - sum(fixed.values()), {kind: raw[kind] for kind in kinds})}


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of a compaction. Counts in tokens, costs in US dollars (None: no price is known).

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
        return len(newly_stubbed(self.view_before, self.proposal.view))

    def request_cost(self, tokens: int) -> float | None:
        """The price of one request of this many tokens, without a cache."""
        return tokens * self.input_cost if self.input_cost is not None else None

    def with_prose(self, prose: str) -> Preview:
        """The preview with another text of the summary. Code's part beside it stays."""
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
