"""Sessions are found by the beginnings of words, as a person types them; recall by whole words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from nca.messages import Message
from nca.sessions.store import Store

SAID = [
    "We mended the tokenizer, and the compaction of long sessions is running quickly.",
    "Nothing in the settings was parsed beside the databases; everything else is a reminder.",
    "東京タワーへ行きたいです。予約してください。",
    "Ναι, και ελληνικά ευχαριστώ. Привет, переименовать функцию.",
    "Kirjastossa luettiin kaupungeista, joissa junat pysähtyvät.",
    "Kitaplarımızdan öğrendiklerimizi evlerimizde konuşuyoruz.",
]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store.open(None) as opened:
        for said in SAID:
            with opened.create(directory="/", model="m") as session:
                session.log.append([Message("user", said)])
        # So that what is common in a store of this size is common.
        for number in range(40):
            with opened.create(directory="/", model="m") as session:
                session.log.append([Message("user", f"The window, the answer and the model, number {number}.")])
        yield opened


def found(store: Store, text: str) -> list[str]:
    return [hit.hits[0].snippet for hit in store.search_sessions(text, 100)]


@pytest.mark.parametrize("said", [SAID[0], SAID[1], *SAID[3:]])
def test_each_beginning_of_each_word_finds_the_session(store: Store, said: str) -> None:
    missing = [
        word[:length]
        for word in re.findall(r"\w{5,}", said)
        for length in range(3, len(word) + 1)
        # The index writes an `i` for a `y` at the end, also where the word goes on.
        if not word[:length].endswith("y") and said not in found(store, word[:length])
    ]
    assert missing == []


@pytest.mark.parametrize("text", ["東", "東京", "京タ", "東京タワ", "予約し"])
def test_a_script_without_blanks_is_found_by_any_part(store: Store, text: str) -> None:
    assert found(store, text) == [SAID[2]]


@pytest.mark.parametrize("text", ["comp long", "mend toke", "tokeniz compac", "quick ses"])
def test_each_word_may_be_a_beginning(store: Store, text: str) -> None:
    assert found(store, text)[0] == SAID[0]


def test_the_word_that_is_being_typed_may_go_on_although_it_is_one(store: Store) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append([Message("user", "Who will win?")])
    assert len(found(store, "win")) == 41
    # A blank ends it.
    assert found(store, "win ") == ["Who will win?"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("compactify", SAID[0]),
        ("tokenisation", SAID[0]),
        ("kirjastoihin", SAID[4]),
        ("kaupungissa", SAID[4]),
        ("kitaplarından", SAID[5]),
        ("evlerinizden", SAID[5]),
    ],
)
def test_where_no_word_begins_with_a_word_as_much_of_it_counts_as_one_begins_with(
    store: Store, text: str, said: str
) -> None:
    assert found(store, text) == [said]


def test_a_longer_beginning_comes_before_a_shorter_one(store: Store) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append([Message("user", "A tokamak is hot.")])
    assert found(store, "tokex") == [SAID[0]]
    assert len(found(store, "tokx")) == 2


@pytest.mark.parametrize("text", ["tokio", "comp", "kirja", "evler"])
def test_a_small_share_of_a_word_does_not_count(store: Store, text: str) -> None:
    assert found(store, f"{text}{'x' * 2 * len(text)}") == []


def test_recall_takes_words_as_they_are(store: Store) -> None:
    assert store.search("toke") == []
