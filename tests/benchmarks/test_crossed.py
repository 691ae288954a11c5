"""A question in one language for text in another: what is asked, and what is counted."""

from __future__ import annotations

from benchmarks.crossed import AS_SAID, EMBEDDER, HITS, MESSAGES, TEXT, chat, crossed, fused, measured
from benchmarks.environments import PEERS, Environment


def test_each_statement_is_in_the_chat_once_and_asked_for_in_each_language() -> None:
    texts, places, asked = chat()
    assert len(texts) == MESSAGES
    assert len({texts[place] for place in places}) == len(places) == 15
    assert len(asked) == 9
    assert all(len(questions) == len(places) for questions in asked.values())


def test_two_rankings_give_one_that_begins_with_what_both_have() -> None:
    assert fused([[7, 3], [5, 3]]) == [3, 7, 5]
    assert len(fused([range(HITS), range(HITS, 2 * HITS)])) == HITS


def test_recall_alone_is_counted_by_language_and_shown() -> None:
    embedder = next(one for one in PEERS if one.name == EMBEDDER)
    row, as_said = measured({EMBEDDER: Environment(embedder, reason="not here")})
    assert 0 < sum(row["found"].values()) < row["of"] * len(row["found"])
    text = "\n".join(crossed({"crossed": [row, as_said]}))
    assert f"| nca's recall | {sum(row['found'].values())} of 135 |" in text
    assert f"| {AS_SAID} | {as_said['found'][TEXT]} of 15 | – |" in text
    assert list(crossed({})) == []
