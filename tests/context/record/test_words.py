"""What the person said, and what they pasted."""

from __future__ import annotations

from dataclasses import replace

from nca.config.schema import SummarizeSettings
from nca.context.history import History
from nca.context.record.compose import Composer, Prose
from nca.context.record.past import Past
from nca.context.record.said import MEDIUM_TOKENS, SHORT_TOKENS, prompts_in, said_in, typed_and_pasted
from nca.context.record.words import beside, longer, medium, short
from nca.context.tokens import text_tokens
from nca.messages import AttachmentPart, Entry, Message, TextPart, user_message
from nca.words import Span

LOG = "\n".join(f"10:{n:02} INFO part {n} done in {n} ms" for n in range(60))


def _past(*messages: Message, important: frozenset[int] = frozenset()) -> Past:
    history = History(Entry(seq, message) for seq, message in enumerate(messages, 1))
    return Past(history, ((1, history.head),), important=important)


def test_what_is_no_part_of_the_conversation_is_not_said_even_if_a_model_names_it() -> None:
    past = _past(*(Message("user", f"Word {seq}.") for seq in range(1, 6)), important=frozenset({2, 4, 9}))
    past.spans = ((1, 3), (5, 5))
    assert past.named == [2]
    assert [piece.text for piece in short(past)] == ["Word 2.", "Word 5.", "Word 1.", "Word 3."]


def test_only_what_was_typed_is_the_persons_words() -> None:
    said = said_in(user_message((Span("Look at this:\n", "typed"), Span(LOG, "pasted"))))
    assert said is not None
    assert said.typed == "Look at this:\n"
    assert said.beside == (("pasted", LOG),)
    assert said.form(SHORT_TOKENS) == "Look at this:\n[pasted, 60 lines]"
    assert said.form(SHORT_TOKENS + 1).startswith("Look at this:\n[pasted, 60 lines] 10:00 INFO")
    alone = said_in(user_message((Span(LOG, "pasted"),)))
    assert alone is not None
    assert alone.form(50).startswith("[pasted, 60 lines] 10:00 INFO")


def test_an_attached_file_is_named_in_the_short_form_and_where_a_later_message_has_it_too() -> None:
    file = AttachmentPart("log.txt", LOG + "\n", 1_000)
    past = _past(*(Message("user", (TextPart(text), file)) for text in ("First.", "Second.")))
    first, second = (past.said(past.history.message(seq)) for seq in (1, 2))
    assert first is not None
    assert second is not None
    assert first.form(SHORT_TOKENS) == first.form(5_000) == "First.\n[attached: log.txt, newest text at (2)]"
    unnumbered = replace(past, numbered=False).said(past.history.message(1))
    assert unnumbered is not None
    assert unnumbered.form(5_000) == "First.\n[attached: log.txt, and again later]"
    assert second.form(SHORT_TOKENS) == "Second.\n[attached: log.txt, 60 lines]"
    assert second.form(second.size) == f"Second.\n[attached: log.txt, 60 lines]\n{LOG}\n[end of log.txt]"


def test_the_text_of_a_tiny_file_has_a_form_too() -> None:
    past = _past(Message("user", (TextPart("See."), AttachmentPart("a.txt", "port = 8117", 11))))
    assert "8117" not in next(short(past)).text
    assert "8117" in next(medium(past)).text


def test_a_foreign_text_is_told_apart_by_its_lines() -> None:
    text = f"Please look at what the server printed last night.\n{LOG}\nWhich of these lines shows the cause of it?"
    typed, pasted = typed_and_pasted(text)
    assert typed == ("Please look at what the server printed last night.\nWhich of these lines shows the cause of it?")
    assert pasted == LOG


def test_sentences_that_were_pasted_alone_are_what_the_person_says() -> None:
    """Dictation and snippets come as pastes."""
    dictated = "The deadline has moved to Friday. Tell nobody but Ana."
    for text, is_said in ((dictated, True), ("\n".join([dictated] * 30), True), ("10:00 INFO ok\n" * 9, False)):
        said = said_in(user_message((Span(text, "pasted"),)))
        assert said is not None
        assert (said.typed, said.beside) == ((text.strip(), ()) if is_said else ("", (("pasted", text.strip()),)))
    beside = said_in(user_message((Span("From Ana:\n", "typed"), Span(dictated, "pasted"))))
    assert beside is not None
    assert beside.beside == (("pasted", dictated),)


def test_a_short_or_numbered_line_beside_what_was_pasted_is_typed() -> None:
    assert typed_and_pasted(f"{LOG}\n2. Why is it so slow?") == ("2. Why is it so slow?", LOG)


