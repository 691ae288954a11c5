"""Each message that is read from a damaged database goes where it belongs."""

from __future__ import annotations

import random

from nca.sessions.places import Found, Log, Logs


def message(id: int, session: int, seq: int, at: float = 0.0) -> Found:
    return Found(id, session, seq, at, "user", f"body {id}", None)


def logs(*rows: Found, sessions: tuple[int, ...] = (), doubtful: tuple[Found, ...] = ()) -> Logs:
    return Logs(sessions, rows, doubtful)


def order(log: Log) -> list[tuple[int, str]]:
    return [(seq, log.by_seq[seq].body) for seq in sorted(log.by_seq)]


TWO = [message(id, (id - 1) // 4 % 2 + 1, (id - 1) // 8 * 4 + (id - 1) % 4 + 1, float(id)) for id in range(1, 41)]
"""Two sessions whose turns of four messages were stored in turn."""


def test_sound_messages_stay_where_they_are() -> None:
    found = logs(*random.Random(1).sample(TWO, len(TWO)))
    assert [len(found[1].by_seq), len(found[2].by_seq), found[1].lost, found.strays] == [20, 20, 0, []]


def test_a_damaged_number_session_or_id_is_seen_by_its_neighbours() -> None:
    for wrong in (
        TWO[20]._replace(seq=2**40),
        TWO[20]._replace(seq=3),
        TWO[20]._replace(session=9),
        TWO[20]._replace(session=1),
        TWO[20]._replace(id=2**40),
        TWO[20]._replace(id=0),
        TWO[20]._replace(session=0, seq=0),
    ):
        found = logs(*TWO[:20], wrong, *TWO[21:], sessions=(1, 2))
        assert found[2].by_seq[9].body == TWO[20].body, wrong
        assert (found[2].lost, found.strays) == (0, []), wrong


def test_a_lost_message_leaves_its_place() -> None:
    found = logs(*TWO[:20], *TWO[26:])
    assert (found[1].lost, found[2].lost) == (2, 4)
    assert found[2].by_seq[20].body == TWO[39].body


def test_the_last_message_goes_behind_the_one_before_whatever_its_number() -> None:
    found = logs(*TWO[:-1], TWO[-1]._replace(seq=900))
    assert (found[2].head, found[2].lost) == (20, 0)


def test_what_may_have_been_deleted_only_fills_a_place_in_which_it_fits() -> None:
    doubtful = (
        TWO[20],  # lost
        TWO[19]._replace(body="older"),  # there
        message(5, 1, 21, 50.0),  # stored before the last one
        message(50, 1, 21, 1.0),  # said before the last one
        message(60, 3, 1, 60.0),  # of a session that is gone
    )
    found = logs(*TWO[:20], *TWO[21:], doubtful=doubtful)
    assert order(found[2]) == order(logs(*TWO)[2])
    assert order(found[1]) == order(logs(*TWO)[1])
    assert 3 not in found


def test_a_message_that_belongs_nowhere_is_kept() -> None:
    stray = Found(0, 0, 0, 0.0, "", "somewhere", None)
    assert logs(*TWO, stray).strays == [stray]
