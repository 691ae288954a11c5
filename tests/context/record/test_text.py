"""A record as text, and read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.history import History
from nca.context.record.past import Past
from nca.context.record.piece import Section, fixed
from nca.context.record.text import HEADINGS, laid_out, preface, read_again
from nca.context.summary import HEADER
from nca.messages import Entry, Message

TEXTS = st.text("ab()123 #-\n•·\r\v\u2028", min_size=1, max_size=60).map(str.strip).filter(bool)


@given(st.lists(st.tuples(st.sampled_from([one for one in Section if one is not Section.NAMES]), TEXTS), max_size=8))
def test_lines_come_back_in_their_sections(rows: list[tuple[Section, str]]) -> None:
    taken = [(section, fixed((place,), place + 1, text)) for place, (section, text) in enumerate(rows)]
    text = laid_out(HEADER, preface(answered=0, numbered=False), "", taken, numbered=False)
    prose, found = read_again(text)
    assert prose == ""
    for section in HEADINGS:
        said = [one for where, one in rows if where is section]
        assert [_trimmed(one) for one in found.get(section, [])] == [_trimmed(one) for one in said]


def _trimmed(text: str) -> str:
    return "\n".join(map(str.rstrip, text.split("\n")))


def test_numbers_are_those_of_the_messages() -> None:
    taken = [(Section.WORDS, fixed(("said", 7), 7, "Use tabs.\nAlways.")), (Section.NAMES, fixed(("n",), 0, "a.py"))]
    text = laid_out(HEADER, preface(answered=5, waits=6, numbered=True), "Prose.", taken, numbered=True)
    assert "- (7) Use tabs.\n  Always." in text
    assert "All up to (5) has been answered. (6) is still open." in text
    assert read_again(text) == ("Prose.", {Section.WORDS: ["Use tabs.\nAlways."], Section.NAMES: ["a.py"]})


def test_without_recall_there_is_neither_number_nor_hint() -> None:
    text = laid_out(
        HEADER, preface(answered=5, numbered=False), "", [(Section.WORDS, fixed((1,), 7, "x"))], numbered=False
    )
    assert "(7)" not in text
    assert "recall" not in text


def test_another_programs_summary_is_prose() -> None:
    assert read_again(f"{HEADER}\nThey talked about tabs.\n\n### Goal\nTabs.") == (
        "They talked about tabs.\n\n### Goal\nTabs.",
        {},
    )


def test_of_several_records_the_prose_is_in_their_order_and_the_newest_line_comes_first() -> None:
    records = [
        laid_out(HEADER, preface(answered=0, numbered=True), f"Prose {number}.", (), numbered=True)
        + f"\n\n{HEADINGS[Section.WORDS]}\n- (1) Word {number}.\n- (2) And {number}."
        for number in range(3)
    ]
    messages = (Message("user", text, source="nca") for text in records)
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    prose, lines = Past.of(history).records
    assert prose == ["Prose 0.", "Prose 1.", "Prose 2."]
    assert [line.text for line in lines[Section.WORDS]] == [
        f"{word} {n}." for n in (2, 1, 0) for word in ("And", "Word")
    ]
