"""Events on a screen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial

import msgspec
import pytest

from nca.agent.context_notices import Exchange
from nca.config.schema import TerminalSettings
from nca.events import (
    ApprovalAsked,
    ApprovalGiven,
    CallWritten,
    ContextCompaction,
    ContextWarning,
    ErrorRaised,
    Event,
    Notice,
    ReasoningDelta,
    RequestRead,
    RequestStarted,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from nca.terminal.render.draw import DIFF_LINES, FRAME_SECONDS, Draw
from nca.terminal.render.event_lines import Notices
from nca.terminal.render.output import ANSWER_LINES
from nca.terminal.render.screen import Screen
from nca.terminal.render.stream_writer import RESIZE_SECONDS
from tests.terminal.render.test_screen import Glass
from tests.terminal.stage import Typed


class Seen:
    """A Draw, its emulated screen, and its bytes."""

    def __init__(self, *, show_reasoning: bool = False, columns: int = 100, rows: int = 40, typed: str = "") -> None:
        self.glass = Glass(columns, rows)
        self.seconds = 1_000.0
        screen = Screen(self.glass)
        screen.console.size = (columns, rows)
        self.draw = Draw(screen, Typed(typed), lambda: self.seconds)
        self.draw.apply(TerminalSettings(show_reasoning=show_reasoning))

    def lines(self, *events: Event) -> list[str]:
        for event in events:
            self.draw.on_event(event)
        lines = self.glass.lines()
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def style(self, text: str) -> tuple[str, bool]:
        """The colour of the line with this text, and whether it is the quiet one."""
        for y, line in enumerate(self.glass.emulator.display):
            if text in line:
                return self.glass.emulator.buffer[y][line.index(text)].fg, "\x1b[2m" in self.glass.raw
        raise AssertionError(f"{text!r} is not on the screen")


def finished(reason: str = "answered", steps: int = 1) -> TurnFinished:
    return TurnFinished(reason, "", steps, 0.1)  # type: ignore[arg-type]  # a parameter of the tests


COMPACTED = ContextCompaction(
    phase="completed",
    trigger="threshold",
    stages=("prune", "summarize"),
    tokens_before=166_000,
    tokens_after=84_000,
    kept_facts=41,
    total_facts=44,
    seconds=3.21,
    message="Compacted 166,000 → 84,000 tokens (prune, summarize, kept 41 of 44 facts).",
)


def test_an_answer_with_tools_reads_from_top_to_bottom() -> None:
    lines = Seen().lines(
        RequestStarted(1, "m", 1, 2),
        TextDelta("Let me "),
        TextDelta("look.\n"),
        ToolStarted("1", "read_file", "{}", "read src/a.py"),
        ToolFinished("1", "read_file", is_error=False, summary="120 lines", seconds=0.1),
        ToolStarted("2", "grep", "{}", "grep nothing"),
        ToolFinished("2", "grep", is_error=True, summary="no such\nfolder", seconds=2.0),
        TextDelta("It is **done**.\n\nReally."),
        finished(),
    )
    assert lines == [
        "Let me look.",
        "",
        "• read src/a.py → 120 lines",
        "✗ grep nothing → no such folder · 2.0 s",
        "",
        "It is done.",
        "",
        "Really.",
    ]


def test_an_answer_that_goes_on_after_its_length_limit_is_one_text() -> None:
    lines = Seen().lines(
        RequestStarted(1, "m", 1, 2),
        TextDelta("It is cert"),
        RequestStarted(1, "m", 1, 2),
        ReasoningDelta("Where was I?"),
        TextDelta("ain:\n\n```\none\n"),
        RequestStarted(1, "m", 1, 2),
        TextDelta("two\n```\n"),
        Notice("The model was asked to continue."),
        finished("length"),
    )
    assert lines[0] == "It is certain:"
    assert [line.strip() for line in lines[1:5]] == ["", "one", "two", ""]
    assert lines[5] == "The model was asked to continue."
    assert lines[6].startswith("Stopped: two answers in a row")


def test_between_two_parts_of_an_answer_the_wait_is_shown() -> None:
    async def screen() -> str:
        seen = Seen()
        async with seen.draw.at_work("Thinking"):
            seen.lines(TextDelta("It is cert"))
            seen.seconds += 1
            return "\n".join(seen.lines(RequestStarted(1, "m", 1, 2)))

    assert re.search(r"It is cert\n.*Thinking…", asyncio.run(screen()))


def test_what_is_shown_between_parts_the_blocks_of_an_answer_and_tears_none() -> None:
    async def screen() -> list[str]:
        seen = Seen()
        async with seen.draw.at_work("Thinking"):
            seen.lines(TextDelta("One paragraph"))
            assert not seen.draw.between(lambda: seen.draw.show("the answer to a command"))
            assert "the answer to a command" not in seen.lines()
            seen.seconds += 1
            assert "the answer to a command" in seen.lines(TextDelta(" ends.\n\nMore"))
            seen.seconds += 1
            seen.lines(TextDelta(" text.\n\n```\na = 1\n"))
            assert not seen.draw.between(lambda: seen.draw.show("another"))
            seen.seconds += 1
            seen.lines(TextDelta("b = 2\n```\n\nThe last"))
            seen.seconds += 1
            return seen.lines(TextDelta(" one."), finished())

    shown = [line.strip() for line in asyncio.run(screen())]
    assert [line for line in shown if line] == [
        "One paragraph ends.",
        "the answer to a command",
        "More text.",
        "a = 1",
        "b = 2",
        "another",
        "The last one.",
    ]
    assert "" == shown[shown.index("the answer to a command") - 1] == shown[shown.index("the answer to a command") + 1]


def test_what_waits_for_the_end_of_a_block_is_shown_in_its_order_each_by_itself() -> None:
    async def screen() -> list[str]:
        seen = Seen()
        async with seen.draw.at_work("Thinking"):
            seen.lines(TextDelta("One paragraph"))
            for shown in ("the first", "the second"):
                seen.draw.between(partial(seen.draw.show, shown))
            seen.seconds += 1
            seen.lines(TextDelta(" ends.\n\nMore"))
            seen.draw.between(lambda: seen.draw.show("the third"))
            return seen.lines(TextDelta(" text."), finished())

    shown = [line.strip() for line in asyncio.run(screen())]
    assert shown == ["", "One paragraph ends.", "", "the first", "", "the second", "", "More text.", "", "the third"]


def test_what_is_shown_above_a_prompt_is_parted_from_it() -> None:
    seen = Seen()
    seen.lines(TextDelta("One."), finished())
    seen.draw.begin_prompt(lambda write: write())
    assert seen.draw.between(lambda: seen.draw.show("above"))
    seen.glass.write("›")
    assert [line.strip() for line in seen.lines()] == ["One.", "", "above", "", "›"]


def test_what_is_shown_while_it_thinks_does_not_wait() -> None:
    async def screen() -> list[str]:
        seen = Seen()
        async with seen.draw.at_work("Thinking"):
            seen.lines(ReasoningDelta("Let me see"))
            assert seen.draw.between(lambda: seen.draw.show("at once"))
            assert any("at once" in line for line in seen.lines())
            return seen.lines(ReasoningDelta(", so it is."), TextDelta("Yes."), finished())

    shown = [line.strip() for line in asyncio.run(screen()) if line.strip()]
    assert [shown[0], shown[-1]] == ["at once", "Yes."]
    assert sum("thoughts" in line for line in shown) == 1


def test_the_time_of_a_long_command_stays_in_sight() -> None:
    async def screen() -> str:
        seen = Seen(columns=40)
        async with seen.draw.at_work("Thinking"):
            seen.lines(ToolStarted("1", "shell", "{}", f"$ {'word ' * 20}"))
            seen.seconds += 12
            return "\n".join(seen.lines(ToolProgress("1", "")))

    assert re.search(r"\$ word word .*… 12 s · Esc stops", asyncio.run(screen()))


@pytest.mark.parametrize("columns", range(20, 60))
def test_a_number_and_its_unit_are_not_parted(columns: int) -> None:
    lines = Seen(columns=columns).lines(
        ToolStarted("1", "shell", "{}", "$ make"),
        ToolFinished("1", "shell", is_error=False, summary="done · 20 lines", seconds=20.0),
        Notice("The work took 20 s, files 1/1, 0.2 s for 20 lines"),
    )
    assert not any(re.search(r"\d$", line.strip()) for line in lines)
    assert " ".join("\n".join(lines).split()).count("20 lines") == 2


def test_the_line_of_a_call_goes_on_behind_its_mark() -> None:
    words = " ".join(f"word{number}" for number in range(12))
    lines = Seen(columns=40).lines(
        ToolStarted("1", "shell", "{}", f"$ {words}"),
        ToolFinished("1", "shell", is_error=True, summary="exit code 1", seconds=0.1),
    )
    assert lines[0].startswith("✗ $ word0")
    assert all(re.match(r"  \S", line) for line in lines[1:])
    assert " ".join(map(str.strip, lines)) == f"✗ $ {words} → exit code 1"


def ran(printed: str, columns: int = 100, call_id: str = "1") -> Seen:
    seen = Seen(columns=columns)
    seen.lines(
        ToolStarted(call_id, "shell", "{}", "$ make test"),
        ToolFinished(call_id, "shell", is_error=False, summary="done", seconds=0.1, printed=printed),
    )
    return seen


def test_the_end_of_what_a_command_printed_stands_below_it_in_grey() -> None:
    title = "• $ make test → done"
    assert ran("").lines() == [title]
    assert ran("\n  1\n2\n\n4\n5\n\n").lines() == [title, "    1", "  2", "", "  4", "  5"]
    seen = ran("".join(f"line {number}\n" for number in range(1_300)))
    assert seen.lines() == [
        title,
        "  … 1,296 lines above (/show has more)",
        *(f"  line {number}" for number in range(1_296, 1_300)),
    ]
    assert seen.style("line 1299")[1]
    assert ran("Printed by a task's call.", call_id=f"{TASK}").lines() == [title]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_what_a_command_printed_is_cut_at_the_window_and_sends_no_codes(columns: int) -> None:
    seen = ran(f"\x1b[31mred\x1b]0;title\x07 \u202e{'日本語 ' * 99}\n\tdone", columns)
    _, wide, last = seen.lines()
    assert wide.startswith("  red 日")
    assert wide.endswith("…")
    assert len(wide.encode("utf-16-le")) // 2 <= columns
    assert last.strip() == "done"
    assert "title" not in seen.glass.raw


def test_the_notices_are_exactly_the_message_in_grey_and_yellow() -> None:
    seen = Seen()
    info = ContextWarning("info", 0.65, 65, 100, "Context: 65% used")
    warning = ContextWarning("warning", 0.83, 166, 200, "Context: 83% used (166,000 / 200,000 tokens)")
    assert seen.lines(info, warning) == [info.message, warning.message]
    assert seen.style(info.message) == ("default", True)
    assert seen.style(warning.message)[0] == "brown"  # what pyte calls yellow


def test_a_warning_of_what_goes_well_is_short_until_it_fails_or_nca_makes_no_room() -> None:
    seen = Seen()
    usage = "Context: 83% used (166 / 200 tokens)."
    warning = ContextWarning("warning", 0.83, 166, 200, f"{usage} Compaction at 95%.", compacts=True)
    off = ContextWarning("warning", 0.83, 166, 200, f"{usage} Auto-compaction is off.")
    failed = ContextCompaction("failed", "threshold", message="the disk is full")
    manual = ContextCompaction("completed", "manual", message="Compacted.")
    now = msgspec.structs.replace(warning, is_now=True)
    lines = seen.lines(now, manual, warning, COMPACTED, warning, now, off, failed, warning)
    assert [line for line in lines if line.startswith("Context")] == [
        *(warning.message, warning.message),
        *("Context: 83% used", off.message, warning.message),
    ]
    assert seen.style("Context: 83% used".ljust(30)) == ("default", True)


def test_the_first_warning_of_each_session_says_all() -> None:
    seen = Seen()
    warning = ContextWarning("warning", 1.0, 200, 200, "Context: 100% used (200 / 200 tokens). Follows.", compacts=True)
    over = ContextWarning("warning", 1.04, 208, 200, "Context: 4% over the budget. Follows.", compacts=True)
    one, other = TurnStarted("1a", 1), TurnStarted("2b", 1)
    lines = seen.lines(one, COMPACTED, warning, one, warning, other, warning, other, COMPACTED, warning, over)
    short = "Context: 100% used"
    said = [line for line in lines if line.startswith("Context")]
    assert said == [short, short, warning.message, short, "Context: 4% over the budget"]


def test_a_compaction_is_one_calm_line() -> None:
    start = ContextCompaction("starting", "threshold", tokens_before=166_000)
    assert Seen().lines(start, COMPACTED) == [f"{COMPACTED.message} · 3.2 s"]


def test_why_a_compaction_failed_is_said_once() -> None:
    """One in the background has no turn or command whose error says it."""
    alone = ContextCompaction("failed", "idle", message="the disk is full")
    assert Seen().lines(alone) == ["Compaction failed; nothing changed: the disk is full"]


@pytest.mark.parametrize(
    ("phase", "message", "line"),
    [
        ("failed", "the disk is full", "Compaction failed; nothing changed."),
        ("failed", "interrupted", "Compaction stopped; nothing changed."),
        ("skipped", "Nothing to compact: 10 tokens are used.", "Nothing to compact: 10 tokens are used."),
        ("insufficient", "Compaction does not help.", "Compaction does not help."),
        ("preview", "Would compact 5 → 3 tokens.", "Would compact 5 → 3 tokens."),
    ],
)
def test_every_phase_has_its_words(phase: str, message: str, line: str) -> None:
    event = ContextCompaction(phase, "manual", message=message)  # type: ignore[arg-type]  # a parameter
    assert Seen().lines(event) == [line]


def test_a_preparation_in_the_background_is_told_by_its_result_only() -> None:
    start = ContextCompaction("starting", "idle", tokens_before=150)
    dropped = ContextCompaction("skipped", "idle", message="The conversation moved on.")
    done = ContextCompaction("completed", "idle", message="Compacted 150 → 80 tokens.")
    assert Seen().lines(start, dropped) == []
    assert Seen().lines(start, done) == [done.message]


def test_errors_are_one_red_line_and_what_to_do() -> None:
    seen = Seen()
    assert seen.lines(ErrorRaised("The key was\nrefused.", "Check OPENAI_API_KEY.")) == [
        "The key was refused.",
        "Check OPENAI_API_KEY.",
    ]
    assert seen.style("The key")[0] == "red"


def test_reasoning_is_shown_only_when_asked_for() -> None:
    events: Sequence[Event] = (ReasoningDelta("Think\nmore"), TextDelta("Answer."), finished())
    folded = Seen().lines(*events)
    assert re.fullmatch(r"• Thought for \d+\.\d s \(10 characters\) · /show thoughts", folded[0])
    assert folded[1:] == ["", "Answer."]
    assert Seen(show_reasoning=True).lines(*events) == ["Think", "more", "", "Answer."]
    first, second, *_ = Seen(columns=40).lines(*events)
    assert first.startswith("• Thought for ")
    assert second.startswith("  ")
    assert not second.startswith("   ")


def test_what_was_said_last_is_shown_as_it_was() -> None:
    seen = Seen()
    seen.draw.title("nca")
    seen.draw.exchange(Exchange("what\nis it?", "It is **bold**.\n\n- one\n- two", 4))
    seen.draw.notice("Resuming it.")
    shown = ["nca", "", "› what is it?", "", "It is bold.", "", " • one", " • two", "", "Resuming it."]
    assert seen.lines() == shown


def test_what_follows_an_exchange_is_parted_from_it() -> None:
    seen = Seen()
    seen.draw.exchange(Exchange("", "The one.", 2))
    seen.draw.exchange(Exchange("", "The other.", 4))
    assert seen.lines(TextDelta("And this."), finished()) == ["The one.", "", "The other.", "", "And this."]


def test_a_cleared_screen_is_empty_and_begins_without_an_empty_line() -> None:
    seen = Seen()
    seen.draw.notice("It is gone.")
    seen.draw.clear()
    assert seen.lines() == []
    assert seen.lines(TextDelta("Anew."), finished()) == ["Anew."]


async def test_no_status_stands_below_the_end_of_a_turn() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        assert any("Thinking…" in line for line in seen.lines(RequestStarted(1, "m", 1, 2)))
        seen.lines(finished(), Notice("By the way."))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert seen.lines() == ["", "By the way."]


def test_of_a_long_answer_the_end_is_shown_and_how_much_stands_above() -> None:
    seen = Seen()
    answer = "```python\n" + "".join(f"x = {number}\n" for number in range(50)) + "```\n"
    seen.draw.exchange(Exchange("", answer, 7))
    above, *lines = seen.lines()
    assert above == "… 20 lines above (/context show 7 has all of it)"
    assert (len(lines), lines[0].strip(), lines[-1].strip()) == (ANSWER_LINES, "x = 20", "x = 49")
    seen = Seen()
    seen.draw.exchange(Exchange("", "", 0))
    assert seen.lines() == []


def test_a_card_takes_a_row_for_each_line() -> None:
    card = ("You said: mend the parser", "Last answer: " + "word " * 60)
    done = ContextCompaction("completed", "manual", message="Compacted.", card=card)
    first, task, answer = Seen(columns=40).lines(done)
    assert (first, task) == ("Compacted.", "  You said: mend the parser")
    assert answer.startswith("  Last answer: word word")
    assert answer.endswith("…")


async def test_a_retry_is_one_line_that_counts_down_and_goes() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        for attempt in (1, 2):
            seen.lines(RetryScheduled(attempt, 12.0, "It is busy.", 5))
            seen.seconds += 5
            await asyncio.sleep(3 * FRAME_SECONDS)
            (line,) = seen.lines()
            assert f"Retrying in 7 s ({attempt} of 5): It is busy… 5 s · Esc stops" in line
        seen.seconds += 9
        await asyncio.sleep(3 * FRAME_SECONDS)
        assert "Retrying (2 of 5): It is busy" in seen.lines()[0]
        seen.lines(TextDelta("The answer.\n\nAnd"))
        seen.seconds += 1
        await asyncio.sleep(3 * FRAME_SECONDS)
        assert "Retrying" not in "".join(seen.lines())
    assert seen.lines(finished()) == ["", "The answer.", "", "And"]


def test_plain_lines_have_one_for_each_retry() -> None:
    notices = Notices()
    busy: list[Event] = [RetryScheduled(attempt, 0.5, "It is busy", 3) for attempt in (1, 2, 1)]
    said = [notices.line(event) for event in (*busy, Notice("A note."), busy[0], RetryScheduled(2, 1.5, "It is down."))]
    assert [line[0] for line in said if line] == [
        "It is busy. Retrying in 0.5 s (1 of 3).",
        "Retrying in 0.5 s (2 of 3).",
        "Another request: retrying in 0.5 s (1 of 3).",
        "A note.",
        "It is busy. Retrying in 0.5 s (1 of 3).",
        "It is down. Retrying in 1.5 s (2).",
    ]


def test_notices_and_ends() -> None:
    assert Seen().lines(Notice("A note."), finished("max_steps", 15)) == [
        "A note.",
        "Stopped after 15 steps (agent.max_steps). Say “go on” to continue.",
    ]
    assert "after 1 step (" in Seen().lines(finished("max_steps", 1))[0]
    assert Seen().lines(TextDelta("Half an"), finished("interrupted")) == [
        "Half an",
        "",
        "Interrupted. The answer so far is kept. Ctrl-C twice leaves.",
    ]
    nothing = TurnFinished("interrupted", "", 1, 0.1, is_empty=True)
    assert Seen().lines(nothing) == ["Interrupted before an answer came."]


TASK = "task-0a1b2c3d/1"
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-one = 1\n+one = 2\n three"


def test_each_call_of_a_task_is_a_line_with_its_changes() -> None:
    lines = Seen().lines(
        ToolStarted("1", "task", "{}", "task find it"),
        ToolStarted(TASK, "grep", "{}", "task: grep word"),
        ToolFinished(TASK, "grep", is_error=True, summary="nothing", seconds=0.1),
        ToolStarted(TASK, "edit_file", "{}", "task: edit x.py"),
        ToolFinished(TASK, "edit_file", is_error=False, summary="+1 −1", seconds=0.1, diff=DIFF),
        ToolFinished("1", "task", is_error=False, summary="2 steps, 900 tokens", seconds=2.0),
    )
    assert lines == [
        "✗ task: grep word → nothing",
        "• task: edit x.py → +1 −1",
        "  @@ -1,2 +1,2 @@",
        "  -one = 1",
        "  +one = 2",
        "   three",
        "• task find it → 2 steps, 900 tokens · 2.0 s",
    ]


async def test_a_task_and_parallel_calls_are_one_line_while_they_run() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.draw.on_event(ToolStarted("1", "task", "{}", "task find it"))
        seen.draw.on_event(ToolStarted(TASK, "grep", "{}", "task: grep word"))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("1 call, now grep word · task find it…" in line for line in seen.lines())
        seen.draw.on_event(ToolStarted("2", "grep", "{}", "grep other"))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("2 calls: task find it, grep other" in line for line in seen.lines())
    assert seen.lines() == []


async def test_how_far_a_call_is_stands_behind_it_while_it_runs() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.draw.on_event(ToolStarted("1", "mcp__a__b", "{}", "a: b"))
        seen.draw.on_event(ToolProgress("1", "2/3 \x1b[31mof\nthem"))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("a: b · 2/3 of them…" in line for line in seen.lines())
        seen.draw.on_event(ToolFinished("1", "mcp__a__b", False, "done", 0.1))
        seen.draw.on_event(ToolStarted("1", "mcp__a__b", "{}", "a: b"))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("a: b…" in line for line in seen.lines())
    assert seen.lines()[-1] == "• a: b → done"


async def test_what_a_running_command_prints_is_shown_below_it_until_it_ends() -> None:
    seen = Seen(columns=20)
    async with seen.draw.at_work("Thinking"):
        seen.draw.on_event(ToolStarted("1", "shell", "{}", "$ make"))
        seen.draw.on_event(ToolOutput("1", "one\ntwo"))
        seen.draw.on_event(ToolOutput("1", f"\x1b[31mtwo\nthree {'x' * 20}"))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert [line.partition("…")[0] for line in seen.lines()][-2:] == ["  two", f"  three {'x' * 11}"]
        assert seen.lines()[-3].endswith("$ make…")
        ended = ToolFinished("1", "shell", is_error=False, summary="done", seconds=0.1, printed="all\n")
        assert seen.lines(ended)[1:3] == ["• $ make → done", "  all"]
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert not any("two" in line for line in seen.lines())


@pytest.mark.parametrize(("rows", "shown"), [(40, 5), (7, 3), (5, 1), (4, 0)])
async def test_in_a_low_window_the_call_stays_above_what_it_prints(rows: int, shown: int) -> None:
    seen = Seen(rows=rows, typed="next")
    async with seen.draw.at_work("Thinking"):
        seen.draw.on_event(ToolStarted("1", "shell", "{}", "$ make"))
        seen.draw.on_event(ToolOutput("1", "\n".join(f"line {number}" for number in range(5))))
        await asyncio.sleep(2 * FRAME_SECONDS)
        lines = seen.lines()
        assert [line for line in lines if "line" in line] == [f"  line {number}" for number in range(5)][5 - shown :]
        assert any("$ make" in line for line in lines)
        assert "next" in lines[-1]


def test_a_long_change_is_cut_and_says_where_the_rest_is() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -0,0 +1,99 @@\n" + "\n".join(f"+line {number}" for number in range(99))
    lines = Seen(rows=60).lines(ToolFinished("1", "write_file", is_error=False, summary="", seconds=0.1, diff=diff))
    assert len(lines) == 1 + DIFF_LINES + 1
    assert lines[-1] == f"  … and {99 + 1 - DIFF_LINES} more lines (/show has more)"


def test_a_change_that_was_shown_before_is_not_shown_again() -> None:
    asked = ApprovalAsked("1", "edit_file", "write", "edit x.py", diff=DIFF)
    ended = ToolFinished("1", "edit_file", is_error=False, summary="+1 −1", seconds=0.1, diff=DIFF)
    seen = Seen()
    assert seen.lines(asked, ended) == ["• edit_file → +1 −1"]
    # A later call may have the same id, in another session or behind a compaction.
    assert any("one = 2" in line for line in seen.lines(ended))


async def test_the_time_of_an_answer_to_a_question_is_not_the_call_s() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.lines(
            ToolStarted("1", "shell", "{}", "$ make"), ApprovalAsked("1", "shell", "execute", "$ make", command="make")
        )
        seen.seconds += 60.0
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert not any("$ make" in line for line in seen.lines()), "it does not run before it is allowed"
        seen.lines(ApprovalGiven("1", "shell", "once"))
        seen.seconds += 3.0
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("$ make… 3 s" in line for line in seen.lines())


async def test_an_answer_in_many_pieces_is_drawn_in_few_frames() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        for number in range(500):
            seen.draw.on_event(TextDelta(f"line {number}\n\n"))
    assert seen.lines()[-1] == "line 499"
    assert seen.glass.raw.count("\x1b[?7l") < 100


HOSTILE = "x\x1b]52;c;aGFjaw==\x07\x1b[2J\x9b31m\u202e\x00y"


def test_nothing_hostile_reaches_the_terminal_through_any_event() -> None:
    seen = Seen(show_reasoning=True)
    seen.lines(
        ReasoningDelta(HOSTILE),
        TextDelta(HOSTILE),
        ToolStarted("1", HOSTILE, HOSTILE, HOSTILE),
        ToolFinished("1", HOSTILE, is_error=True, summary=HOSTILE, seconds=1.5),
        ContextWarning("warning", 1.0, 1, 1, HOSTILE),
        ContextCompaction("failed", "manual", message=HOSTILE, stages=(HOSTILE,)),
        RetryScheduled(1, 1.0, HOSTILE),
        Notice(HOSTILE),
        ErrorRaised(HOSTILE, HOSTILE),
        finished(),
    )
    for forbidden in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x00", "\x07"):
        assert forbidden not in seen.glass.raw


async def test_the_spinner_says_how_much_of_a_request_is_read() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.draw.on_event(RequestStarted(1, "m", 1, 2))
        seen.seconds += 1
        seen.draw.on_event(RequestRead(2_100, 3_900))
        assert any("Reading 2,100 of 3,900 tokens…" in line for line in seen.lines())
        seen.seconds += 1
        seen.draw.on_event(RequestRead(3_900, 3_900))
        assert any("Thinking…" in line for line in seen.lines())


def test_the_steps_of_a_list_are_whole_and_the_output_of_a_command_is_cut() -> None:
    step = "Write the report module with totals by month and by category"
    seen = Seen(columns=40)
    lines = seen.lines(
        ToolFinished("1", "todo", is_error=False, summary="0 of 1 done", seconds=0.1, printed=f"› read it\n· {step}"),
        ToolFinished("2", "shell", is_error=False, summary="1 line", seconds=0.1, printed=step),
    )
    assert lines == [
        "• todo → 0 of 1 done",
        "  › read it",
        "  · Write the report module with totals",
        "    by month and by category",
        "• shell → 1 line",
        "  Write the report module with totals b…",
    ]


async def test_a_call_that_the_model_writes_is_named_with_what_has_come_of_it() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.lines(RequestStarted(1, "m", 1, 2), TextDelta("I write it."))
        seen.seconds += 10
        assert any(
            "Writing a call, 80 characters: write_file… 10 s" in line
            for line in seen.lines(CallWritten("write_file", "write_file", 80, 0))
        )
        seen.seconds += 1
        lines = seen.lines(CallWritten("write_file", "write gen/\x1b[2Jslow.py", 9_000, 210))
        assert any("Writing a call, 210 lines: write gen/" in line and "… 11 s" in line for line in lines)
        assert "I write it." in lines
        assert "\x1b[2J" not in seen.glass.raw
        seen.seconds += 1
        assert any("Writing a call…" in line for line in seen.lines(CallWritten("", "", 0, 0)))


async def test_an_answer_that_stalls_is_waited_for_in_sight() -> None:
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.lines(RetryScheduled(1, 1.0, "It is busy.", 5), TextDelta("The first half"))
        seen.seconds += 1
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert not any("Waiting" in line for line in seen.lines()), "text comes in pieces"
        seen.seconds += 30
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert any("Waiting for more of the answer… 31 s · Esc stops" in line for line in seen.lines())
        seen.lines(TextDelta(" and the second."))
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert not any("Waiting" in line for line in seen.lines())


async def test_the_spinner_goes_when_the_work_ends() -> None:
    seen = Seen(typed="next\x1b[2J question")
    async with seen.draw.at_work("Thinking"):
        assert any("Thinking…" in line for line in seen.lines())
        seen.draw.on_event(ToolStarted("1", "grep", "{}", "grep word"))
        seen.draw.on_event(TextDelta("Answer."))
    assert seen.lines() == ["", "Answer."]


async def test_while_the_window_is_dragged_nothing_is_drawn_that_the_next_size_would_rewrap() -> None:
    """tmux moves rewrapped rows up into the scrollback: each size left a torn copy of the tail there."""
    seen = Seen()
    async with seen.draw.at_work("Thinking"):
        seen.lines(ToolStarted("c", "shell", "{}", "make test"))
        seen.seconds += 1
        assert "  one" in seen.lines(ToolOutput("c", "one"))
        before = seen.glass.raw
        for columns in range(99, 60, -1):
            seen.seconds += RESIZE_SECONDS / 2
            seen.draw.screen.console.size = (columns, 40)
            seen.lines(ToolOutput("c", f"at {columns}"))
        assert seen.glass.raw == before
        seen.seconds += 2 * RESIZE_SECONDS
        assert "  at 61" in seen.lines(ToolOutput("c", "at 61"))
