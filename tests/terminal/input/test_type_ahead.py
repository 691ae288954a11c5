"""Typing while nca works: what is shown, sent, kept and edited."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.terminal.tty import Tty, chat

CTRL_A, CTRL_C, CTRL_D, CTRL_E, ESCAPE, LEFT, UP = "\x01", "\x03", "\x04", "\x05", "\x1b", "\x1b[D", "\x1b[A"
LINES = "\n".join(f"line {number}" for number in range(60))


@contextmanager
def at_work(*replies: Any, **options: Any) -> Iterator[Tty]:
    """A chat in the midst of an answer that does not go on."""
    with chat("never", *replies, **options) as tty:
        tty.line("SLOW please")
        tty.sees("The first piece.")
        yield tty


def killed(tty: Tty, home: Path, text: str) -> None:
    """Kill it once the draft on disk has the text."""
    while not any(text in one.read_text() for one in home.glob("history.draft-*")):
        time.sleep(0.02)
    tty.process.kill(signal.SIGKILL)
    tty.ends()


def test_what_is_typed_is_shown_as_the_prompt_will_have_it() -> None:
    with at_work(columns=80) as tty:
        tty.send(f"helo\x7f\x7fllo wod{LEFT}rl{CTRL_A}> {CTRL_E}!")
        tty.sees("› > hello world! (Enter queues it)")
        tty.send(f"\r\x1b[200~{LINES}\x1b[201~ what\\\r")
        tty.sees("  for the next step: > hello world!\n› [pasted 60 lines] what\n   (Enter queues it)")
        tty.send("is " + "this " * 30)
        tty.sees("\n  is this this")
        tty.send(CTRL_C)
        tty.sees("› [pasted 60 lines] what\n  is this this")
        tty.sees(" waiting: > hello world!\n")
        assert "never" not in tty.text()


def test_shift_tab_while_it_works_changes_the_mode_and_is_no_part_of_the_line() -> None:
    with at_work() as tty:
        tty.send("one\x1b[Z two")
        tty.sees("  accept-edits: nca changes files")
        tty.sees("› one two (Enter queues it)")
        tty.send("\x15\x04")
        tty.sees("Ctrl-D leaves when this is done, Esc now.")
        tty.send(ESCAPE)
        tty.sees("Interrupted")
        assert tty.ends() == 0


def test_up_on_an_empty_line_takes_the_last_queued_one_back() -> None:
    with at_work("Second.", columns=80) as tty:
        tty.send("one\rtwo words\r")
        tty.sees("  for the next step (2): one ⏎ two words")
        tty.send("x\x7f" + UP)
        tty.sees("  for the next step: one\n› two words (Enter queues it)")
        tty.send("!\r")
        tty.sees("  for the next step (2): one ⏎ two words!")
        tty.send(UP + "\x15" + UP)
        tty.sees("› one (Enter queues it)")
        assert not any("queued:" in row for row in tty.shown())


def test_lines_that_do_not_fit_before_the_newest_one_are_counted() -> None:
    with at_work(columns=60) as tty:
        tty.send("first of all this\rand then " + "that " * 20 + "too\r")
        tty.sees("that too\n›")
        assert "  for the next step (2): …" in tty.text()


def test_queued_lines_are_sent_one_after_the_other_and_ctrl_d_leaves_behind_them() -> None:
    with at_work("Second answer.", "Third answer.") as tty:
        tty.send(CTRL_C)
        tty.sees("Interrupted")
        tty.settle()
        tty.send("PAUSE first\r")
        tty.send(f"second\\\rline\rthird \x1b[200~{LINES}\x1b[201~\r{CTRL_D}")
        tty.sees("› second\n  line")
        tty.sees("› third [pasted 60 lines]")
        assert tty.ends() == 0


def test_a_paste_that_never_ends_keeps_no_key_while_it_works() -> None:
    with at_work() as tty:
        tty.send("\x1b[200~half a paste")
        tty.sees("› half a paste (Enter queues it)")
        tty.send(" typed\r")
        tty.sees("  for the next step: half a paste typed")


def test_a_paste_that_an_answer_ends_in_is_one_paste_wherever_it_is_cut(tmp_path: Path) -> None:
    """The lines before the end of the answer were a message, each later one was sent, and the command ran."""
    paste = "\x1b[200~one ü\r!touch RAN\rlast\x1b[201~"
    begin, end = paste.index("ü"), paste.index("\x1b[201~")
    cuts = [3, 5, 6, begin, begin + 2, end - 2, *range(end + 1, len(paste))]
    answers = map("Answer {}.".format, range(len(cuts)))
    with chat(*answers, columns=80, piece_seconds=0.2, directory=str(tmp_path)) as tty:
        tty.sees("›")
        for number, cut in enumerate(cuts):
            if is_read_at_work := number % 2:
                tty.line("go on")
                tty.sees(f"Answer {number}")
            tty.send(("" if is_read_at_work else "go on\r") + paste[:cut])
            tty.sees(f"Answer {number}.")
            tty.send(paste[cut:])
            tty.sees("\n› one ü\n  !touch RAN\n  last")
            tty.settle()
            tty.send(CTRL_C)
            tty.sees_no("!touch")
        assert "The script is over" not in tty.text()
        assert b"\x1b[?2004l" not in tty.raw, "a paste would have come unmarked"
    assert not list(tmp_path.iterdir())


def test_a_paste_right_behind_the_key_that_ends_a_list_is_for_the_prompt(tmp_path: Path) -> None:
    lines = "!touch RAN\r" * 15_000
    with chat("Never.", columns=80, directory=str(tmp_path)) as tty:
        tty.sees("›")
        tty.settle()
        tty.line("/config")
        tty.sees("Search:")
        tty.send(f"\x1b\x1b[200~{lines}end\x1b[201~")
        tty.sees("› [pasted 15001 lines]")
        tty.settle()
        assert "Never." not in tty.text()
    assert not list(tmp_path.iterdir())


def test_escape_stops_the_answer_and_keeps_what_was_typed() -> None:
    with at_work() as tty:
        tty.send("one\rtwo")
        tty.sees("  for the next step: one\n› two (Enter queues it)")
        tty.send(LEFT + ESCAPE)
        tty.sees("Interrupted. The answer so far is kept.")
        tty.sees("› two")
        tty.sees(" waiting: one")
        tty.settle()
        assert "never" not in tty.text()


def test_a_signal_key_takes_away_nothing_that_was_typed_right_before_it() -> None:
    with at_work() as tty:
        tty.send(f"one\rtwo{CTRL_C}")
        tty.sees("Interrupted. The answer so far is kept.")
        tty.sees("› two")
        tty.sees(" waiting: one")
        tty.settle()
        assert "never" not in tty.text()


def test_a_key_that_begins_with_escape_stops_nothing_even_where_it_comes_in_two_parts() -> None:
    with at_work() as tty:
        tty.send("wod")
        tty.sees("› wod")
        for _ in range(3):
            tty.send(ESCAPE)
            tty.send("[D")
        tty.send("> ")
        tty.sees("› > wod (Enter queues it)")
        tty.send("\x1b[200~pasted ")
        tty.sees("› > pasted wod")
        tty.send(ESCAPE)
        tty.send("[201~!")
        tty.sees("› > pasted !wod (Enter queues it)")
        assert "Interrupted" not in tty.text()


def test_with_vi_keys_escape_edits_a_line_that_is_typed_and_stops_the_answer_elsewhere() -> None:
    with at_work(settings={"terminal.keys": "vi"}) as tty:
        tty.send("a line")
        tty.sees("› a line")
        tty.send(ESCAPE)
        # Read together with the next key, it would be Alt with that key.
        tty.sees("That key works at the prompt only.")
        tty.send("0i> \r")
        tty.sees("  for the next step: a line0i>")
        assert "Interrupted" not in tty.text()
        tty.send(ESCAPE)
        tty.sees("Interrupted")


def test_a_low_window_shows_the_row_of_what_is_typed() -> None:
    with at_work(columns=24, rows=6) as tty:
        tty.send("a long line that is typed to its end")
        tty.sees("  rows not shown: 1 abo…\n› typed to its end")
        tty.send(CTRL_C)
        tty.sees("Interrupted")


def test_ctrl_c_that_comes_in_one_piece_with_a_line_stops_its_answer() -> None:
    with chat("never") as tty:
        tty.sees("›")
        tty.settle()
        tty.send(f"SLOW please\r{CTRL_C}")
        tty.sees("Typing replaces it, Esc empties")


def test_ctrl_d_before_the_program_has_started_leaves() -> None:
    with chat() as tty:
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert "left with 0" in tty.text()


def test_what_was_queued_and_not_sent_is_said_on_leaving_and_up_brings_it_back(tmp_path: Path) -> None:
    with at_work(home=str(tmp_path)) as tty:
        tty.send(f"second \x1b[200~{LINES}\x1b[201~\r/compact\rthird")
        tty.sees("› third (Enter queues it)")
        (draft,) = tmp_path.glob("history.draft-*")
        assert "+/compact" in draft.read_text()
        tty.send(CTRL_C)
        tty.sees("Your 2 queued lines were not sent; they wait below the prompt.")
        tty.sees("› third")
        tty.send(CTRL_C)
        tty.sees_no("› third")
        tty.send("\x04")
        assert tty.ends() == 0
        whole = tty.text()
        assert "Not sent: second line 0 line 1" in whole
        assert "Not sent: /compact" in whole
        assert "Up brings it back" in whole
        assert "line 59" not in whole
        assert not draft.exists()
    with chat(home=str(tmp_path)) as tty:
        tty.sees("›")
        # The newest first: from line to line of an entry, then to the one before.
        for shown, ups in (("› /compact", 1), ("  line 59", 1), ("› third", 60)):
            tty.send(UP * ups)
            tty.sees(shown)


def test_what_stood_in_the_prompt_when_a_signal_ended_it_is_kept(tmp_path: Path) -> None:
    with chat(home=str(tmp_path)) as tty:
        tty.sees("›")
        tty.send("half a line")
        tty.sees("› half a line")
        tty.process.kill(signal.SIGTERM)
        assert tty.ends() == 143
    with chat(home=str(tmp_path)) as tty:
        tty.sees("›")
        tty.send(UP)
        tty.sees("› half a line")


def test_what_stood_in_the_prompt_when_nca_was_killed_is_kept(tmp_path: Path) -> None:
    with chat(home=str(tmp_path)) as tty:
        tty.sees("›")
        tty.send("half a line")
        tty.sees("› half a line")
        killed(tty, tmp_path, "half a line")
    with chat(home=str(tmp_path)) as tty:
        tty.sees("A chat that was killed had unsent text: Up in an empty prompt brings it back.")
        tty.settle()
        tty.send(UP)
        tty.sees("› half a line")
        assert not list(tmp_path.glob("history.draft-*"))


def test_without_a_history_on_disk_what_was_not_sent_is_said_whole() -> None:
    with at_work() as tty:
        tty.send(f"{'word ' * 80}the end\r/compact\r")
        tty.sees("when this is done: /compact")
        tty.send(CTRL_C)
        tty.sees("Your 2 queued lines were not sent; the first is in the prompt, the rest waits below it.")
        # In the prompt it stands from its beginning; the line below the answer showed its end.
        tty.sees("› word")
        tty.send(CTRL_C)
        tty.sees_no("word word")
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert "Not sent: /compact" in tty.text()
        assert "Up brings" not in tty.text()


def test_the_cursor_stands_where_the_next_letter_goes() -> None:
    """A screen reader and an input method follow the terminal's cursor."""
    with chat(columns=60, rows=20) as tty:
        tty.sees("›")
        tty.line("SLOW please")
        tty.sees("The first piece.")
        tty.send("typed")
        tty.sees("› typed (Enter queues it)")
        tty.until(lambda: (tty.shown()[tty.screen.cursor.y][:7], tty.screen.cursor.x) == ("› typed", 7))
        tty.send("\x1b[D\x1b[D")
        tty.until(lambda: tty.screen.cursor.x == 5)
        tty.resize(24, 20)
        tty.settle()
        tty.send("X")
        tty.sees("› typXed")
        tty.until(lambda: tty.screen.cursor.x == 6)
        assert tty.text().count("typXed") == 1


