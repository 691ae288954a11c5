"""Output in limited memory: the same beginning and end as the whole output."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.context.admission import Limits, admit_output
from nca.redact import Redactor
from nca.tools.shell.output_capture import (
    BEGINNING_BYTES,
    MOST_FILE_BYTES,
    MOST_MEMORY_BYTES,
    NOTES_BYTES,
    NOTES_LINES,
    OutputCapture,
    readable,
)
from nca.tools.shell.runner import CommandResult

LIMITS = Limits(max_bytes=2_000, max_lines=40)
KEY = "sk-proj-" + "a1B2" * 10


def as_it_is(text: str) -> str:
    return text


@given(
    st.lists(
        st.binary(max_size=900)
        | st.integers(1, 900).map(lambda n: b"long " * n)
        | st.integers(1, 400).map(lambda n: b"line\n" * n),
        max_size=12,
    ),
    st.sampled_from(["both", "head", "tail"]),
)
@example([b"\n" * 26 + b" " * 100 + b"&......", b"long " * 775], "both")
@hypothesis_settings(max_examples=300, deadline=None)
def test_as_if_all_had_been_kept(pieces: list[bytes], direction: str) -> None:
    limits = Limits(max_bytes=2_000, max_lines=40, direction=direction)
    captured = OutputCapture(limits, None)
    for piece in pieces:
        captured.feed(piece)
    whole = b"".join(pieces)
    output = captured.finish(as_it_is)
    assert output.total_bytes <= len(whole)
    assert output.total_bytes == len(whole) or b"\r" in whole
    assert len(output.text.encode()) <= 2_000 - NOTES_BYTES + 100
    if all(byte < 0x7F and (byte >= 0x20 or byte == 0x0A) for byte in whole):
        said = whole.decode()
        # Beyond twice the limit the middle is gone, and the seam that marks it is two lines more.
        if len(whole) <= 4_000 or said.count("\n") + 2 < 40 - NOTES_LINES:
            expected = admit_output(
                said, max_bytes=2_000 - NOTES_BYTES, max_lines=40 - NOTES_LINES, direction=direction
            )
            assert output.text == expected.text
        # Whatever is shown as one stretch is one.
        kept = output.text.rpartition("\n[Output truncated")[0] or output.text
        assert all(stretch.strip("\n") in said for stretch in re.split(r"\[…(?: [\d,]+ \w+ left out …)?\]|…", kept))


def test_the_lines_that_are_missing_are_named_as_the_whole_has_them() -> None:
    captured = OutputCapture(LIMITS, None)
    captured.feed("".join(f"line {number}\n" for number in range(1, 5_001)).encode())
    output = captured.finish(as_it_is)
    assert output.left_out is not None
    first, last = output.left_out.first_line, output.left_out.last_line
    assert f"line {first - 1}\n{output.left_out.seam()}\nline {last + 1}\n" in output.text
    assert output.left_out.seam().startswith(f"[… {last - first + 1:,} lines")


@pytest.mark.parametrize("most", [200, 500, 900, 5_000])
def test_what_is_kept_is_no_more_than_was_asked_for_and_not_too_little(most: int) -> None:
    captured = OutputCapture(Limits(max_bytes=most, max_lines=40), None)
    captured.feed(b"x" * 20_000)
    assert captured.finish(as_it_is).text.count("x") == max(200, most - NOTES_BYTES)


def test_what_fits_leaves_no_file(tmp_path: Path) -> None:
    captured = OutputCapture(LIMITS, tmp_path / "out")
    captured.feed(b"a" * 1_000)
    assert captured.finish(as_it_is).text == "a" * 1_000
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("whole", [b"x" * 3_000, b"x\n" * 100, b"y" * 50_000, b"z\n" * 50_000])
def test_the_whole_is_in_a_private_file(tmp_path: Path, whole: bytes) -> None:
    captured = OutputCapture(LIMITS, tmp_path / "out")
    for start in range(0, len(whole), 777):
        captured.feed(whole[start : start + 777])
    output = captured.finish(as_it_is)
    assert output.saved is not None
    assert output.saved.read_bytes() == whole
    assert output.saved_bytes == output.total_bytes == len(whole)
    assert stat.S_IMODE(output.saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(output.saved.parent.stat().st_mode) == 0o700
    assert output.saved.stem.isdigit()
    assert f"[Output truncated from {len(whole)} bytes" in output.text


def test_keys_are_taken_out_of_the_file(tmp_path: Path) -> None:
    redact = Redactor({"MY_KEY": "hunter2hunter2"}).text
    block = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE\n" * 300 + "-----END RSA PRIVATE KEY-----\n"
    captured = OutputCapture(LIMITS, tmp_path)
    # Keys all over, so that some lie where one piece ends and the next begins.
    whole = "".join(f"{'.' * (number % 97)} {KEY}\n{'-' * 60}'hunter2hunter2'\n{block}" for number in range(400))
    captured.feed(whole.encode() + b"\xff\xfe")
    saved = captured.finish(redact).saved
    assert saved is not None
    clean = saved.read_bytes()
    assert b"a1B2" not in clean
    assert b"hunter2" not in clean
    assert b"MIIE" not in clean
    assert clean.count(b"[redacted MY_KEY]") == 400
    assert clean.endswith(b"\xff\xfe")
    assert [path.name for path in tmp_path.iterdir()] == [saved.name]


def test_no_file_has_a_name_before_its_keys_are_taken_out(tmp_path: Path) -> None:
    """Whoever looks meanwhile sees none, and a kill leaves none."""
    captured = OutputCapture(LIMITS, tmp_path)
    captured.feed(f"{KEY}\n".encode() * 10_000)
    assert list(tmp_path.iterdir()) == []
    saved = captured.finish(Redactor().text).saved
    assert list(tmp_path.iterdir()) == [saved]
    captured.drop()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["pässwört-12", "caf\udce9-secret-1"])
def test_a_value_of_other_letters_is_taken_out_of_the_file(tmp_path: Path, value: str) -> None:
    captured = OutputCapture(LIMITS, tmp_path)
    captured.feed((f"é\udce9 {value}\n" * 400).encode("utf-8", "surrogateescape"))
    saved = captured.finish(Redactor({"MY_PASSWORD": value}).text).saved
    assert saved is not None
    assert saved.read_bytes() == b"\xc3\xa9\xe9 [redacted MY_PASSWORD]\n" * 400


def test_a_line_without_an_end_is_redacted_too(tmp_path: Path) -> None:
    captured = OutputCapture(LIMITS, tmp_path)
    whole = f'{{"key":"{KEY}","filler":"{"x" * 9_000}"}},' * 100
    captured.feed(whole.encode())
    pieces: list[str] = []

    def redact(piece: str) -> str:
        pieces.append(piece)
        return Redactor().text(piece)

    saved = captured.finish(redact).saved
    assert saved is not None
    assert b"a1B2" not in saved.read_bytes()
    assert max(map(len, pieces)) < len(whole) / 2, "it is not held in memory in whole"


def test_where_nothing_can_be_written_the_output_is_still_there(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("not a folder")
    captured = OutputCapture(LIMITS, tmp_path / "out")
    captured.feed(b"x" * 10_000)
    output = captured.finish(as_it_is)
    assert output.saved is None
    assert "xxx" in output.text


FULL_DISK = """
import resource, sys
from pathlib import Path
from nca.context.admission import Limits
from nca.tools.shell.output_capture import OutputCapture
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
captured = OutputCapture(Limits(max_bytes=2_000, max_lines=40), Path(sys.argv[1]))
for _ in range(20):
    captured.feed(b"x" * 10_000)
