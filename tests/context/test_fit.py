"""The last resort reaches the target or the budget after any stages; what it cuts is visible."""

from __future__ import annotations

import re

import pytest

from nca.config.extensions import STAGES
from nca.context.calibration import Anchor
from nca.context.meter import Meter
from nca.context.view import Stub, Summary
from nca.messages import AttachmentPart, Message, TextPart
from nca.vocabulary import fitting_start
from tests.context.logs import history_of
from tests.context.promises import too_large
from tests.context.samples import (
    PROSE,
    answering,
    assistant,
    call,
    calling,
    compacted,
    contents,
    result,
    step,
    talk,
    user,
)


def test_a_summary_that_was_written_for_a_larger_window_is_cut_in_a_smaller_one() -> None:
    history, meter = history_of([*talk(300, 100), user("Go on.")]), Meter()
    prose = PROSE + "\n\nA paragraph of the record, with what was found." * 100
    compacted(history, 64_000, stages=["summarize"], summarizer=answering(prose), meter=meter)
    (summary,) = [item for item in history.view.items if isinstance(item, Summary)]
    assert history.item_tokens(summary) > 1_000
    proposal = compacted(history, 1_000, stages=["truncate"], meter=meter)
    assert meter.used(history) == proposal.tokens_after <= proposal.budget_tokens
    (cut,) = [item for item in history.view.items if isinstance(item, Summary)]
    assert cut.text.endswith(f" [… recall expand=1-{summary.ranges[-1][1]} …]")
    assert cut.prose == summary.prose
    assert contents(history)[-1] == "Go on."


@pytest.mark.parametrize("text", ["", "Look at this."])
@pytest.mark.parametrize("chars", [range(24_000, 27_000, 500)])
def test_a_file_a_little_too_large_is_cut_and_not_stubbed_whole(text: str, chars: range) -> None:
    """A file counts more than the same text as prose: shown as prose it would seem to be smaller uncut."""
    for size in chars:
        file = AttachmentPart("a.txt", ("src/a.py#123 " * 2_100)[:size], size)
        history = history_of([*talk(2), Message("user", (TextPart(text), file)), result("nobody's", "x")])
        compacted(history, 16_000, meter=Meter(provider="mistral"))
        stubs = [item.text for item in history.view.items if isinstance(item, Stub) and item.seq == 5]
        assert all(re.search(r"cut from \d+ lines?; recall expand=5 …\]", stub) for stub in stubs)


@pytest.mark.parametrize("stage", STAGES)
def test_over_the_budget_one_stage_alone_comes_down_to_the_target(stage: str) -> None:
    """Down to the budget only, the next message would make it compact again, and again."""
    log = [message for n in range(60) for message in step(f"c{n}", f"line {n}\n" * 150, path=f"src/{n % 40}.py")]
    history, meter = history_of([user(), *log, assistant(), *talk(20, 150)]), Meter()
    proposal = compacted(history, 8_000, stages=[stage], summarizer=answering(), meter=meter)
    assert proposal.tokens_before > proposal.budget_tokens
    assert too_large(contents(history), meter.used(history), proposal.target_tokens, proposal.budget_tokens) == ""
    assert not compacted(history, 8_000, stages=[stage], summarizer=answering(), meter=meter).compacted


@pytest.mark.parametrize("stages", [STAGES, ("prune",)])
def test_where_a_report_is_above_the_count_it_aims_lower_by_as_much(stages: tuple[str, ...]) -> None:
    """The report is right: by the count alone there would be nothing to do, and the request would be refused."""
    history, meter = history_of([*talk(30), user("Go on.")]), Meter()
    counted = meter.used(history)
    reported = 3 * counted
    meter.anchor = Anchor(meter.subject(history), meter.raw(history), reported)
    proposal = compacted(history, round(reported / 0.7), stages=stages, meter=meter)
    assert proposal.compacted
    assert proposal.tokens_after * reported <= proposal.budget_tokens * counted


@pytest.mark.parametrize("share", [0.7, 0.9, 1.1, 2.0])
def test_a_newest_call_that_leaves_no_room_for_a_record_goes_with_its_result(share: float) -> None:
    """Its arguments cannot be cut. Without a record the model would write the next file with no rule in sight."""
    budget_tokens = 5_200
    page = "All that the page says, in words that nobody has to read twice.\n" * 500
    text = fitting_start(page, int(share * budget_tokens))
    written = [calling(call("w", "write_file", path="docs/page.md", content=text)), result("w", "written")]
    rule = "Always write the docs in British English."
    history, meter = history_of([user(rule), *talk(8), user("Write the page."), *written]), Meter()
    proposal = compacted(history, 8_000, meter=meter)
    assert proposal.budget_tokens == budget_tokens
    assert proposal.tokens_after <= budget_tokens
    shown = contents(history)
    # The record stands behind the request that it has work for: in front of it, the request would look unanswered.
    assert shown[-2] == "Write the page."
    assert rule in shown[-1]
    assert "docs/page.md" in shown[-1]
    assert f"({history.newest_user}) is still open." in shown[-1]
    assert not compacted(history, 8_000, meter=meter).compacted