def test_what_was_queued_during_a_command_is_said_to_be_back() -> None:
    with chat() as tty:
        tty.line("!echo begun; sleep 60")
        tty.sees("\nbegun")
        tty.send("queued\r")
        tty.sees("  when this is done: queued")
        tty.send(ESCAPE)
        tty.sees("Stopped.\nYour queued line was not sent; it is in the prompt.\n")
        tty.sees("› queued")
        tty.send("in its place")
        tty.sees("› in its place")
        tty.send(CTRL_C)
        tty.sees_no("› in its place")
        tty.send(UP * 2)
        tty.sees("› queued")


def test_each_queued_line_comes_back_by_itself_and_what_waits_is_seen_until_it_is_dropped() -> None:
    """A newcomer's: the draft was joined with a queued message, and stale lines filled one prompt after the other."""
    with at_work(columns=80) as tty:
        tty.send("!echo o''ne\r/cost x\rthen push\rhalf")
        tty.sees("  when this is done (3): !echo o''ne ⏎ /cost x ⏎ then push\n› half (Enter queues it)")
        tty.send(CTRL_C)
        tty.sees("Your 3 queued lines were not sent; they wait below the prompt.")
        tty.sees("› half\n")
        tty.sees(" waiting (3): !echo o''ne ⏎ /cost x ⏎ then push\n")
        tty.send("\x15/todo\r")
        tty.sees("› !echo o''ne")
        tty.sees(" waiting (2): /cost x ⏎ then push\n")
        tty.send("\r")
        tty.sees("\none")
        tty.sees("› /cost x")
        tty.sees(" waiting: then push\n")
        tty.send(ESCAPE)
        tty.sees(" waiting: then push · Ctrl-C drops it\n")
        tty.send(CTRL_C)
        tty.sees_no("waiting")
        tty.send(UP * 2)
        tty.sees("› /cost x")
        assert "never" not in tty.text()


