"""The list below /context: every item with what a key does to it, and marks that change nothing by themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from nca.messages import Message, ToolCall
from nca.sessions import Store
from nca.terminal.panels.context_list import ContextList
from nca.terminal.panels.list_panel import fitted_listing
from tests.terminal.stage import Stage, a_stage
from tests.terminal.tty import Tty, chats

UP, DOWN, END, ESCAPE, TAB = "\x1b[A", "\x1b[B", "\x1b[F", "\x1b", "\t"
EVIL = "\x1b]0;title\x07a \x9b2J漢字\u202e"
LONG = "The parser reads src/parse.py and fails at line 12 with ValueError: bad token. " * 20
SUMMARY = "## Goal and intent\n\nFix src/parse.py, which fails at line 12."


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A chat in which a file was read, and hostile text was said."""
    (tmp_path / "long.txt").write_text("a line of text\n" * 100)
    read = Message("assistant", None, (ToolCall("a", "read_file", json.dumps({"path": "long.txt"})),))
    with a_stage(tmp_path, [read, f"It is dull. {EVIL} {LONG}", "Yes."], window_tokens=40_000) as stage:
        await stage.conversation.send(f"Read long.txt. {LONG}")
        await stage.conversation.send("Really?")
        yield stage


def listed(stage: Stage) -> ContextList:
    async def see(wanted: str) -> None:
        """Nothing is printed here."""

    return ContextList(stage.conversation.context, see, "auto", 20)


def lines(panel: ContextList, columns: int = 100, height: int = 20) -> list[str]:
    drawn = fitted_listing(panel.listing(columns), columns, height)
    return [line.rstrip() for line in "".join(part[1] for part in drawn).split("\n")]


async def test_each_item_frees_what_the_list_says(stage: Stage) -> None:
    context = stage.conversation.context
    items = context.items()
    assert [item.id for item in items] == ["1", "2", "3", "4", "5", "6"]
    assert sum(item.tokens for item in items) <= context.stats().used_tokens
    call = items[1]
    assert (call.label, call.excerpt) == ("assistant: → read_file long.txt", '→ read_file {"path": "long.txt"}')
    # The count before a change is anchored at a report of the model, the one behind it is not.
    assert not context.stats().is_estimate
    freeing = [item for item in items if item.is_collapsible]
    assert {"1", "3", "4"} <= {item.id for item in freeing}
    for item in freeing:
        seqs, before = [int(item.id)], context.stats().used_tokens
        freed = context.collapse_tokens(seqs)
        assert context.collapse(seqs) is not None
        assert before - context.stats().used_tokens == freed
        assert not next(one for one in context.items() if one.id == item.id).is_whole
        before, more = context.stats().used_tokens, context.expansion_tokens(item.id)
        context.expand(item.id)
        assert context.stats().used_tokens - before == more
        context.undo()
        context.undo()
    both = context.collapse_tokens([3, 4])
    before = context.stats().used_tokens
    context.collapse([3, 4])
    assert before - context.stats().used_tokens == both
    context.undo()
    context.pin(4)
    assert context.pins()[0].tokens == context.pin_tokens(4)


async def test_what_is_pinned_short_or_needed_cannot_be_collapsed(stage: Stage) -> None:
    context = stage.conversation.context
    context.pin(4)
    panel = listed(stage)
    panel.keys()["tab"]()
    for which, why in (("2", "would not get shorter"), ("4 · pinned", "is pinned")):
        panel.move(-6)
        while f"message {which}" not in "\n".join(lines(panel)):
            panel.move(1)
        panel.press("c")
        assert panel.marks == {}
        assert f"Message {which[0]} {why}." in lines(panel)
    panel.press("p")
    assert panel.marks == {"4": "unpin"}
    panel.press("e")
    assert "It is already shown in full." in lines(panel)


async def test_marks_change_nothing_and_are_taken_back_by_the_same_key(stage: Stage) -> None:
    context = stage.conversation.context
    before = context.view
    panel = listed(stage)
    assert lines(panel)[0].split() == ["message", "tokens", "1", "of", "6,", "largest", "first"]
    largest = max(context.items(), key=lambda item: item.tokens)
    frees = context.collapse_tokens([int(largest.id)])
    assert f"c collapse −{frees:,} · p pin {context.pin_tokens(int(largest.id)):,}" in lines(panel)[-2]
    panel.press("c")
    assert f"a applies 1 change, about −{frees:,} tokens · Esc leaves" in lines(panel, 200)[-1]
    assert any(f"collapse −{frees:,}" in line for line in lines(panel))
    panel.press("p")
    assert list(panel.marks.values()) == ["pin"]
    panel.press("p")
    assert panel.marks == {}
    # Only one message can be the first of what is compacted.
    for _ in range(2):
        panel.press("f")
        panel.move(1)
    assert list(panel.marks.values()) == ["compact"]
    assert context.view == before


