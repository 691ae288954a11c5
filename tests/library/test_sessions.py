"""Sessions from a program: `load_settings`, `Store.open` and `Conversation` as another program calls them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import nca
from nca.events import ErrorRaised, Event, Failure
from nca.messages import Message, Usage
from nca.models.client import Reply
from nca.testing.scripted import ScriptedModel, ScriptedReply

KINDS: list[Callable[[Path], str | os.PathLike[str]]] = [str, Path, lambda path: OtherPath(path)]


class OtherPath:
    """A path of another library."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@asynccontextmanager
async def conversation(folder: Path, *replies: ScriptedReply) -> AsyncIterator[tuple[nca.Conversation, list[Event]]]:
    events: list[Event] = []
    loaded = nca.load_settings(project=folder, env={})
    with nca.Store.open(folder / "talk.db") as store:
        opened = nca.Conversation.open(
            loaded, store=store, model=ScriptedModel(list(replies)), directory=folder, listener=events.append
        )
        try:
            yield opened, events
        finally:
            await opened.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_path_may_be_text_or_any_path(kind: Callable[[Path], str | os.PathLike[str]], tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text("[context]\ntarget_ratio = 0.4\n")
    (tmp_path / "project.toml").write_text("[context]\ncompact_threshold = 0.7\n")
    (tmp_path / "a.txt").write_text("zebra")
    user, project = kind(tmp_path / "user.toml"), kind(tmp_path / "project.toml")
    loaded = nca.load_settings(project=kind(tmp_path), env={}, user_file=user, config_file=project)
    assert (loaded.settings.context.target_ratio, loaded.settings.context.compact_threshold) == (0.4, 0.7)
    with nca.Store.open(kind(tmp_path / "talk.db")) as store:
        assert store.path == tmp_path / "talk.db"
        opened = nca.Conversation.open(loaded, store=store, model=ScriptedModel(["Yes."]), directory=kind(tmp_path))
        assert (await opened.send("See", attachments=[kind(tmp_path / "a.txt")])).text == "Yes."
        assert opened.session.info.directory == str(tmp_path)
        assert opened.context.entries[0].message.attachments[0].text == "zebra"
        await opened.close()


def test_what_is_no_path_is_refused_with_its_name(tmp_path: Path) -> None:
    wrong: Any = 5
    with pytest.raises(nca.UsageError, match=r"^path: expected a path, found a number"):
        nca.Store.open(wrong)
    with pytest.raises(nca.UsageError, match=r"^project: expected a path, found a number"):
        nca.load_settings(project=wrong, env={})
    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(None) as store, pytest.raises(nca.UsageError, match=r"^directory: expected a path, found noth"):
        nca.Conversation.open(loaded, store=store, model=ScriptedModel([]), directory=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "kind"), [(None, "nothing"), (5, "a number"), (b"x", "a bytes"), (["x"], "a list")])
async def test_what_is_no_text_is_refused_and_the_session_goes_on(text: Any, kind: str, tmp_path: Path) -> None:
    wrong: Any = 5
    async with conversation(tmp_path, "Hi.") as (talk, events):
        with pytest.raises(nca.UsageError, match=rf"^text: expected text .*found {kind}"):
            await talk.send(text)
        with pytest.raises(nca.UsageError, match=r"^attachments: expected a path"):
            await talk.send("Hello", attachments=[wrong])
        assert events == []
        assert (await talk.send("Hello")).text == "Hi."


async def test_a_turn_that_fails_says_why(tmp_path: Path) -> None:
    failing = nca.ProviderError("No key for acme/one.", advice="Set ACME_API_KEY.")
    async with conversation(tmp_path, failing, "Hi.") as (talk, events):
        failed, answered = await talk.send("Hello"), await talk.send("Hello")
    assert failed.error == Failure("No key for acme/one.", "Set ACME_API_KEY.", 3)
    assert [event for event in events if isinstance(event, ErrorRaised)] == [ErrorRaised.of(failing)]
    assert (failed.reason, failed.exit_code) == ("failed", 3)
    assert (answered.reason, answered.error) == ("answered", None)


async def test_an_answer_that_a_filter_ended_is_no_whole_answer(tmp_path: Path) -> None:
    filtered = Reply(Message("assistant", "First, "), Usage(10, 2), finish_reason="content_filter")
    async with conversation(tmp_path, filtered, "All of it.") as (talk, _):
        finished, again = await talk.send("Tell me"), await talk.send("Again")
    assert (finished.reason, finished.exit_code, finished.text) == ("content_filter", 1, "First, ")
    assert (again.reason, again.exit_code) == ("answered", 0)
