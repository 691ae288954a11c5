"""Who wrote the summary of a compaction, in words."""

from __future__ import annotations

import pytest

from nca.agent.compaction_diff import new_writer, stages_in_words, writer_in_words
from nca.context.summary import cut_text
from nca.context.view import Summary, View


@pytest.mark.parametrize(
    ("made_by", "words"),
    [
        ("", ""),
        ("extract", "code"),
        ("openai/m", "openai/m"),
        ("openai/m + extract", "openai/m and code"),
        ("you", "you"),
    ],
)
def test_a_writer_is_a_model_or_code_or_both(made_by: str, words: str) -> None:
    assert writer_in_words(made_by) == words
    using = f" with {words}" if words else ""
    assert stages_in_words(("prune", "summarize"), made_by) == f"prune, summarize{using}"
    assert stages_in_words(("truncate",), made_by) == "truncate"


def test_prose_that_is_there_already_is_not_written_again() -> None:
    first = View((Summary("a", ((1, 4),), "record", prose="It began.", made_by="m"),), 5)
    later = View((Summary("b", ((1, 8),), "longer", prose="It began.", made_by="m", prose_of=((1, 4),)),), 9)
    again = View((Summary("d", ((1, 8),), "longer record", prose="It began.", made_by="m"),), 9)
    merged = View((Summary("c", ((1, 8),), "longer record", prose="It began and went on.", made_by="m"),), 9)
    assert new_writer(View((), 1), first) == "m"
    assert new_writer(first, later) == "extract"
    assert new_writer(first, merged) == "m"
    assert new_writer(first, again) == "m", "it was asked about eight messages, and wrote the same"
    assert new_writer(first, first) == ""


def test_prose_that_was_only_joined_or_cut_is_not_written_again() -> None:
    """A compaction without a request said that a model had written its summary."""
    items = [Summary(name, (span,), "record", prose=prose, made_by="m") for name, span, prose in (
        ("a", (1, 4), "It began."), ("b", (5, 8), "It went on and on."),
    )]  # fmt: skip
    before = View(tuple(items), 9)
    for prose in ("It began.\n\nIt went on and on.", cut_text("It went on and on. " * 9, 12)):
        joined = View((Summary("c", ((1, 8),), "longer record", prose=prose, made_by="m"),), 9)
        long = View((*items[:1], Summary("b", ((5, 8),), "record", prose="It went on and on. " * 9, made_by="m")), 9)
        assert new_writer(long if prose.endswith("]") else before, joined) == "extract"
