"""The laws of the allocator, for any pieces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from nca.context.record.allocation import LAST_PROTECTED, Chosen, Kind, Piece, Queue, from_both_ends, line_tokens
from nca.context.record.allocation import allocate as allocated

EXAMPLES = int(os.environ.get("NCA_FUZZ_EXAMPLES") or 500)


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    sizes = draw(st.lists(st.tuples(st.sampled_from(list(Kind)), st.integers(1, 400), st.integers(1, 4)), max_size=40))
    return [
        Piece(kind, int(kind), place, tuple("x" * (times * size) for times in range(1, forms + 1)))
        for place, (kind, size, forms) in enumerate(sizes)
    ]


def allocate(them: list[Piece], room: int, ceiling: int, caps: Mapping[Kind, int] = MappingProxyType({})) -> Chosen:
    own = {kind: [piece for piece in them if piece.kind == kind] for kind in Kind}
    return allocated({kind: Queue(len(some), iter(some)) for kind, some in own.items()}, room, ceiling, caps=caps)


def taken(chosen: Chosen) -> dict[int, int]:
    """The form of each piece that stays, by its place."""
    return {piece.place: piece.forms.index(text) for piece, text in chosen.lines}


@given(pieces(), st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 500))
@settings(max_examples=EXAMPLES)
def test_more_room_never_loses_a_piece(them: list[Piece], room: int, above: int, more: int) -> None:
    small, large = allocate(them, room, room + above), allocate(them, room + more, room + above + more)
    after = taken(large)
    assert all(after.get(place, -1) >= form for place, form in taken(small).items())


@given(pieces(), st.integers(0, 3_000), st.integers(0, 3_000))
@settings(max_examples=EXAMPLES)
def test_no_lower_piece_stays_where_a_higher_one_of_no_greater_cost_went(
    them: list[Piece], room: int, above: int
) -> None:
    chosen = allocate(them, room, room + above)
    places = taken(chosen)
    gone = [piece for piece in them if piece.place not in places]
    for piece, text in chosen.lines:
        assert not any(one.kind < piece.kind and line_tokens(one.forms[0]) <= line_tokens(text) for one in gone)


@given(pieces(), st.integers(0, 3_000), st.integers(0, 3_000))
@settings(max_examples=EXAMPLES)
def test_what_is_given_out_stays_within_the_room_and_only_what_cannot_be_had_again_goes_above_it(
    them: list[Piece], room: int, above: int
) -> None:
    chosen = allocate(them, room, room + above)
    assert chosen.tokens == sum(line_tokens(text) for _, text in chosen.lines) <= room + above
    if chosen.tokens > room:
        assert all(piece.kind <= LAST_PROTECTED for piece, _ in chosen.lines)
    assert allocate(them, room, room + above) == chosen
    assert sum(filter(None, chosen.left_out.values())) + len(chosen.lines) == len(them)


def test_a_long_piece_comes_in_short_before_any_lower_one_and_in_full_where_there_is_room() -> None:
    words = Piece(Kind.WORDS, 1, 0, ("short", "long " * 40))
    state = Piece(Kind.STATE, 3, 0, ("state",))
    assert [text for _, text in allocate([words, state], 5, 5).lines] == ["short"]
    assert [text for _, text in allocate([words, state], 90, 90).lines] == ["long " * 40, "state"]


def test_long_messages_with_rules_that_do_not_all_fit_leave_room_for_changed_files_and_other_words() -> None:
    rules = [Piece(Kind.RULE, 0, place, ("r " * 25, "r " * 780)) for place in range(2)]
    words = [Piece(Kind.WORDS, 1, 2 + place, ("w " * 25,)) for place in range(4)]
    files = [Piece(Kind.FILES, 2, 6 + place, ("f " * 15, "f " * 25)) for place in range(3)]
    one_in_full = allocate([*rules, *words, *files], 1_200, 1_200)
    assert taken(one_in_full) == {0: 1, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 8: 0}
    none_in_full = allocate([*rules, *words, *files], 430, 430)
    assert taken(none_in_full) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 6: 0, 7: 0, 8: 0}


def test_what_changed_files_are_about_comes_after_the_words_of_the_person() -> None:
    words = [Piece(Kind.WORDS, 1, place, ("w" * 100, "w" * 400)) for place in range(3)]
    files = [Piece(Kind.FILES, 2, 3 + place, ("f" * 60, "f" * 100)) for place in range(3)]
    short = sum(line_tokens(piece.forms[0]) for piece in (*files, *words))
    assert taken(allocate([*words, *files], short, short)) == dict.fromkeys(range(6), 0)
    in_full = short + sum(line_tokens("w" * 400) - line_tokens("w" * 100) for _ in words)
    assert taken(allocate([*words, *files], in_full, in_full)) == {0: 1, 1: 1, 2: 1, 3: 0, 4: 0, 5: 0}
    assert taken(allocate([*words, *files], in_full + 90, in_full + 90)) == dict.fromkeys(range(6), 1)


def test_all_rules_of_a_long_message_come_before_changed_files_and_its_other_sentences_behind_them() -> None:
    rules = Piece(Kind.RULE, 0, 0, ("r" * 100, "r" * 200, "r" * 300, "r" * 3_000))
    files = [Piece(Kind.FILES, 2, 1 + place, ("f" * 60,)) for place in range(3)]
    assert taken(allocate([rules, *files], 60, 60)) == {0: 1}
    assert taken(allocate([rules, *files], 200, 200)) == {0: 2, 1: 0, 2: 0, 3: 0}


def test_bounds_that_a_person_set_hold_for_their_kind_alone() -> None:
    them = [Piece(Kind.WORDS, 1, place, ("w " * 10,)) for place in range(5)] + [Piece(Kind.STATE, 3, 9, ("state",))]
    chosen = allocate(them, 1_000, 1_000, caps={Kind.WORDS: 25})
    assert [piece.kind for piece, _ in chosen.lines] == [Kind.WORDS, Kind.WORDS, Kind.STATE]


def test_both_ends_come_first() -> None:
    assert from_both_ends(5) == [4, 0, 3, 1, 2]
    assert from_both_ends(0) == []
