"""Writes to streams that are closed, full or limited to an old encoding."""

from __future__ import annotations

import io
import os

import pytest

from nca.terminal.render.stream_writer import StreamWriter, is_broken_pipe, write_error_exit_code, write_error_line


def test_a_closed_pipe_ends_the_output_once_and_for_all() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        writer = StreamWriter(stream)
        error = writer.write("one")
        assert isinstance(error, BrokenPipeError)
        assert writer.write("two") is None
        assert writer.failure is error
        assert is_broken_pipe(error)
        assert write_error_exit_code(error) == 141


def test_a_full_disk_is_no_broken_pipe() -> None:
    with open("/dev/full", "w") as stream:  # noqa: PTH123
        error = StreamWriter(stream).write("one")
    assert error is not None
    assert not is_broken_pipe(error)
    assert write_error_exit_code(error) == 1
    assert write_error_line(error) == "The output cannot be written (no space left on device)."


def test_a_closed_stream_counts_as_a_broken_pipe() -> None:
    stream = io.StringIO()
    stream.close()
    error = StreamWriter(stream).write("one")
    assert isinstance(error, ValueError)
    assert is_broken_pipe(error)


@pytest.mark.parametrize(("encoding", "written"), [("utf-8", "a › b"), ("ascii", "a > b")])
def test_symbols_that_the_encoding_lacks_become_ascii(encoding: str, written: str) -> None:
    raw = io.BytesIO()
    writer = StreamWriter(io.TextIOWrapper(raw, encoding=encoding))
    assert writer.write("a › b") is None
    assert raw.getvalue().decode(encoding) == written