def test_ctrl_u_empties_a_text_that_came_back_however_many_rows_it_has() -> None:
    with at_work() as tty:
        tty.send(f"two\\\rrows\r{ESCAPE}")
        tty.sees("› two\n  rows")
        tty.send("\x15/todo\r")
        tty.sees("› /todo\n")
        assert "never" not in tty.text()


def test_up_brings_back_what_was_queued_and_then_typed_over() -> None:
    with at_work() as tty:
        tty.send("omega\r")
        tty.sees("  for the next step: omega")
        tty.send(ESCAPE)
        tty.sees("› omega")
        tty.send("no")
        tty.sees("› no")
        tty.sees_no("› omega\n")
        tty.send("\x15")
        tty.sees_no("› no")
        tty.send(UP)
        tty.sees("› omega")


def test_where_escape_leaves_a_line_in_the_prompt_ctrl_d_says_so() -> None:
    with at_work() as tty:
        tty.send("later\r\x04")
        tty.sees("Ctrl-D leaves when all is done; Esc stops and stays.")
        tty.send(ESCAPE)
        tty.sees("› later")
        tty.send(CTRL_C + "\x04")
        assert tty.ends() == 0


def test_what_is_typed_behind_a_command_that_opens_a_list_searches_it() -> None:
    with chat() as tty:
        tty.sees("›")
        tty.settle()
        tty.send("/config\rtarget_r")
        tty.sees("Search: target_r")
        tty.sees("target_ratio")
        tty.send(ESCAPE)
        tty.sees_no("Search:")
        # A line that was sent is for the prompt: it would choose something.
        tty.send("/config\rhello\r")
        tty.sees("The script is over")
        assert "Search:" not in "\n".join(tty.shown())