def test_a_line_that_a_blank_line_sets_apart_is_typed() -> None:
    """Few people end a line above a paste with a stop."""
    assert typed_and_pasted(f"never touch a.py\n\n{LOG}\n\nwhat is wrong here") == (
        "never touch a.py\n\n\nwhat is wrong here",
        LOG,
    )
    for title in ("---\n===", "one\ntwo\nthree of them"):
        assert typed_and_pasted(f"{title}\n\n{LOG}") == ("", f"{title}\n\n{LOG}")


def test_a_short_foreign_text_is_typed() -> None:
    assert typed_and_pasted("a\nb\nc") == ("a\nb\nc", "")


def test_nobody_said_what_nca_wrote() -> None:
    assert said_in(Message("user", "A reminder.", source="nca")) is None
    assert said_in(Message("assistant", "An answer.")) is None


def test_the_newest_and_the_oldest_come_in_turn() -> None:
    past = _past(*(Message("user", f"word {n}", source="typed") for n in range(1, 6)))
    assert [piece.subject.seq for piece in short(past)] == [5, 1, 4, 2, 3]


def test_a_brief_is_whole_before_older_answers_have_a_line() -> None:
    rules = [f"- Rule {n}: never touch the part of the house that has the number {n}." for n in range(60)]
    assert SHORT_TOKENS < text_tokens("\n".join(rules)) < MEDIUM_TOKENS
    turns = [
        (Message("user", f"Go on {n}.", source="typed"), Message("assistant", f"Done {n}. " * 40)) for n in range(9)
    ]
    brief = Message("user", "\n".join(rules), source="typed")
    history = _past(brief, *(message for turn in turns for message in turn), brief).history
    is_whole = []
    for room in range(200, 3_000, 100):
        text = Composer(history, SummarizeSettings()).record([(1, history.head - 1)], room, Prose())
        is_whole.append(all(rule in text for rule in rules))
        assert is_whole[-1] or "Done 3." not in text, room
    assert not is_whole[0]
    assert is_whole[-1]


def test_what_a_model_named_comes_first() -> None:
    past = _past(*(Message("user", f"word {n}", source="typed") for n in range(1, 6)), important=frozenset({3}))
    assert [piece.subject.seq for piece in short(past)] == [3, 5, 1, 4, 2]


def test_a_message_has_longer_and_longer_forms() -> None:
    past = _past(Message("user", "Several words that go on. " * 400, source="typed"))
    sizes = [text_tokens(piece.text) for pieces in (short, medium, longer) for piece in pieces(past)]
    assert sizes == sorted(sizes)
    assert sizes[0] <= SHORT_TOKENS
    assert len(sizes) > 3


def test_japanese_sentences_are_no_paste() -> None:
    text = "\n".join(
        ["最初に決めるのは次の三つのことだと思います。", "社員には来週の金曜日までに連絡してください。"] * 40
    )
    assert typed_and_pasted(text) == (text, "")


def printed(n: int) -> Message:
    """What a command printed, as some agents hand it to the model: in the user's name."""
    rows = "\n".join(f"<td>{n} {row}</td>" for row in range(12))
    return Message("user", f"{rows}\n(Open file: f{n}.py)\n$ bash")


def test_what_ends_with_a_prompt_nobody_typed() -> None:
    results = [printed(n) for n in range(5)]
    rule = Message("user", "Never push.\nThanks", source="foreign")
    past = _past(rule, *results, rule, rule)
    assert past.prompts == {"$ bash", "Thanks"}
    assert [said.typed for one in results if (said := past.said(one)) is not None] == [""] * 5
    # What people type is no list of a program's lines.
    assert past.said(rule) == said_in(rule)
    assert _past(*results[:2]).prompts == frozenset()
    assert prompts_in([user_message((Span("a\nb", "typed"),))] * 9) == frozenset()


def test_a_brief_is_whole_before_anything_printed_in_the_persons_name_has_a_line() -> None:
    rules = [f"Rule {n}: never touch the part of the house that has the number {n}." for n in range(30)]
    steps = [one for n in range(20) for one in (Message("assistant", f"I look at part {n}."), printed(n))]
    history = _past(Message("user", "\n".join(rules)), *steps).history
    is_whole = []
    for room in range(200, 3_000, 100):
        text = Composer(history, SummarizeSettings()).record([(1, history.head - 1)], room, Prose())
        is_whole.append(all(rule in text for rule in rules))
        assert is_whole[-1] or "[pasted" not in text, room
    assert not is_whole[0]
    assert is_whole[-1]


def test_what_was_pasted_alone_waits_for_what_was_typed() -> None:
    typed = user_message((Span("Never touch f5.py.", "typed"),))
    alone = user_message((Span(LOG, "pasted"),))
    past = _past(alone, typed, alone)
    assert [piece.subject.seq for piece in short(past)] == [2]
    assert list(longer(past)) == []
    assert {piece.subject.seq for piece in beside(past)} == {1, 3}
    text = Composer(past.history, SummarizeSettings()).record([(1, 3)], 2_000, Prose())
    assert text.count("[pasted, 60 lines]") == 2
