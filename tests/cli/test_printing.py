"""Whatever a line holds, printing it cannot act on the terminal."""

from __future__ import annotations

import contextlib
import io

from hypothesis import given
from hypothesis import strategies as st

from nca.cli.printing import echo
from tests.terminal.payloads import PAYLOADS, forbidden


@given(st.lists(st.sampled_from(PAYLOADS) | st.text(max_size=20), max_size=5).map("".join), st.booleans())
def test_no_text_acts_on_the_terminal(text: str, is_error: bool) -> None:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        echo(text, err=is_error)
    silent, said = (out, error) if is_error else (error, out)
    assert silent.getvalue() == ""
    assert forbidden(said.getvalue()) == []


def test_nca_s_own_mark_keeps_its_colours() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        echo(" \x1b[2Jfine", mark="\x1b[32mok\x1b[0m")
    assert out.getvalue() == "\x1b[32mok\x1b[0m fine\n"
