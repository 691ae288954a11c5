"""A partial answer is on disk at least every two seconds or 4 KiB, whatever the model does next."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.agent.partial import SAVED_BYTES
from nca.agent.user_input import CUT_SHORT
from nca.config.loaded import defaults
from nca.errors import ProviderError, ProviderFailure
from nca.events import Event, Notice, TextDelta, TurnFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.failures import PassingFailure
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel

FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=16_000)


class StalledModel:
    """Says a word and then nothing until `goes_on` is set, twice."""

    facts = FACTS

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        for word in ("Well", ", yes"):
            on_delta(Delta(text=word))
            await self.goes_on.wait()
            self.goes_on.clear()
        return Reply(Message("assistant", "Well, yes."))

    async def close(self) -> None:
        self.goes_on.set()


def opened(store: Store, path: Path, model: Model) -> Conversation:
    return Conversation.open(defaults(), store=store, model=model, directory=path)


async def test_what_was_seen_of_a_stalled_answer_is_kept(tmp_path: Path) -> None:
    model = StalledModel()
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, model)
        turn = asyncio.create_task(conversation.send("Is it?"))
        with Store.open(tmp_path / "s.db", read_only=True) as other:
            reader = other.open_session(conversation.session.info.id, read_only=True)
            for before, now in (("", "Well"), ("Well", "Well, yes")):
                while (partial := reader.log.partial()) is None or partial.text == before:
                    await asyncio.sleep(0.01)
                assert partial.text == now
                model.goes_on.set()
            assert (await turn).text == "Well, yes."
            assert reader.log.partial() is None
        await conversation.close()


async def test_so_many_bytes_are_kept_at_once_however_few_characters_they_are(tmp_path: Path) -> None:
    shown = ""
    missing: list[int] = []

    def hear(event: Event) -> None:
        nonlocal shown
        if isinstance(event, TextDelta):
            partial = conversation.session.log.partial()
            missing.append(len(shown.encode()) - len(partial.text.encode() if partial else b""))
            shown += event.text

    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, ScriptedModel(["語 " * 2_500], facts=FACTS))
        conversation.subscribe(hear)
        await conversation.send("Say it.")
        await conversation.close()
    assert len(shown.encode()) > 2 * SAVED_BYTES
    assert max(missing) < SAVED_BYTES


class BreakingModel:
    """Breaks off in the middle of its first answers."""

    facts = FACTS

    def __init__(self, breaks: int) -> None:
        self.breaks = breaks
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        self.requests.append(request)
        if len(self.requests) <= self.breaks:
            on_delta(Delta(text="Well, "))
            lost = ProviderFailure("backoff", is_overflow=False)
            raise PassingFailure("The connection was lost.", failure=lost)
        on_delta(Delta(text="yes."))
        return Reply(Message("assistant", "yes."))

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("breaks", "retries", "reason", "text", "requests"),
    [(1, 5, "answered", "Well, yes.", 2), (2, 5, "failed", "Well, Well,", 2), (1, 0, "failed", "Well,", 1)],
)
async def test_an_answer_that_breaks_off_goes_on_once(
    tmp_path: Path, breaks: int, retries: int, reason: str, text: str, requests: int
) -> None:
    model, heard = BreakingModel(breaks), list[Event]()
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, model)
        conversation.set("model.max_retries", str(retries))
        conversation.subscribe(heard.append)
        finished = await conversation.send("Is it?")
        roles = [entry.message.role for entry in conversation.context.entries]
        await conversation.close()
    assert finished.reason == reason
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)).strip() == text
    assert len(model.requests) == requests
    if reason == "answered":
        assert finished.text == text
        assert roles == ["user", "assistant", "user", "assistant"]
        assert any(isinstance(event, Notice) and "asked to continue" in event.message for event in heard)


async def test_the_model_is_told_once_that_its_answer_was_cut_short(tmp_path: Path) -> None:
    model = StalledModel()
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, model)
        turn = asyncio.create_task(conversation.send("Is it?"))
        while conversation.session.log.partial() is None:
            await asyncio.sleep(0.01)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        scripted = ScriptedModel(["No.", "Yes."], facts=FACTS)
        await conversation.close()
        session = conversation.session.info.id
        again = Conversation.open(defaults(), store=store, model=scripted, directory=tmp_path, session=session)
        await again.send("Then what?")
        await again.send("And now?")
        await again.close()
    asked = [
        [str(one["content"]) for one in request.messages if one["role"] == "user"] for request in scripted.requests
    ]
    assert [CUT_SHORT in text for text in asked[0]] == [False, True]
    assert [CUT_SHORT in text for text in asked[1]] == [False, True, False], "it stays where it was said"


class LookingModel:
    """Thinks and looks, and then its answer breaks off."""

    facts = FACTS
    has_looked = False

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        if self.has_looked:
            on_delta(Delta(text="Half of"))
            raise ProviderError("It broke off.")
        self.has_looked = True
        on_delta(Delta(reasoning="I look first."))
        return Reply(Message("assistant", None, (ToolCall("c1", "list_directory", "{}"),), reasoning="I look first."))

    async def close(self) -> None:
        return


async def test_what_is_kept_of_an_answer_has_no_thoughts_of_the_step_before(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, LookingModel())
        assert (await conversation.send("Is it?")).reason == "failed"
        kept = conversation.context.entries[-1].message
        assert (kept.text, kept.reasoning, kept.is_interrupted) == ("Half of", "", True)
        await conversation.close()


async def test_a_few_more_bytes_are_not_kept_at_once(tmp_path: Path) -> None:
    pieces = ["x" * SAVED_BYTES, *"abc", "y" * SAVED_BYTES, "d"]
    kept: list[int] = []

    class Pieces(StalledModel):
        async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
            for piece in pieces:
                on_delta(Delta(text=piece))
                partial = conversation.session.log.partial()
                kept.append(len(partial.text) if partial else 0)
            return Reply(Message("assistant", "".join(pieces)))

    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, Pieces())
        await conversation.send("Is it?")
        await conversation.close()
    once, twice = SAVED_BYTES, 2 * SAVED_BYTES + 3
    assert kept == [once, once, once, once, twice, twice]


class PartsModel:
    """Each answer is a part, and ends as it is told: whole, for length, by the filter, broken, refused, or never."""

    facts = FACTS

    def __init__(self, *ends: str) -> None:
        self.ends = iter(enumerate(ends, 1))
        self.waits = asyncio.Event()

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        number, end = next(self.ends)
        text = f"Part {number}, "
        failure = ProviderFailure("fail" if end == "refused" else "backoff", is_overflow=False)
        if end == "refused":
            raise ProviderError("It was refused.", failure=failure)
        on_delta(Delta(text=text[:4]))
        on_delta(Delta(text=text[4:]))
        if end == "broken":
            raise PassingFailure("The connection was lost.", failure=failure)
        if end == "never":
            self.waits.set()
            await asyncio.Event().wait()
        return Reply(Message("assistant", text), finish_reason=end)

    async def close(self) -> None:
        pass


def ways_to_end() -> list[tuple[str, ...]]:
    """All ways in which up to three parts of an answer may end; only a broken or long one has another behind it."""
    last, more = ("stop", "length", "content_filter", "broken", "refused", "never"), ("length", "broken")
    return [(*before, end) for parts in range(3) for before in product(more, repeat=parts) for end in last]


@pytest.mark.parametrize("ends", ways_to_end(), ids=" ".join)
async def test_the_text_of_a_turn_is_what_was_shown_however_it_ends(tmp_path: Path, ends: tuple[str, ...]) -> None:
    # Neither a broken nor a long answer is continued twice, so the turn may end before the last part.
    model, heard = PartsModel(*ends, "stop"), list[Event]()
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path, model)
        conversation.subscribe(heard.append)
        turn = asyncio.create_task(conversation.run_turn("Is it?"))
        waits = asyncio.create_task(model.waits.wait())
        await asyncio.wait([turn, waits], return_when=asyncio.FIRST_COMPLETED)
        if model.waits.is_set():
            turn.cancel()
        waits.cancel()
        finished = await turn
        kept = "".join(one.message.text for one in conversation.context.entries if one.message.role == "assistant")
        await conversation.close()
    shown = "".join(event.text for event in heard if isinstance(event, TextDelta))
    assert shown.startswith("Part 1, ") or ends[0] == "refused"
    assert (finished.text, kept) == (shown, shown)
    assert [event.text for event in heard if isinstance(event, TurnFinished)] == [shown]