def test_a_question_beside_is_asked_at_once_and_answered_between_two_parts_of_the_turn() -> None:
    with chat("It is *blue*.", "First.", columns=80) as tty:
        tty.sees("›")
        tty.line("PAUSE first")
        tty.send("/btw which colour?\r")
        tty.sees("› /btw which colour?\n\nIt is blue.\n\nFirst.")
        tty.send(UP)
        tty.sees("› /btw which colour?")


def test_a_command_that_only_shows_is_answered_at_once_and_opens_no_list() -> None:
    with chat("First.", "Second.", columns=80) as tty:
        tty.sees("›")
        tty.line("PAUSE first")
        tty.send("/cost\r/context\r/config\r/undo x\r/cost\r")
        # What is typed behind a command that waits is answered after it.
        tty.sees("  when this is done (2): /undo x ⏎ /cost")
        tty.sees("First.")
        tty.until(lambda: tty.text().count("› /cost") == 2)
        shown = tty.text()
        order = ["› /cost", "› /context", "› /config", "First.", "› /undo x"]
        places = [shown.index(one) for one in order]
        assert places == sorted(places)
        assert shown.index("First.") < shown.rindex("› /cost")
        tty.send(UP)
        tty.sees("› /cost")


def test_an_answer_beside_does_not_part_an_answer_that_is_being_drawn() -> None:
    with at_work(columns=80) as tty:
        tty.send("/btw which colour?\r")
        tty.sees("  Asked. The answer comes between two parts of the turn.")
        tty.send("later\r")
        tty.sees("  for the next step: later")
        tty.sees_no("never")
        tty.send(ESCAPE)
        tty.sees("never")
        tty.sees("Interrupted")
        shown = tty.text()
        assert shown.index("The first piece.") < shown.index("/btw which colour?") < shown.index("never")


