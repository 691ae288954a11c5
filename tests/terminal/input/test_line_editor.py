"""Line editing without a prompt: the next prompt gets what was shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.key_binding import KeyPress

from nca.terminal.input.display import typed_ahead, waiting
from nca.terminal.input.keyboard import Keyboard, PasteTimeoutParser
from nca.terminal.input.line_editor import Typed, UnsentLines
from nca.terminal.input.line_kind import line_kind, pasted_text
from nca.terminal.input.pastes import FOLD_LINES, FoldedPastes
from nca.words import Words, text_of, words

LEFT, RIGHT, DELETE, HOME, END = "\x1b[D", "\x1b[C", "\x1b[3~", "\x1b[H", "\x1b[F"
UP, DOWN = "\x1b[A", "\x1b[B"


def keys(text: str) -> list[KeyPress]:
    pressed: list[KeyPress] = []
    parser = PasteTimeoutParser(pressed.append)
    parser.feed(text)
    parser.flush()
    return pressed


def lines(keyboard: Keyboard, *pressed: str) -> UnsentLines:
    typed = UnsentLines(keyboard, FoldedPastes())
    for one in pressed:
        typed.press_all(keys(one))
    return typed


def held(keyboard: Keyboard, pressed: str) -> list[str]:
    """What the prompts get after an interrupt, one after the other."""
    typed = lines(keyboard, pressed)
    typed.hold()
    got = [typed.take_open().text]
    while (offered := typed.offer()) is not None:
        got.append(text_of(offered))
    return got


@pytest.mark.parametrize(
    ("pressed", "text"),
    [
        ("al\t", "alone"),
        ("is al\t, he\t!", "is alone, hear!"),
        ("he\t\t", "heat"),
        ("he\t\t\t", "hear"),
        (f"he\t{LEFT}{RIGHT}\t", "hear"),
        ("he\tx\t", "hearx"),
        (f"one al two{LEFT * 4}\t", "one alone two"),
        ("x\t\x1b\t", "x"),
        # Completions of files end in a blank, and then a person types one.
        ("@s\t do", "@src do"),
        ("@s\t  do", "@src  do"),
        ("@m\t\t do", "@make do"),
    ],
)
def test_tab_puts_in_what_can_be_completed(keyboard: Keyboard, pressed: str, text: str) -> None:
    typed = UnsentLines(keyboard, FoldedPastes())
    typed.completer = WordCompleter(["alone", "hear", "heat", "@src ", "@main ", "@make "], WORD=True)
    typed.press_all(keys(pressed))
    assert typed.take_open().text == text


@pytest.mark.parametrize(
    ("pressed", "text"),
    [
        ("plain\r", "plain"),
        ("helo\x7f\x7fllo\r", "hello"),
        ("one two  \x17three\r", "one three"),
        ("gone\x15kept\r", "kept"),
        (f"word{LEFT}{LEFT}X\x01A\x05Z\r", "AwoXrdZ"),
        (f"ab{HOME}{DELETE}x{END}y\r", "xby"),
        (f"ab{LEFT}\x04x\r", "ax"),
        ("keep this\x01\x0bonly\r", "only"),
        ("one\ntwo\x15three\r", "one\nthree"),
        ("one\\\rtwo\x1b\rthree\r", "one\ntwo\nthree"),
        (f"one\ntwo{UP}X\r", "oneX\ntwo"),
        (f"long one\ntwo{UP}{END}X{DOWN}Y\r", "long oneX\ntwoY"),
        ("one two\x1bb\x1bdlast\x1bb\x1bbX\r", "Xone last"),
        ("\x1b[200~a\r\nb\x1b[201~\r", "a\nb"),
        ("\x02\x06\x7fx\r", "x"),
        ("tab\there\x12\x1ba\r", "tabhere"),
    ],
)
def test_a_line_is_what_the_prompt_would_make_of_it(keyboard: Keyboard, pressed: str, text: str) -> None:
    (line,) = lines(keyboard, pressed).take_messages()
    assert text_of(line) == text


@pytest.mark.parametrize("pressed", ["\r", "  \r", "no enter", f"gone\r{UP}\x15\r"])
def test_an_empty_line_is_not_queued(keyboard: Keyboard, pressed: str) -> None:
    assert lines(keyboard, pressed).take_messages() == []


def test_what_is_shown(keyboard: Keyboard) -> None:
    shown = lines(keyboard, "first\rsecond \\\rline\rthe th").typed()
    assert (shown.soon, shown.open, shown.place) == (["first", "second \nline"], "the th", 6)
    shown = lines(keyboard, "see ", "\x1b[200~" + "line\n" * FOLD_LINES + "\x1b[201~", f" it{LEFT}").typed()
    label = f"[pasted {FOLD_LINES} lines]"
    assert (shown.open, shown.place) == (f"see {label} it", len(f"see {label} i"))
    assert lines(keyboard, "ta\tb").typed().open == "tab"


def test_a_command_and_all_behind_it_wait_for_the_prompt(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "use 3.9\r/new\rhello\rrest")
    assert (typed.typed().soon, typed.typed().later) == (["use 3.9"], ["/new", "hello"])
    assert [text_of(line) for line in typed.take_messages()] == ["use 3.9"]
    assert typed.typed()[:3] == ([], ["/new", "hello"], "rest")
    assert [text_of(typed.take_line() or ()) for _ in range(3)] == ["/new", "hello", ""]
    assert typed.take_open().text == "rest"


def test_up_goes_back_to_a_queued_line_and_keeps_the_draft(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\rtwo\rdraft", UP)
    shown = typed.typed()
    assert (shown.soon, shown.open, shown.behind) == (["one"], "two", ["draft"])
    typed.press_all(keys("!"))
    # Neither the line that is being changed nor one behind it is sent.
    assert [text_of(line) for line in typed.take_messages()] == ["one"]
    typed.press_all(keys("\r"))
    shown = typed.typed()
    assert (shown.soon, shown.open, shown.behind) == (["two!"], "draft", [])


def test_down_goes_on_to_the_draft_and_no_further(keyboard: Keyboard) -> None:
    shown = lines(keyboard, "one\rtwo\rdraft", UP * 5, DOWN).typed()
    assert (shown.soon, shown.open, shown.behind) == (["one"], "two", ["draft"])
    shown = lines(keyboard, "one\rtwo\rdraft", UP * 5, DOWN * 5, "X").typed()
    assert (shown.soon, shown.open, shown.behind) == (["one", "two"], "draftX", [])


def test_the_prompt_opens_with_the_line_that_is_being_changed_and_those_behind_it_follow(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\rtwo\rthree\rdraft", UP * 2)
    assert text_of(typed.take_line() or ()) == "one"
    assert typed.take_line() is None
    assert typed.take_open().text == "two"
    assert text_of(typed.take_line() or ()) == "three"
    assert typed.take_line() is None
    assert typed.take_open().text == "draft"
    assert not typed.is_waiting


@pytest.mark.parametrize(
    ("pressed", "expected"),
    [
        # A newcomer's three: the keys of one line acted on another.
        (f"alpha\rbeta{UP}X", ["alphaX", "beta"]),
        (f"KEEP alpha\rDROP beta\r{UP}{UP}\x7f\x7f", ["KEEP alp", "DROP beta"]),
        (f"KEEP alpha\rDROP beta\r{UP}\x15", ["", "KEEP alpha"]),
        ("one\rx\x7f", ["", "one"]),
        ("one\r\x15two", ["two", "one"]),
        ("first\rsecond\\\rline\x1b\rmore\rlast\r\r", ["", "first", "second\nline\nmore", "last"]),
        ("one\rtwo\rthr", ["thr", "one", "two"]),
        ("one\r/tools\rtwo\r", ["", "one", "/tools", "two"]),
        # A newcomer's: the message was joined with the draft, and the command came after it.
        ("!git status\rand then push\rhalf", ["half", "!git status", "and then push"]),
        ("//one\r/to", ["/to", "//one"]),
        ("\r\r", [""]),
    ],
)
def test_after_an_interrupt_nothing_is_sent_and_each_line_is_one_by_itself(
    keyboard: Keyboard, pressed: str, expected: list[str]
) -> None:
    assert held(keyboard, pressed) == expected


KEYS = [
    *("a", "b ", "/new", "!ls", "exit", "\r", "\r", "\n", "\\\r", "\x1b\r", "\t", "\x7f", "\x15", "\x17", "\x0b"),
    *("\x01", "\x05", "\x12", "\x19", "\x1f", "\x1ba", "\x1bb", "\x1bd", LEFT, RIGHT, UP, UP, DOWN, DELETE),
    *("\x1b[200~pasted @b\x1b[201~", "\x1b[200~/dev/null\x1b[201~", f"\x1b[200~{'line' * 600}\x1b[201~"),
]
PRESSED = st.lists(st.sampled_from(KEYS), max_size=30)


def shown_lines(typed: UnsentLines) -> list[str]:
    """All lines as they are shown, in order."""
    shown = typed.typed()
    return [line for line in (*shown.soon, *shown.later, shown.open, *shown.behind) if line.strip()]


@given(PRESSED)
def test_the_prompts_get_what_was_shown_after_an_interrupt(keyboard: Keyboard, pressed: list[str]) -> None:
    pastes = FoldedPastes()
    typed = UnsentLines(keyboard, pastes, lambda before, text: pasted_text(before, text, Path("/dev"), pastes))
    for key in pressed:
        typed.press_all(keys(key))
    shown = typed.typed()
    # The line that is being typed, as it is under the fingers, then all others in their order.
    expected = [line for line in (shown.open, *shown.soon, *shown.later, *shown.behind) if line.strip()]
    unsent = [text_of(one) for one in typed.unsent()]
    typed.hold()
    first = typed.take_open()
    kept = [first.said] if first.text else []
    while (offered := typed.offer()) is not None:
        kept.append(offered)
    assert [pastes.shown(text_of(one)) for one in kept] == expected
    assert sorted(unsent) == sorted(text_of(pastes.unfold(one)) for one in kept)
    assert not typed.is_waiting


@given(PRESSED)
def test_what_is_sent_is_what_was_shown_in_its_order(keyboard: Keyboard, pressed: list[str]) -> None:
    pastes = FoldedPastes()
    typed = UnsentLines(keyboard, pastes)
    for key in pressed:
        typed.press_all(keys(key))
    before = shown_lines(typed)
    soon = typed.typed().soon
    sent = [*typed.take_messages()]
    assert [pastes.shown(text_of(pastes.refold(one))) for one in sent] == soon
    assert all(line_kind(one) == "message" for one in sent)
    for _ in before:
        while (line := typed.take_line()) is not None:
            sent.append(line)
        if (opened := typed.take_open()).text.strip():
            sent.append(pastes.unfold(opened.said))
    assert [pastes.shown(text_of(pastes.refold(one))) for one in sent] == before
    assert not typed.is_line_queued


def test_what_was_pasted_stays_so(keyboard: Keyboard) -> None:
    (line,) = lines(keyboard, f"see \x1b[200~a @b\x1b[201~{LEFT}{LEFT}\x7f-\x05 now\x17then\r").take_messages()
    assert line == (*words("see "), *words("a", "pasted"), *words("-"), *words("@b", "pasted"), *words(" then"))
    assert lines(keyboard, "one\r\x1b[200~two\x1b[201~").unsent() == [words("one"), words("two", "pasted")]


def preview(
    typed: Typed, columns: int, *, rows: int = 40, is_turn: bool = True
) -> tuple[list[str], list[str], int, int]:
    notes, shown, row, cell = typed_ahead(typed, "", Size(rows=rows, columns=columns), is_turn=is_turn)
    return [*notes], [*shown], row, cell


@pytest.mark.parametrize(
    ("open_line", "place", "columns", "expected"),
    [
        ("hello", 5, 80, (["hello (Enter queues it)"], 0, 5)),
        ("hello", 2, 80, (["hello (Enter queues it)"], 0, 2)),
        ("hello ", 6, 80, (["hello  (Enter queues it)"], 0, 6)),
        ("日本語", 2, 80, (["日本語 (Enter queues it)"], 0, 4)),
        ("two\nlines", 4, 80, (["two", "lines (Enter queues it)"], 1, 0)),
        ("two\nlines", 1, 80, (["two", "lines (Enter queues it)"], 0, 1)),
        ("end\n", 4, 80, (["end", " (Enter queues it)"], 1, 0)),
        ("0123456789" * 3, 30, 23, (["01234567890123456789", "0123456789"], 1, 10)),
        ("0123456789" * 2, 20, 23, (["01234567890123456789", " (Enter queues it)"], 1, 0)),
        ("0123456789" * 3, 3, 23, (["01234567890123456789", "0123456789"], 0, 3)),
        ("words that wrap here", 20, 15, (["words that  ", "wrap here"], 1, 9)),
        ("", 0, 80, ([], 0, 0)),
    ],
)
def test_the_cursor_stands_where_the_next_letter_goes(
    open_line: str, place: int, columns: int, expected: tuple[list[str], int, int]
) -> None:
    assert preview(Typed([], [], open_line, place, []), columns) == ([], *expected)


def test_rows_that_do_not_fit_are_counted(keyboard: Keyboard) -> None:
    text = "\n".join("abcdefgh")
    typed = Typed([], [], text, 15, [])
    assert preview(typed, 80)[:2] == (["rows not shown: 3 above"], [*"defg", "h (Enter queues it)"])
    assert preview(typed._replace(place=0), 80)[:2] == (["rows not shown: 3 below"], [*"abcde"])
    assert preview(typed, 80, rows=8)[1] == ["g", "h (Enter queues it)"]


def test_what_is_queued_says_when_it_is_taken(keyboard: Keyboard) -> None:
    typed = Typed(["one"], ["/new", "two"], "", 0, [])
    assert preview(typed, 80)[0] == ["for the next step: one", "when this is done (2): /new ⏎ two"]
    assert preview(typed, 80, is_turn=False)[0] == ["when this is done (3): one ⏎ /new ⏎ two"]
    assert preview(typed._replace(behind=["draft"]), 80)[0][2:] == ["behind the line below: draft"]
    (note,) = preview(Typed(["first of all " + "that " * 20 + "too"], [], "", 0, []), 40)[0]
    assert note.startswith("for the next step: …")
    assert note.endswith("that too")
    assert len(note) <= 40


def test_ctrl_d_is_said_where_it_will_leave(keyboard: Keyboard) -> None:
    assert not lines(keyboard, "ab\x04").typed().leaves
    for pressed in ("\x04", "one\r\x04", "a\x7f\x04", "\x04two\r"):
        typed = lines(keyboard, pressed)
        assert typed.typed().leaves
        assert any("Ctrl-D leaves when" in note for note in preview(typed.typed(), 80)[0])
        while typed.typed().soon:
            assert typed.take_line()
        with pytest.raises(EOFError):
            typed.take_line()


def test_where_something_is_held_ctrl_d_stays(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\r\x04")
    assert typed.hold() == 1
    assert typed.take_line() is None
    assert text_of(typed.offer() or ()) == "one"
    typed = lines(keyboard, "\x04")
    assert typed.hold() == 0
    with pytest.raises(EOFError):
        typed.take_line()


def test_what_is_held_is_told_once(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\r")
    assert typed.hold() == 1
    assert typed.hold() == 0
    typed.press_all(keys("/compact\r"))
    assert typed.hold() == 2


def test_a_line_that_is_carried_out_meanwhile_leaves_the_order_of_the_others(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\r/cost\r/new\rdraft")
    taken: list[str] = []

    def take(line: Words, _: object) -> bool:
        taken.append(text_of(line))
        return text_of(line) == "/cost"

    typed.take_meanwhile = take
    typed.offer_lines()
    assert taken == ["one", "/cost", "/new"]
    assert (typed.typed().soon, typed.typed().later, typed.typed().open) == (["one"], ["/new"], "draft")
    assert [text_of(one) for one in typed.unsent()] == ["/cost", "one", "/new", "draft"]


def test_ones_own_command_of_several_lines_waits_for_the_prompt(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "one\r/review a\nb\r")
    assert typed.typed().later == []
    typed.own = lambda: {"review"}
    assert (typed.typed().soon, typed.typed().later) == (["one"], ["/review a\nb"])


def test_what_is_held_follows_what_comes_back_or_is_typed_on_and_is_shown_till_then(keyboard: Keyboard) -> None:
    typed = lines(keyboard, "second\rthird\r/compact\r")
    typed.hold()
    assert typed.offer(words("first")) is None
    assert waiting(typed.held, 80, is_empty=False) == "waiting (3): second ⏎ third ⏎ /compact"
    assert text_of(typed.offer() or ()) == "second"
    typed.press_all(keys("typed on"))
    assert typed.offer() is None
    assert waiting(typed.held, 80, is_empty=True) == "waiting (2): third ⏎ /compact · Ctrl-C drops them"
    assert waiting(typed.held, 40, is_empty=True) == "waiting (2): third… · Ctrl-C drops them"
    # While nca works, a line that is queued behind them waits, too.
    typed.press_all(keys("\r"))
    assert preview(typed.typed(), 80, is_turn=False)[0] == ["waiting for your Enter (3): third ⏎ /compact ⏎ typed on"]
    assert [text_of(one) for one in typed.drop_held()] == ["third", "/compact"]
    assert waiting(typed.held, 80, is_empty=True) == ""
