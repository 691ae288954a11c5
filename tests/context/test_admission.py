"""Size limits of tool outputs and attached files: cut at characters, with a note."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nca.context.admission import (
    FILE_RATIO,
    MAX_OUTPUT_BYTES,
    MAX_OUTPUT_LINES,
    PREVIEW_BYTES,
    PREVIEW_CHARS,
    admit_output,
    file_token_budget,
    fit_files,
    is_whole,
    without_middle,
)
from nca.context.tokens import text_tokens
from tests.context.promises import is_cut_of

directions = st.sampled_from(["both", "head", "tail"])
wide = st.text(alphabet=st.sampled_from("aé日🦀\n"), min_size=1, max_size=600)
NOTICE = re.compile(r"\n\[Output truncated from (\d+) bytes to (\d+) bytes\]\Z")
SEAM_BYTES = 60


def test_the_constants_of_the_spec() -> None:
    assert (MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES) == (51_200, 2_000)
    assert (FILE_RATIO, PREVIEW_BYTES, PREVIEW_CHARS) == (0.6, 5_242_880, 2_000)


@given(wide, st.integers(40, 400), directions)
def test_bytes_are_cut_on_character_boundaries(text: str, most: int, direction: str) -> None:
    admitted = admit_output(text, max_bytes=most, max_lines=10_000, direction=direction)
    size = len(text.encode())
    assert admitted.original_bytes == size
    assert admitted.is_cut == (size > most)
    if not admitted.is_cut:
        assert admitted.text == text
        return
    notice = NOTICE.search(admitted.text)
    assert notice
    kept = admitted.text[: notice.start()]
    assert "\ufffd" not in kept
    assert (int(notice[1]), int(notice[2])) == (size, len(kept.encode()))
    assert len(kept.encode()) <= most + SEAM_BYTES
    seam = admitted.left_out.seam() if admitted.left_out else ""
    head, found, tail = kept.partition(f"\n{seam}\n") if seam else (kept, "", kept)
    assert bool(found) == bool(admitted.left_out) == (direction == "both")
    if direction != "tail":
        assert text.startswith(head.removesuffix("…"))
    if direction != "head":
        assert text.endswith(tail.removeprefix("…"))


@given(
    st.lists(st.integers(0, 10**9) | st.just(10**90), min_size=20, max_size=400),
    st.integers(60, 900),
    st.integers(40, 400),
    directions,
)
def test_half_a_line_is_never_shown_as_one(numbers: list[int], most_bytes: int, most: int, direction: str) -> None:
    """Half a number reads like another one."""
    lines = list(map(str, numbers))
    text = "\n".join(lines) + "\n"
    cut = admit_output(text, max_bytes=most_bytes, direction=direction).text.partition("\n[Output truncated")[0]
    for shown in (cut, without_middle(text, most, 7), without_middle(text, most, 7, has_lines=True)):
        for line in shown.splitlines():
            assert line in lines or line.startswith("[…") or line.strip("…") != line, (line, shown)


@given(st.integers(1, 60), st.integers(10, 40), directions)
def test_lines_are_limited(count: int, most: int, direction: str) -> None:
    text = "".join(f"line {number}\n" for number in range(count))
    admitted = admit_output(text, max_lines=most, direction=direction)
    assert admitted.is_cut == (count > most)
    if count > most:
        kept = re.findall(r"line \d+", admitted.text)
        assert len(kept) == most
        assert (kept[0] == "line 0") == (direction != "tail")
        assert (kept[-1] == f"line {count - 1}") == (direction != "head")


@given(wide | st.text(alphabet="0123456789abcdef\n", max_size=3_000), st.integers(60, 400), directions)
def test_tokens_are_limited_too(text: str, most: int, direction: str) -> None:
    admitted = admit_output(text, max_tokens=most, direction=direction)
    assert text_tokens(admitted.text) <= most
    assert admitted.is_cut == (text_tokens(text) > most)
    if admitted.is_cut:
        assert text_tokens(admitted.text) > 0.7 * most - 40, "what fits stays"
        assert admit_output(text, max_tokens=None, direction=direction).text == text


def test_a_quarter_is_head_and_three_quarters_are_tail() -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    kept = re.findall(r"line (\d+)", admit_output(text, max_lines=40).text)
    assert [int(number) for number in kept] == [*range(10), *range(70, 100)]


@given(st.integers(50, 400), st.integers(10, 40), st.integers(200, 2_000))
def test_the_seam_names_the_lines_that_are_missing(count: int, most: int, most_bytes: int) -> None:
    lines = [f"line {number}" for number in range(1, count + 1)]
    admitted = admit_output("\n".join(lines) + "\n", max_lines=most, max_bytes=most_bytes)
    assert admitted.left_out
    first, last = admitted.left_out.first_line, admitted.left_out.last_line
    head, tail = admitted.text.split(f"\n[… {last - first + 1} lines left out …]\n")
    whole_head, whole_tail = head.splitlines(), tail.rpartition("\n[Output truncated")[0].splitlines()
    assert whole_head[: first - 1] == lines[: first - 1]
    assert whole_tail[len(whole_tail) - (count - last) :] == lines[last:]
    # A line that is shown in part is among those left out.
    assert len(whole_head) - (first - 1) == whole_head[-1].endswith("…")
    assert len(whole_tail) - (count - last) == whole_tail[0].startswith("…")
    assert admitted.left_out.seam(57) == (
        f"[… {last - first + 1} lines left out; recall expand=57 lines={first}-{last} …]"
    )


@given(st.integers(100, 400), st.integers(60, 300), directions)
def test_the_ends_of_an_output_are_cut_as_the_whole_is(count: int, most: int, direction: str) -> None:
    whole = "".join(f"line {number}\n" for number in range(count))
    keep, size = most + 40, len(whole)
    ends, missing = whole[:keep] + whole[-keep:], whole[keep:-keep].count("\n")
    cut = admit_output(ends, max_bytes=most, direction=direction, original_bytes=size, missing_lines=missing)
    assert cut == admit_output(whole, max_bytes=most, direction=direction)


def test_a_seam_within_one_line_names_bytes() -> None:
    admitted = admit_output("x" * 1_000, max_bytes=200)
    assert "[… 800 bytes left out …]" in admitted.text


def test_the_exact_notice() -> None:
    admitted = admit_output("x\n" * 500, max_bytes=200, direction="head")
    assert admitted.text == "\n".join("x" * 100) + "\n[Output truncated from 1000 bytes to 199 bytes]"


def test_at_its_limits_an_output_is_whole() -> None:
    exactly = "x" * MAX_OUTPUT_BYTES
    assert admit_output(exactly).text == exactly
    lines = "x\n" * MAX_OUTPUT_LINES
    assert admit_output(lines).text == lines
    assert admit_output(exactly + "x").is_cut
    assert admit_output(lines + "x").is_cut
    assert admit_output("").text == ""


def test_a_lone_surrogate_does_not_break_the_cut() -> None:
    assert admit_output("\ud800" * 500, max_bytes=200).is_cut


@pytest.mark.parametrize(
    ("window", "used", "reserve", "budget"),
    [(128_000, 28_000, 40_000, 36_000), (8_000, 4_001, 2_000, 1_199), (1_000, 900, 200, 0)],
)
def test_file_budget_is_the_floor_of_60_percent_of_what_is_free(
    window: int, used: int, reserve: int, budget: int
) -> None:
    assert file_token_budget(window, used, reserve) == budget


KIB = 1_024
FILE_NOTICE = re.compile(r"\n\[File truncated from (\d+) bytes to (\d+) bytes\]\Z")
some_files = st.lists(
    st.builds(
        lambda unit, size: unit * (size // len(unit.encode())),
        st.sampled_from(["x", "A sentence. ", "日本語。", "🦀", "é", "line\n"]),
        st.sampled_from([0, 1, 300, 5_000, 90 * KIB, 100 * KIB - 1, 100 * KIB, 300 * KIB]),
    ),
    max_size=4,
)


@given(some_files, st.integers(0, 200) | st.integers(0, 60_000))
@settings(max_examples=60, deadline=None)
@example(["A sentence. " * (90 * KIB // 12)], 3_000)
def test_files_share_one_budget_and_never_exceed_it(texts: list[str], budget: int) -> None:
    admitted = fit_files([(f"{number}.txt", text) for number, text in enumerate(texts)], budget)
    assert len(admitted) == len(texts)
    assert sum(text_tokens(one.text) for one in admitted) <= budget
    for one, text in zip(admitted, texts, strict=True):
        assert one.is_cut == (one.text != text)
        assert one.original_bytes == len(text.encode())
        if one.is_cut and one.text:
            notice = FILE_NOTICE.search(one.text)
            assert notice
            body = one.text[: notice.start()]
            assert body
            assert text.startswith(body)
            assert (int(notice[1]), int(notice[2])) == (len(text.encode()), len(body.encode()))
    small = [index for index, text in enumerate(texts) if len(text.encode()) < 100 * KIB]
    if sum(text_tokens(texts[index]) for index in small) <= budget:
        assert not any(admitted[index].is_cut for index in small)


def test_a_small_file_is_whole_beside_a_large_one_that_is_cut() -> None:
    small, large = "A sentence. " * 500, "A sentence. " * 20_000
    one, two = fit_files([("large", large), ("small", small)], 5_000)
    assert (one.is_cut, two.text) == (True, small)
    assert 2_500 < text_tokens(one.text) <= 5_000 - text_tokens(small)


def test_a_few_words_are_whole_beside_a_file_that_is_cut() -> None:
    one, two = fit_files([("README.md", "A sentence. " * 3_000), ("value", "4f1c6a0b92de")], 100)
    assert (one.is_cut, two.text) == (True, "4f1c6a0b92de")
    assert text_tokens(one.text) + text_tokens(two.text) <= 100


def test_what_there_is_no_room_for_is_empty_and_counts_as_cut() -> None:
    (one,) = fit_files([("a.txt", "x" * 1_000)], 5)
    assert (one.text, one.is_cut, one.original_bytes) == ("", True, 1_000)


def test_the_size_of_the_whole_is_said_where_only_its_beginning_was_read() -> None:
    (one,) = fit_files([("a.log", "word " * 2_000)], 100_000, sizes=[20_000_000])
    assert one.text == "word " * 400 + "\n[File truncated from 20000000 bytes to 2000 bytes]"
    (less,) = fit_files([("a.log", "word " * 2_000)], 200, sizes=[20_000_000])
    assert text_tokens(less.text) <= 200
    assert "from 20000000 bytes" in less.text


def test_what_fits_is_whole_whatever_its_size() -> None:
    files = [("a.txt", "A sentence. " * 5_000), ("b.txt", "word " * 100)]
    assert not any(one.is_cut for one in fit_files(files, 100_000))


def test_shares_are_in_proportion_and_cut_at_sentence_ends() -> None:
    large, small = "This is one sentence. " * 900, "This is one sentence. " * 300
    one, two = fit_files([("large", large), ("small", small)], 3_000)
    assert one.text.rpartition("\n[")[0].rstrip().endswith("sentence.")
    assert len(one.text) / len(two.text) == pytest.approx(3, rel=0.1)


def test_a_huge_file_is_a_preview() -> None:
    huge = "word " * (PREVIEW_BYTES // 5 + 1)
    preview, large = fit_files([("huge.log", huge), ("large.log", "word " * 30_000)], 2_000)
    assert preview.text.startswith(huge[:PREVIEW_CHARS] + "\n[File truncated from "), (
        "it comes before a file that is cut"
    )
    assert large.is_cut
    (one,) = fit_files([("huge.log", huge)], 1_000_000)
    assert one.is_cut
    assert one.text.startswith(huge[:PREVIEW_CHARS] + "\n[File truncated from ")
    assert text_tokens(one.text) < 700


@given(st.one_of(wide, st.lists(wide, max_size=60).map("\n".join)), st.integers(24, 400), st.booleans())
def test_a_text_without_its_middle_is_within_its_tokens_and_says_what_is_missing(
    text: str, most: int, has_lines: bool
) -> None:
    cut = without_middle(text, most, 5, has_lines=has_lines)
    assert text_tokens(cut) <= most
    assert cut == text or is_cut_of(cut, text)


def test_a_text_without_its_middle_keeps_whole_lines_where_they_are_short() -> None:
    text = "".join(f"line {number} of the output\n" for number in range(60)) + "Ran 81 tests\n\nOK"
    head, tail = without_middle(text, 90, 63, has_lines=True).split(
        "[… 51 lines left out; recall expand=63 lines=6-56 …]\n"
    )
    assert [*head.splitlines(), *text.splitlines()[5:56], *tail.splitlines()] == text.splitlines()
    assert head.splitlines() == [f"line {number} of the output" for number in range(5)]
    assert tail.endswith("\nline 59 of the output\nRan 81 tests\n\nOK")
    assert "recall expand=63 …]" in without_middle(text, 60, 63)
    assert is_whole(text, 63)
    assert not is_whole(f"{text}\n[… 3 lines left out; recall expand=63 lines=4-6 …]", 63)
    assert not is_whole(f"{text}\n[The whole output is in /tmp/1.txt]", 63)  # recall counts the lines of that file


@pytest.mark.parametrize("note", ["", "[no more fit; continue with offset=136]", "[continue with offset=136]"])
def test_a_page_of_a_file_keeps_its_first_lines_and_where_to_go_on(note: str) -> None:
    lines = ["[src/a.py: lines 36-135 of 392]", *(f"    value_{number} = {number}" for number in range(100))]
    text = "\n".join([*lines, note] if note else lines)
    cut = without_middle(text, 300, 7, has_lines=True)
    assert text_tokens(cut) <= 300
    shown, _, rest = cut.partition("\n[… ")
    count = shown.count("\n") + 1
    assert shown.split("\n") == lines[:count]
    assert count > 20
    left_out = f"{101 - count} lines left out; recall expand=7 lines={count + 1}-101 …]"
    assert rest == (f"{left_out}\n{note}" if note else left_out)
