"""Cutting a text: its ends and its unusual lines, and more room never loses a part."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nca.context.named import names_of
from nca.context.record.excerpt import (
    GAP,
    LONGEST_WORD_CHARS,
    PASTE,
    RESULT,
    SCANNED_CHARS,
    TALK,
    WORDS,
    Style,
    both_ends,
    excerpt,
    is_list,
    on_one_line,
)
from nca.context.record.script import is_inside, words_in
from nca.context.tokens import text_tokens

LINES = st.lists(st.text("abcdefgh 12.:", min_size=1, max_size=120).filter(str.strip), min_size=1, max_size=40)


PLAN = "Here is the plan:\n\n" + "\n".join(
    f"{n}. Step {n} changes the module and its tests. " + "It says so. " * 8 for n in range(1, 9)
)
STYLES = st.sampled_from([WORDS, TALK, RESULT, PASTE])


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert excerpt("one\ntwo", 3) == "one\ntwo"
    assert both_ends("one\n two", 8) == "one two"
    said = "Please look at the reservations of the second week, and then at all the cancellations"
    assert both_ends(said, 60) == "Please look at the reservations of the […] the cancellations"
    assert both_ends("a" * 90, 60) == f"{'a' * 40} […] {'a' * 20}", "no word, or a very long one"
    assert on_one_line("one\n\n two\n") == "one | two"


def test_the_one_line_that_is_unlike_the_others_stays() -> None:
    lines = [f"2026-01-01 10:{n:02}:00 INFO worker {n} has finished its part" for n in range(60)]
    lines[31] = "2026-01-01 10:31:00 WARN disk /var is 97% full"
    kept = excerpt("\n".join(lines), 200)
    assert lines[31] in kept
    assert lines[0] in kept
    assert lines[-1] in kept
    assert GAP in kept


EQUALLY_UNUSUAL = """
from nca.context.record.excerpt import excerpt
lines = [[] for _ in range(60)]
for shared in (2, 3, 5, 6, 7, 9, 11, 13):  # in how many lines a word is; each line has one word of each kind
    for place in range(60):
        word = f"{shared:03}{place // shared:03}".translate(str.maketrans("0123456789", "abcdefghij"))
        lines[place * 7 % 60].append(word)
