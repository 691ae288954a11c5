"""Folded pastes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.terminal.pastes import FoldedPastes


def test_short_ones_stay_and_long_ones_are_folded() -> None:
    pastes = FoldedPastes()
    assert pastes.fold("one\r\ntwo\rthree") == "one\ntwo\nthree"
    lines = "\n".join(f"line {number}" for number in range(214))
    assert pastes.fold(lines) == "[pasted 214 lines]"
    assert pastes.fold(lines) == "[pasted 214 lines]"
    assert pastes.fold(lines.upper()) == "[pasted 214 lines #2]"
    assert pastes.fold("x" * 3_000) == "[pasted 3,000 characters]"
    sent = pastes.unfold("look: [pasted 214 lines #2] and [pasted 214 lines]!")
    assert sent == f"look: {lines.upper()} and {lines}!"
    assert pastes.refold(sent) == "look: [pasted 214 lines #2] and [pasted 214 lines]!"
    assert pastes.refold("something else") == "something else"


@given(st.lists(st.text(max_size=3_000), max_size=5))
def test_what_was_pasted_is_what_is_sent(texts: list[str]) -> None:
    pastes = FoldedPastes()
    folded = [pastes.fold(text) for text in texts]
    for text, shown in zip(texts, folded, strict=True):
        if shown.startswith("[pasted "):
            assert pastes.unfold(shown) == text.replace("\r\n", "\n").replace("\r", "\n")
