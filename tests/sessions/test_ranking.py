"""Ranking, without a database."""

from __future__ import annotations

from nca.sessions.search import Candidate, Passage, Ranked, RankingWeights, rank, rank_sessions


def found(
    seq: int, *counts: float, session: int = 1, turn: int = 0, role: str = "assistant", words: int = 10
) -> Candidate:
    return Candidate(100 * session + seq, session, seq, role, turn, (Passage(0, words, counts),))


def order(*messages: Candidate, weights: RankingWeights | None = None) -> list[tuple[int, int]]:
    ranked = rank(messages, [2.0] * len(messages[0].passages[0].counts), 10.0, weights or RankingWeights())
    return [(one.session, one.seq) for one in ranked]


def test_more_terms_are_better_than_one_term_often() -> None:
    assert order(found(10, 5, 0), found(20, 1, 1))[0] == (1, 20)


def test_a_shorter_message_is_better() -> None:
    assert order(found(10, 1, words=200), found(20, 1, words=5))[0] == (1, 20)


def test_the_neighbourhood_counts() -> None:
    assert order(found(10, 1, 0), found(20, 1, 0), found(21, 0, 1))[0] in [(1, 20), (1, 21)]
    assert order(found(10, 1))[1:] == [(1, 11), (1, 9)]


def test_the_turn_counts() -> None:
    turns = (found(10, 1, 0, turn=9), found(20, 1, 0, turn=19), found(27, 0, 1, turn=19))
    assert set(order(*turns)[:2]) == {(1, 20), (1, 27)}
    alone = order(*turns, weights=RankingWeights(turn=0.0))
    assert alone[1:3] != order(*turns)[1:3] or (1, 10) in alone[:3]


def test_what_a_person_said_is_better_than_what_a_tool_wrote() -> None:
    assert order(found(10, 1, role="tool"), found(20, 1, role="user"))[0] == (1, 20)


def test_the_best_passage_is_named() -> None:
    message = Candidate(1, 1, 1, "user", 1, (Passage(0, 10, (1.0, 0.0)), Passage(3, 10, (1.0, 1.0))))
    assert rank([message], [1.0, 1.0], 10.0, RankingWeights())[0].place == 3


def test_a_session_counts_by_its_best_message_and_by_all_that_it_holds() -> None:
    together = [Ranked(1, 1, 2.0, (2.0, 0.0)), Ranked(1, 9, 2.0, (0.0, 2.0))]
    alone = [Ranked(2, 1, 2.1, (2.1, 0.0))]
    assert [messages[0].session for _, messages in rank_sessions([*alone, *together])] == [1, 2]