async def test_what_stands_for_others_is_listed_and_opened_again(stage: Stage) -> None:
    context = stage.conversation.context
    context.clear()
    (item,) = context.items()
    assert (item.label, item.tokens, item.is_whole) == ("6 messages left out", 0, False)
    panel = listed(stage)
    panel.press("c")
    assert panel.marks == {}
    assert "Only messages can be collapsed." in lines(panel)
    panel.press("e")
    assert panel.marks == {item.id: "expand"}
    assert f"e expand +{context.expansion_tokens(item.id):,}" in lines(panel)[-2]


async def test_a_search_leaves_what_has_the_text_and_its_letters_change_nothing(stage: Stage) -> None:
    panel = listed(stage)
    for key in "/re":
        panel.press(key)
    assert panel.marks == {}
    assert lines(panel)[-1].startswith("Search: re▏")
    panel.press("a")
    shown = "\n".join(lines(panel))
    assert "with “rea”" in shown
    assert "long.txt" in shown
    assert "Yes." not in shown
    panel.press("ß")
    assert "0 of 0 with “reaß”" in lines(panel)[0]
    panel.move(1)
    panel.keys()["tab"]()
    panel.keys()["backspace"]()
    panel.enter()
    panel.press("c")
    assert list(panel.marks.values()) == ["collapse"]
    panel.leave()
    assert "1 of 6" in lines(panel)[0] or "of 6, in order" in lines(panel)[0]
    panel.press("x")
    assert "x does nothing here; keys: c, e, p, f, a, / to search." in lines(panel)


@pytest.mark.parametrize("columns", [12, 40, 72, 200])
async def test_it_fits_and_nothing_hostile_gets_in(stage: Stage, columns: int) -> None:
    panel = listed(stage)
    for key in ("c", "tab", "f"):
        panel.keys().get(key, partial(panel.press, key))()
        drawn = lines(panel, columns)
        assert all(len(line) <= columns for line in drawn)
        assert not set("".join(drawn)) & set("\x1b\x07\x9b\u202e")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    with chats(settles=True, home=str(tmp_path), window_tokens=40_000) as begin:
        yield begin


def test_the_list_is_walked_and_only_what_is_confirmed_happens(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start({"text": LONG}, {"text": LONG}, "Fine.", SUMMARY, SUMMARY)
    for line in ("first", "second", "third"):
        tty.command(line)
        tty.settle()
    tty.command("/context")
    tty.sees("Esc leaves")
    tty.send("c")
    tty.sees("a applies 1 change")
    tty.send("\r")
    tty.sees("message 2, assistant; in the context in full")
    tty.sees("a applies 1 change")
    tty.send(ESCAPE)
    tty.sees("Nothing was changed.")
    tty.settle()
    # Nothing of the list stays, and the picture does.
    assert "Esc drops" not in "\n".join(tty.shown())
    assert "answer reserve" in tty.text()
    tty.command("/context")
    tty.sees("Esc leaves")
    tty.send("c" + DOWN + "p")
    tty.sees("a applies 2 changes")
    tty.send("a")
    tty.sees("Collapsed 1 message")
    tty.sees("is pinned.")
    tty.settle()
    tty.command("/context")
    tty.sees("shortened, 1 pinned")
    tty.send(TAB + END + UP)
    tty.sees("5 of 6, in order")
    tty.send("f")
    tty.sees("compact from here")
    tty.send("a")
    # What it was asked to compact is too little; the rest of the context was not touched.
    tty.sees("Nothing to compact")
    tty.settle()
    tty.send("\x04")
    assert tty.ends() == 0
    assert b"Traceback" not in tty.raw
    with Store.open(tmp_path / "store.db", read_only=True) as store:
        session = store.open_session(store.list()[0].id, read_only=True)
        assert next(record.stages for record in session.views.compactions()) == ("collapse",)
        assert len(session.views.pins()) == 1


def test_keys_in_one_piece_with_the_one_that_ends_the_list_are_for_the_prompt(start: Callable[..., Tty]) -> None:
    tty = start("One.", "Two.")
    tty.line("hello")
    tty.sees("One.")
    tty.settle()
    tty.command("/context")
    tty.sees("Esc leaves")
    tty.send("\x07and then\r")
    tty.sees("Two.")


def test_lines_that_were_typed_ahead_keep_the_list_closed(start: Callable[..., Tty]) -> None:
    tty = start("One.", "Two.")
    tty.send("hello\r/context\rnext\r")
    tty.sees("Two.")
    assert "Try: /context" in tty.text()