print(excerpt("\\n".join(map(" ".join, lines)), 900))
"""


def test_each_process_keeps_the_same_of_equally_unusual_lines() -> None:
    """The words of a line are a set, whose order differs from process to process."""
    kept = set()
    for seed in "123":
        command, env = [sys.executable, "-c", EQUALLY_UNUSUAL], {**os.environ, "PYTHONHASHSEED": seed}
        kept.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(kept) == 1


def test_a_long_line_is_cut_between_its_sentences() -> None:
    text = " ".join(f"Sentence {word} says what it says." for word in ("one", "two", "three", "four")) * 9
    kept = excerpt(text, 90)
    assert text_tokens(kept) < 120
    assert kept.startswith("Sentence one")


def test_an_item_is_not_cut_behind_an_ordinal() -> None:
    items = [f"- Der Bus kommt erst am {n}. Januar zu uns {'word ' * 30}" for n in range(11, 17)]
    kept = excerpt("\n".join(items), 170, WORDS)
    assert all(f"am {n}. Januar" in kept for n in range(11, 17))


def test_what_was_said_begins_as_it_began() -> None:
    assert excerpt("One thing is clear. " * 50, 10, TALK).startswith("One thing is clear.")


def test_a_list_keeps_the_beginning_of_each_item() -> None:
    short = excerpt(PLAN, 210, TALK)
    assert all(f"{n}. Step {n}" in short for n in range(1, 9))


@given(LINES, STYLES, st.integers(1, 800), st.integers(0, 800))
def test_more_room_has_all_that_less_room_had(lines: list[str], style: Style, tokens: int, more: int) -> None:
    """Every word of the smaller cut stands in the larger one, as often."""
    text = "\n".join(f"{place} {line}" for place, line in enumerate(lines))
    small, large = (Counter(re.findall(r"\w+", excerpt(text, size, style))) for size in (tokens, tokens + more))
    assert {word for word in small - large if len(word) < LONGEST_WORD_CHARS} == set()


@given(LINES, STYLES, st.integers(20, 500))
def test_a_cut_is_no_longer_than_asked(lines: list[str], style: Style, tokens: int) -> None:
    text = "\n".join(lines)
    size = text_tokens(text)
    assert size <= tokens or len(excerpt(text, tokens, style)) <= len(text) * tokens / size + 2 * len(GAP)


@given(st.lists(st.integers(3, 12), min_size=3, max_size=30), STYLES, st.integers(10, 300))
def test_less_than_half_of_a_line_is_not_shown(words: list[int], style: Style, tokens: int) -> None:
    """Except of the first, so that something is shown."""
    lines = [" ".join(f"w{place}x{word}" for word in range(count)) for place, count in enumerate(words)]
    kept = excerpt("\n".join(lines), tokens, style).splitlines()
    shown = {line.partition("x")[0]: line.removesuffix(GAP).strip() for line in kept if line != GAP}
    whole = {line.partition("x")[0]: line for line in lines}
    assert len(shown) == 1 or all(2 * len(text) >= len(whole[name]) - 1 for name, text in shown.items())


@pytest.mark.parametrize(
    "text",
    [
        *("It costs 2 750 and no more", "It costs 2.750,40 and no more", "At 02:30:15 it ended", "From 15–17 May on"),
        *("A sheet of 30×30 is here", "Due 10/12/2026 at noon", "نحو ٣٫٦ إلى الختام", "المجموع ٨٬٧٠٠٫٥ دينار"),
    ],
)
def test_no_number_is_cut(text: str) -> None:
    number = r"\d[\d .,:–×/٫٬]*\d|\d"
    found = {cut for tokens in range(1, 20) for cut in re.findall(number, excerpt(text, tokens))}
    assert found <= set(re.findall(number, text))


def test_no_name_is_cut() -> None:
    text = "In it scripts/report-2026.sh.old is kept, `a.b_c` and x@y.example, and it's all"
    found = {word.strip(",`") for tokens in range(2, 30) for word in excerpt(text, tokens).split()}
    assert found <= {*(word.strip(",`") for word in text.split()), GAP, ""}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("أُتيحت كتيّب", ["أتيحت", "كتيب"]),
        ("हिन्दी में", ["हनद", "म"]),
        ("Żółć, ٤٢ e\u0301t\u00e9", ["żółć", "00", "eté"]),
    ],
)
def test_a_word_is_its_letters_with_their_marks(text: str, words: list[str]) -> None:
    assert list(words_in(text)) == words
    ends = [place for place in range(1, len(text)) if not is_inside(text, place)]
    assert [text[begin:end] for begin, end in pairwise([0, *ends, len(text)]) if text[begin].isalnum()] == [
        word.strip(",") for word in text.split()
    ]


@pytest.mark.parametrize(
    "sentence", ["هل نعرض الفيلم القصير مساء الجمعة أم نؤجل العرض؟", "यह फ़िल्म शुक्रवार की शाम को दिखाई जाएगी।"]
)
def test_a_sentence_ends_by_the_signs_of_its_script(sentence: str) -> None:
    _, *behind = excerpt(f"{sentence} " * 40, 400, TALK._replace(behind=(0, 0, 0))).split(GAP)
    assert behind
    assert all(part.strip().startswith(sentence) for part in behind)


def test_what_stands_in_front_of_a_colon_is_not_all_that_stays() -> None:
    lines = [
        f"The threshold of the station at the {n}th bridge is now as agreed: {n}1.5 metres, above it" for n in range(9)
    ]
    kept = excerpt("\n\n".join(lines), 160, TALK)
    assert ":" in kept
    assert f": {GAP}" not in kept


def test_a_line_that_says_nothing_stays_with_the_next() -> None:
    letter = "\n>\n".join(f"> Line {n} of a letter that is quoted here, word for word." for n in range(30))
    kept = excerpt(letter, 120, TALK).splitlines()
    assert len(kept) > 4
    assert all(after.startswith("> Line") for line, after in pairwise(kept) if line == ">")


@given(
    st.lists(
        st.lists(st.text("abc 12", min_size=1, max_size=18).filter(str.strip), min_size=3, max_size=5),
        min_size=4,
        max_size=30,
    ),
    st.integers(8, 200),
    STYLES,
)
def test_a_row_of_a_table_stays_whole(cells: list[list[str]], tokens: int, style: Style) -> None:
    rows = [f"| {' | '.join(map(str.strip, row))} |" for row in cells]
    assume(max(map(len, rows)) <= style.part_chars)
    shown = excerpt("\n".join(["The table:", *rows]), tokens, style).splitlines()
    assume([line for line in shown if line != GAP][1:])  # one row alone is cut where not even it has room
    assert {line for line in shown if line.startswith("|")} <= set(rows)


@given(
    st.lists(st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), min_size=2, max_size=4), min_size=2, max_size=8),
    st.sampled_from(["|---|---|", "| --- | :-: |", "|:--|"]),
    st.integers(4, 100),
    st.sampled_from([WORDS, TALK, RESULT]),
)
def test_the_head_of_a_table_stays_with_its_first_row(
    cells: list[list[str]], rule: str, tokens: int, style: Style
) -> None:
    head, first, *others = (f"| {place} {' | '.join(row)} |" for place, row in enumerate(cells))
    shown = excerpt("\n".join(["The table:", head, rule, first, *others, "So much."]), tokens, style).splitlines()
    together = [any(line.startswith(one) for line in shown) for one in (head, rule, first)]
    assert all(together) or not any(together)


@given(st.integers(40, 200), st.integers(30, 200))
def test_a_note_on_how_a_command_ended_takes_no_room_of_its_last_lines(lines: int, tokens: int) -> None:
    output = [f"{n}: a warning of the library that nobody reads, in words of all kinds" for n in range(lines)]
    text = "\n".join([*output, "1 failed, 5 passed in 0.21s", "[exit code 1]"])
    assert excerpt(text, tokens).endswith("1 failed, 5 passed in 0.21s\n[exit code 1]")


def test_japanese_is_cut_behind_its_sentences_and_by_its_items() -> None:
    text = "".join(f"第{n}章は蔵の歴史を短く書きます。" for n in range(40))
    kept = excerpt(text, 60, TALK).replace(f" {GAP}", "")
    assert kept.endswith("。")
    assert list(words_in("酒蔵 a b2", 2)) == ["酒蔵", "b0"]
    assert list(words_in("直した行だけ")) == ["直し", "した", "た行", "行だ", "だけ"]
    assert is_list("・一つ目\n・二つ目\n・三つ目")
    assert names_of("triệu/đêm, nghìn/người") == {"triệu/đêm", "nghìn/người"}
    assert names_of("300mlの小瓶を別に作る、Übung/42") == {"Übung/42"}
    assert names_of("src/a.py:113:def f:") == names_of("src/a.py:7: at src/a.py:7:5") == {"src/a.py"}
    assert names_of("http://localhost:8080/api nginx:1.25") == {"http://localhost:8080/api", "nginx:1.25"}
    assert names_of("cat /etc/hosts ./src/a.py and/or --file=/b/c.d/ (/x/y.z)") == {"/etc/hosts", "src/a.py"} | {
        *("and/or", "/b/c.d", "/x/y.z")
    }
    assert names_of("\x1b[2Jclear \x1b[31mred\x1b[0m src/a.py") == {"src/a.py"}


@pytest.mark.parametrize("word", ["word ", "にのんみ"])
def test_half_a_part_that_has_no_room_leaves_as_little_empty_in_each_script(word: str) -> None:
    text = " ".join([f"{(word * 150)[:450]}." for _ in range(20)])
    for tokens in range(200, 2_000, 7):
        assert min(tokens, text_tokens(text)) - text_tokens(excerpt(text, tokens, WORDS)) < 100


@given(st.lists(st.integers(82, 158), min_size=3, max_size=20), st.integers(20, 300), st.sampled_from([TALK, RESULT]))
def test_a_sentence_of_up_to_two_parts_is_not_cut_in_front_of_its_end(
    lengths: list[int], tokens: int, style: Style
) -> None:
    """The beginning of an item has 80 characters, as a part of a result has."""
    items = [
        f"{n}. Item {n} {'takes so long that it ends ' * 9}"[: size - 4] + f" {n}." for n, size in enumerate(lengths)
    ]
    shown = excerpt("\n".join(items), tokens, style).splitlines()
    cut = [line for line in shown if line not in items and line != GAP]
    assert len(cut) <= 1, "the last one that has room, and it alone"


@given(st.lists(st.integers(1, 12), min_size=3, max_size=30), st.integers(5, 80), STYLES)
def test_a_missing_line_is_seen(lengths: list[int], tokens: int, style: Style) -> None:
    """The mark of a gap stands behind a line only if that line is cut."""
    lines = [f"{n} {'word ' * size}end" for n, size in enumerate(lengths)]
    shown = excerpt("\n".join(lines), tokens, style).splitlines()
    for before, after in pairwise(["-1", *shown, str(len(lines))]):
        if before in lines or before == "-1":
            missing = int(after.split()[0]) - int(before.split()[0]) > 1 if after != GAP else False
            assert not missing, (before, after)
    assert all(line.removesuffix(f" {GAP}") not in lines for line in shown if line.endswith(f" {GAP}"))


@settings(max_examples=20)
@given(st.integers(0, 9_999), STYLES, st.integers(300, 20_000))
def test_the_one_line_that_is_unlike_the_rest_stays_however_long_the_text_is(
    at: int, style: Style, tokens: int
) -> None:
    rows = [f"12:{number % 60:02} INFO worker-{number % 7} GET /api/items/{number} 200" for number in range(10_000)]
    rows[at] = "12:00 FATAL could not acquire lock 4711"
    text = "\n".join(rows)
    assert len(text) > 2 * SCANNED_CHARS
    assert rows[at] in excerpt(text, tokens, style)


@pytest.mark.parametrize("line", ["", "........", "=====", "\t"])
def test_lines_without_a_letter_cost_no_more_each_the_more_there_are(line: str) -> None:
    """A square of so many would take hours."""
    text = f"{line}\n" * 60_000 + "The end."
    assert not is_list(text)
    assert excerpt(text, 40, RESULT)


def test_of_a_long_text_as_much_is_shown_as_has_room() -> None:
    text = "\n".join(f"line {number} of the log" for number in range(20_000))
    size = text_tokens(text)
    for share in (0.1, 0.5, 0.9):
        assert 0.9 * share < text_tokens(excerpt(text, int(share * size))) / size <= 1.05 * share
    shorter, longer = (set(excerpt(text, int(share * size)).splitlines()) for share in (0.5, 0.9))
    assert len(shorter - longer) <= 1, "the last line of a cut may itself be cut"