def test_a_question_beside_survives_a_kill(tmp_path: Path) -> None:
    with at_work(home=str(tmp_path)) as tty:
        tty.send("/btw which colour?\r")
        killed(tty, tmp_path, "which colour")
    with chat(home=str(tmp_path)) as tty:
        tty.sees("›")
        tty.send(UP)
        tty.sees("› /btw which colour?")


def test_a_message_that_was_stopped_before_an_answer_is_taken_back_where_another_is_typed() -> None:
    with chat("Here.", "Nothing of it.", columns=80) as tty:
        tty.sees("›")
        tty.line("PAUSE, drop the database")
        tty.send("no wai")
        tty.sees("› no wai (Enter queues it)")
        tty.send(ESCAPE)
        tty.sees("Your message was not sent: Up in an empty prompt brings it back.")
        tty.sees("› no wai\n")
        tty.send(UP)
        tty.settle()
        assert "› no wai" in tty.shown()
        tty.send("\x15")
        tty.settle()
        tty.send(UP)
        tty.sees("› PAUSE, drop the database")
        tty.send("\x15" + "/context all\r")
        tty.sees("0 messages in 0 turns.")


def test_up_in_a_draft_changes_the_queued_line_that_is_shown_and_no_other() -> None:
    """The keys typed in a draft acted on the queued line before it, in the prompt, where nobody had seen it."""
    with at_work(columns=80) as tty:
        tty.send(f"KEEP alpha\rDROP beta\r{UP}{UP}\x7f\x7f")
        tty.sees("  behind the line below: DROP beta\n› KEEP alp (Enter queues it)")
        tty.send(ESCAPE)
        tty.sees("Interrupted")
        tty.sees("› KEEP alp\n waiting: DROP beta\n")


def test_a_typed_line_of_several_rows_is_shown_whole_and_the_cursor_stands_in_it() -> None:
    with at_work(columns=60, rows=24) as tty:
        tty.send(f"first\x1b\rsecond{UP}")
        tty.sees("› first\n  second (Enter queues it)")
        tty.until(lambda: (tty.shown()[tty.screen.cursor.y], tty.screen.cursor.x) == ("› first", 7))
        tty.send("X\x1b[B\x05Y")
        tty.sees("› firstX\n  secondY (Enter queues it)")
        tty.until(lambda: (tty.shown()[tty.screen.cursor.y][:9], tty.screen.cursor.x) == ("  secondY", 9))
        tty.settle()
        assert tty.text().count("firstX") == 1
        assert tty.text().count("The first piece.") == 1


def test_a_key_that_only_the_prompt_knows_says_so_and_does_nothing_later() -> None:
    with at_work(columns=80) as tty:
        tty.send("ta\x12b")
        tty.sees("  That key works at the prompt only.\n› tab (Enter queues it)")
        tty.send(ESCAPE)
        tty.sees("Interrupted")
        tty.sees("\n› tab")


def test_tab_completes_a_file_and_a_command(tmp_path: Path) -> None:
    for name in ("parser.py", "parser_test.py"):
        (tmp_path / name).write_text("x\n")
    with at_work(columns=80, directory=str(tmp_path)) as tty:
        tty.send("see @pars\t")
        tty.sees("› see @parser.py")
        tty.send("\tand ")
        tty.sees("› see @parser_test.py and")
        tty.send("@parser_\t\r/cont\t")
        tty.sees("  for the next step: see @parser_test.py and @parser_test.py")
        tty.sees("› /context")


def test_a_question_beside_that_fails_is_named() -> None:
    with chat({"error": "The provider is down"}, "First.", columns=80) as tty:
        tty.sees("›")
        tty.line("PAUSE first")
        tty.send("/btw which colour?\r")
        tty.sees("› /btw which colour?\n\nThe provider is down.")
        tty.sees("First.")


def test_what_was_queued_behind_a_message_that_failed_waits_below_it() -> None:
    with chat({"error": "The provider is down"}, "It works.", columns=80) as tty:
        tty.sees("›")
        tty.line("PAUSE first")
        tty.send("second\r")
        tty.sees("The provider is down")
        tty.sees("Your queued line was not sent; it waits below the prompt.")
        tty.sees("› PAUSE first\n waiting: second\n")
        tty.send("\r")
        tty.sees("It works.")
        tty.sees("› second\n")