output = captured.finish(lambda text: text)
assert output.saved is None, output.saved
assert output.total_bytes == 200_000
assert "xxx" in output.text
"""


def test_a_full_disk_gives_the_file_up_and_the_output_goes_on(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], check=True)
    assert not list(tmp_path.iterdir())


def test_of_an_output_beyond_the_limit_only_the_beginning_is_saved(tmp_path: Path) -> None:
    captured = OutputCapture(LIMITS, tmp_path)
    for _ in range(MOST_FILE_BYTES // 1_048_576 + 1):
        captured.feed(b"x" * 1_048_576)
    output = captured.finish(as_it_is)
    assert output.saved is not None
    assert output.saved.stat().st_size == output.saved_bytes == BEGINNING_BYTES
    assert output.total_bytes == MOST_FILE_BYTES + 1_048_576


def test_what_is_dropped_leaves_nothing(tmp_path: Path) -> None:
    captured = OutputCapture(LIMITS, tmp_path)
    captured.feed(b"x" * 10_000)
    captured.drop()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\0b", "ab"),
        (b"\xff\xfe", "��"),
        (b"\xed\xa0\x80", "���"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]52;c;aGk=\x07x", "x"),
        (b"\x1b]0;title\x1b\\x", "x"),
        (b"a\r\nb\rc\r\r\nd", "a\nb\nc\nd"),
        (b"\x1b", ""),
        (b"a\tb\n", "a\tb\n"),
        ("ä€😀".encode(), "ä€😀"),
        ("\u009b31mx".encode(), "x"),
    ],
)
def test_bytes_become_text_without_control(data: bytes, text: str) -> None:
    assert readable(data) == text


@given(st.lists(st.sampled_from([b"50%", b"100%", b"\r", b"\n", b"\r\n", b"x"]), max_size=12), st.integers(1, 5))
def test_a_line_that_is_written_over_counts_with_its_newest_text_however_it_arrives(
    parts: list[bytes], size: int
) -> None:
    data = b"".join(parts)
    capture = OutputCapture(Limits(), None)
    for start in range(0, len(data), size):
        capture.feed(data[start : start + size])
    text = capture.finish(lambda text: text).text
    lines = [line.rstrip(b"\r").rpartition(b"\r")[2].decode() for line in data.split(b"\n")]
    assert [line for line in text.split("\n") if line] == [line for line in lines if line]


def test_an_endless_progress_bar_takes_no_room(tmp_path: Path) -> None:
    capture = OutputCapture(Limits(), tmp_path)
    for number in range(50_000):
        capture.feed(b"\r%d of 50000 packages are there" % number)
    output = capture.finish(lambda text: text)
    assert (output.text, output.saved) == ("49999 of 50000 packages are there", None)


@pytest.mark.parametrize("piece", [b"x" * 1_999 + b"\n", b"x" * 2_000, b"\0" * 2_000])
def test_however_much_comes_memory_stays_within_its_limit(piece: bytes) -> None:
    tracemalloc.start()
    try:
        capture = OutputCapture(LIMITS, None)
        for _ in range(5_000):
            capture.feed(piece)
        capture.finish(as_it_is)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_MEMORY_BYTES


def test_bytes_that_are_no_text_are_all_kept() -> None:
    data = b"PNG\0\rone\rtwo\nthree\rfour"
    capture = OutputCapture(Limits(), None)
    for start in range(0, len(data), 5):
        capture.feed(data[start : start + 5])
    assert capture.finish(lambda text: text).total_bytes == len(data)


def test_an_output_whose_file_cannot_be_finished_is_nowhere(tmp_path: Path) -> None:
    """And no lines of it can be asked for."""
    capture = OutputCapture(LIMITS, tmp_path / "out")
    for _ in range(500):
        capture.feed(b"a line of the output\n")
    (tmp_path / "out").rmdir()
    output = capture.finish(as_it_is)
    assert (output.saved, output.saved_bytes, output.total_bytes) == (None, 0, 500 * 21)
    assert CommandResult(output, None, 0, command="").left_out is None
    assert list(tmp_path.iterdir()) == []
