"""Sessions from a program: `load_settings`, `Store.open` and `Conversation` as another program calls them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

import nca
from nca.agent.approvals import Answer, Person
from nca.events import ApprovalAsked, ErrorRaised, Event, Failure, TextDelta, TurnFinished, TurnStarted
from nca.messages import MediaPart, Message, ToolCall, Usage
from nca.models.client import ModelRequest, Reply
from nca.testing import scripted
from nca.testing.provider import Provider
from nca.testing.scripted import ScriptedModel, ScriptedReply, in_order
from nca.tools.tool import ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox

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
        async with opened:
            yield opened, events


async def test_the_shortest_program_has_the_settings_the_store_and_the_model_of_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "home"))
    with Provider(in_order(*[scripted.Answer(text="Two.")] * 2)) as provider:
        monkeypatch.setenv("OPENAI_API_BASE", provider.url)
        async with nca.open_conversation() as chat:
            finished = await chat.send("How many?")
            earlier = chat.session.info.id
        assert (finished.text, finished.error) == ("Two.", None)
        async with nca.open_conversation(str(project), session=earlier, model="openai/test-model") as chat:
            assert (await chat.send("And now?")).text == "Two."
            assert chat.context.entries[0].message.text == "How many?"
            assert chat.model.facts.name == "openai/test-model"
    with nca.Store.open(tmp_path / "home" / "data" / "sessions.db", read_only=True) as store:
        assert [info.directory for info in store.list()] == [str(project)]
    with pytest.raises(nca.ConfigError, match="nope"):
        async with nca.open_conversation(settings={"nope": 1}):
            pass


async def test_a_program_hears_of_a_damaged_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "sessions.db").write_bytes(b"no database " * 400)
    heard: list[nca.events.Event] = []
    async with nca.open_conversation(tmp_path, model=ScriptedModel([]), listener=heard.append):
        pass
    assert any(isinstance(event, nca.events.Notice) and "set aside" in event.message for event in heard)


async def test_what_opens_a_conversation_closes_its_model_whatever_happens(tmp_path: Path) -> None:
    closed: list[str] = []

    class Closes(ScriptedModel):
        async def close(self) -> None:
            closed.append("model")

    kept = {"session.persist": False}
    with pytest.raises(nca.NcaError, match="no session"):
        async with nca.open_conversation(tmp_path, model=Closes([]), settings=kept, session="nope"):
            pass
    with pytest.raises(nca.ConfigError, match="nope"):
        async with nca.open_conversation(tmp_path, model=Closes([]), settings={"nope": 1}):
            pass
    with pytest.raises(ZeroDivisionError):
        async with nca.open_conversation(tmp_path, model=Closes(["Hi."]), settings=kept) as chat:
            _ = 1 / len(chat.context.entries)
    assert closed == ["model"] * 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": 5}, r"^model: expected a model of nca\.open_model, or one of your own"),
        ({"directory": 5}, "^directory: expected a path, found a number"),
        ({"listener": 5}, "^listener: expected a function that takes an event, found a number"),
        ({"settings": None}, "^settings: expected settings by name, found "),
        ({"settings": {1: 2}}, "^settings: expected names of settings, found a number"),
    ],
)
async def test_what_opens_a_conversation_names_a_wrong_argument_as_it_does(wrong: Any, says: str) -> None:
    with pytest.raises(nca.UsageError, match=says):
        async with nca.open_conversation(**wrong):
            pass


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
        assert (await opened.send("See", attachments=[kind(Path("a.txt"))])).text == "Yes."
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
        with pytest.raises(nca.UsageError, match=r"^attachments: expected a list of paths, found text"):
            await talk.send("Hello", attachments="a.txt")
        with pytest.raises(nca.UsageError, match=r"^source: 'bogus' is not valid; valid: typed, pasted,"):
            await talk.send("Hello", source="bogus")  # type: ignore[arg-type]
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


def begun(talk: nca.Conversation) -> asyncio.Event:
    """Set when the model has begun its answer."""
    event = asyncio.Event()
    talk.subscribe(lambda one: event.set() if isinstance(one, TextDelta) else None)
    return event


class Breaks(Person):
    async def ask(self, asked: ApprovalAsked) -> Answer:
        raise KeyError("no such window")


@pytest.mark.parametrize("breaks", ["model", "person"])
async def test_what_a_programs_own_part_raises_is_told_as_the_end_of_the_turn(breaks: str, tmp_path: Path) -> None:
    def fail(request: ModelRequest) -> str:
        raise KeyError("no such window")

    asks = ToolCall("c1", "write_file", '{"path": "a.txt", "content": "a"}'), ToolCall("c2", "list_directory", "{}")
    replies: list[ScriptedReply] = [fail] if breaks == "model" else [Message("assistant", None, asks)]
    events: list[Event] = []
    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(tmp_path / "talk.db") as store:
        model = ScriptedModel([*replies, "Here."])
        talk = nca.Conversation.open(
            loaded, store=store, model=model, directory=tmp_path, listener=events.append, person=Breaks()
        )
        with pytest.raises(KeyError):
            await talk.send("Write it.")
        ends = [event for event in events if isinstance(event, TurnFinished)]
        assert [(end.reason, end.exit_code, end.error) for end in ends] == [
            ("failed", 1, Failure("KeyError: 'no such window'"))
        ]
        results = [entry.message.text for entry in talk.context.entries if entry.message.role == "tool"]
        assert results == ([] if breaks == "model" else ["[not run: the turn failed]"] * 2)
        assert (await talk.send("Again.")).text == "Here."
        await talk.close()


async def test_a_second_message_is_refused_while_one_is_answered(tmp_path: Path) -> None:
    """Two turns at once mixed their messages, and the results of their calls."""
    long = "A word after a word. " * 500
    async with conversation(tmp_path, long, "Two.") as (talk, _):
        answers = begun(talk)
        first = asyncio.create_task(talk.send("One"))
        await answers.wait()
        for second in (talk.send("Two"), talk.run_turn("Two")):
            with pytest.raises(nca.UsageError, match="is answering another message"):
                await second
        assert (await first).text == long
        assert (await talk.run_turn("Two")).text == "Two."
        said = [entry.message.text for entry in talk.session.log.entries()]
    assert said == ["One", long, "Two", "Two."]


@pytest.mark.parametrize("closers", [1, 2])
async def test_closing_ends_the_turn_and_keeps_what_there_is(closers: int, tmp_path: Path) -> None:
    long = "A word after a word. " * 500
    async with conversation(tmp_path, long) as (talk, _):
        answers = begun(talk)
        sending = asyncio.create_task(talk.send("One"))
        await answers.wait()
        session, store = talk.session.info.id, talk.store
        await asyncio.gather(*(talk.close() for _ in range(closers)), return_exceptions=True)
        finished = await sending
        assert (finished.reason, sending.cancelling()) == ("interrupted", 0)
        with store.open_session(session, read_only=True) as kept:
            asked, answer = (entry.message for entry in kept.log.entries())
        assert (asked.text, answer.is_interrupted) == ("One", True)
        assert long.startswith(answer.text)
        assert answer.text == finished.text != ""


@pytest.mark.parametrize("sees_all", [False, True])
async def test_a_programs_conversation_recalls_its_own_session_only(sees_all: bool, tmp_path: Path) -> None:
    """A service keeps its persons' sessions in one store, and each could read those of the others."""
    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(tmp_path / "talk.db") as store:
        ann = nca.Conversation.open(loaded, store=store, model=ScriptedModel(["Noted."]), directory=tmp_path)
        await ann.send("The zebra sleeps in the harbour.")
        ann_id = ann.session.info.id
        await ann.close()
        asked = [{"query": "zebra", "scope": "all"}, {"expand": f"{ann_id}:1"}, {"query": "zebra"}, {"query": "all"}]
        calls = [ToolCall(f"c{n}", "recall", json.dumps(one)) for n, one in enumerate(asked)]
        model = ScriptedModel([Message("assistant", None, tuple(calls)), "Done."])
        bob = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path, sees_all_sessions=sees_all)
        await bob.send("What is there?")
        results = [entry.message.text for entry in bob.session.log.entries() if entry.message.role == "tool"]
        assert ["harbour" in one for one in results] == [sees_all, sees_all, False, False]
        (definition,) = (one["function"] for one in bob.context.next_request().tools if "recall" in str(one)[:60])
        for said in (*results[2:], json.dumps(definition)):
            assert (" all," in said or '"all"' in said) == sees_all
        if sees_all:
            assert bob.context.search("zebra", scope="all")
        else:
            assert "no such scope: 'all'; the scopes are session, messages" in results[0]
            with pytest.raises(nca.UsageError, match="sees its own session only"):
                bob.context.search("zebra", scope="all")
        await bob.close()


class Weather(TypedTool):
    name = "weather"
    permission = "read"

    async def call(self, city: str) -> str:
        """The weather in a city."""
        return f"22 degrees in {city}"


class Reads(Weather):
    name = "read_file"


class Unclear(Weather):
    async def call(self, city: Weather) -> str:  # type: ignore[override]
        """What no schema can state."""
        return ""


def tool(call: Any, permission: str = "read") -> Any:
    return type("Own", (TypedTool,), {"name": "own", "permission": permission, "call": call})()


async def no_type(self, x):  # type: ignore[no-untyped-def]
    return ""


async def any_number(self: Any, *x: str) -> str:
    return ""


async def any_name(self: Any, **x: str) -> str:
    return ""


async def one_of_two(self: Any, x: int | str) -> str:
    return ""


async def number_of(self: Any, x: Literal[1, 2]) -> str:
    return ""


def at_once(self: Any) -> str:
    return ""


async def fine(self: Any, x: int | None = None) -> str:
    return ""


NO_TOOLS: list[tuple[Any, str]] = [
    (tool(no_type), "the parameter x cannot be in a schema; valid: a name with a type of str"),
    (tool(any_number), r"the parameter \*x: .* cannot be in a schema"),
    (tool(any_name), r"the parameter \*\*x: .* cannot be in a schema"),
    (tool(one_of_two), r"the type int \| str cannot be in a schema; valid: str, int"),
    (tool(number_of), "the type .* cannot be in a schema"),
    (tool(at_once), "at_once is not asynchronous; valid: `async def`"),
    (tool(fine, "reads"), "permission: 'reads' is not valid; valid: read, write, execute"),
]


@pytest.mark.parametrize("form", ["name", "description", "parameters"])
def test_a_tool_whose_form_is_wrong_is_refused_by_name(form: str) -> None:
    class Odd(Weather):
        pass

    setattr(Odd, form, 3)
    with pytest.raises(nca.UsageError, match=rf"tool.*{form}.*found a number|{form} as text, found a number"):
        Toolbox([Odd()])


@pytest.mark.parametrize(("wrong", "said"), NO_TOOLS, ids=lambda one: one[:30] if isinstance(one, str) else "")
def test_a_tool_that_could_not_be_called_is_refused(wrong: Any, said: str) -> None:
    assert Toolbox([tool(fine)]).names == ("own",)
    with pytest.raises(nca.UsageError, match=f"The tool own: {said}"):
        Toolbox([wrong])


ADDRESS = "data:image/png;base64,AAAA"
SHOWN = {"type": "image_url", "image_url": {"url": ADDRESS}}


@pytest.mark.parametrize(
    "media",
    [
        MediaPart("image", SHOWN),
        [MediaPart("image", SHOWN)],
        (SHOWN,),
        (b"PNG",),
        (MediaPart("image_url", SHOWN),),  # type: ignore[arg-type]
        (MediaPart("image", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}),),
        (MediaPart("image", {"type": "image_url", "image_url": ADDRESS}),),
    ],
)
async def test_a_picture_that_no_model_could_see_is_an_error_that_names_the_tool(media: Any, tmp_path: Path) -> None:
    async def call(self: Any) -> ToolOutcome:
        return ToolOutcome("A plan.", media=media)

    asks = Message("assistant", None, (ToolCall("c1", "own", "{}"),))
    model = ScriptedModel([asks, "I see."])
    with nca.Store.open(None) as store:
        loaded = nca.load_settings(project=tmp_path, env={})
        talk = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path, tools=[tool(call)])
        assert (await talk.send("Show it.")).text == "I see."
        await talk.close()
    result = model.requests[1].messages[-1]["content"]
    assert result.startswith("Error: own returned media that no model can see; valid: a tuple of MediaPart(")


async def wait(event: Event) -> None:
    """A listener that nobody awaits."""


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"loaded": {}}, "loaded: expected settings of nca.load_settings, found an object"),
    (
        {"model": "openai/m1"},
        r"model: expected a model of nca.open_model, or one of your own \(nca.*\), found text",
    ),
    ({"store": "s.db"}, "store: expected an nca.Store, found text"),
    ({"toolbox": [Weather()]}, "toolbox: expected an nca.Toolbox, found a list"),
    ({"tools": Weather()}, "tools: expected a list of tools, found a Weather"),
    ({"tools": [Weather]}, "tools: expected tools, such as an object of .*, found the class Weather"),
    ({"tools": [len]}, "tools: expected tools, .*, found a builtin"),
    ({"tools": [Unclear()]}, "The tool weather: "),
    ({"tools": [Weather(), Weather()]}, "Two tools have the same name: weather"),
    ({"person": lambda asked: None}, "person: expected an nca.Person, found a function"),
    ({"listener": "x"}, "listener: expected a function that takes an event, found text"),
    ({"listener": wait}, "listener: is asynchronous; valid: a function that returns at once"),
    ({"kind": "bogus"}, "kind: 'bogus' is not valid; valid: chat, run"),
    ({"kind": None}, "kind: .* is not valid; valid: chat, run"),
    ({"session": ""}, "session: is empty; valid: an id, its beginning, or None"),
    ({"session": 5}, "session: expected an id, found a number"),
    ({"directory": "/no/such/folder"}, "directory: /no/such/folder is no folder"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_a_wrong_argument_is_named_and_nothing_is_opened(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(tmp_path / "talk.db") as store:
        given = {"loaded": loaded, "store": store, "model": ScriptedModel([]), "directory": tmp_path, **wrong}
        with pytest.raises(nca.UsageError, match=said):
            nca.Conversation.open(given.pop("loaded"), **given)


async def test_open_model_and_load_settings_name_what_is_wrong(tmp_path: Path) -> None:
    wrong: Any = None
    loaded = nca.load_settings(project=tmp_path, env={})
    with pytest.raises(nca.UsageError, match=r"^env: expected the environment"):
        nca.load_settings(project=tmp_path, env=wrong)
    for env in ({1: "2"}, {"NCA_X": 2}):
        wrong = env
        with pytest.raises(nca.UsageError, match=r"^env: expected names and values of text, found a number"):
            nca.load_settings(project=tmp_path, env=wrong)
    wrong = {1: 2}
    with pytest.raises(nca.UsageError, match=r"^flags: expected names of settings, found a number"):
        nca.load_settings(project=tmp_path, env={}, flags=wrong)
    wrong = None
    with pytest.raises(nca.UsageError, match=r"^project: .*nowhere is no folder"):
        nca.load_settings(project=tmp_path / "nowhere", env={})
    with pytest.raises(nca.UsageError, match=r"^choice: expected a model's name, such as .*, found nothing"):
        await nca.open_model(wrong, loaded)
    with pytest.raises(nca.UsageError, match=r"^loaded: expected settings of nca.load_settings, found nothing"):
        await nca.open_model("openai/gpt-4.1", wrong)
    local = nca.load_settings(project=tmp_path, env={}, flags={"model.api_base": "http://127.0.0.1:9"})
    for name in ("", "openai/", " "):
        for settings in (loaded, local):
            with pytest.raises(nca.ModelUnavailable, match="names no model"):
                await nca.open_model(name, settings)
    with pytest.raises(nca.ModelUnavailable, match="nca knows no provider 'nosuchprovider'"):
        await nca.open_model("nosuchprovider/x", loaded)


async def test_wrong_arguments_of_a_conversation_are_named_and_it_goes_on(tmp_path: Path) -> None:
    async with conversation(tmp_path, "Hi.") as (talk, _):
        wrong: list[tuple[Callable[[Any], Any], Any, str]] = [
            (talk.subscribe, 5, "listener: expected a function that takes an event, found a number"),
            (talk.subscribe, wait, "listener: is asynchronous"),
            (talk.context.pin, "1", "seq: expected a message's number, found text"),
            (talk.context.collapse, ["a"], "seq: expected a message's number, found text"),
            (lambda name: talk.set(name, 3), 3, "name: expected the name of a setting, found a number"),
            (talk.context.collapse, 77, "seqs: expected a list of messages' numbers, found a number"),
            (talk.context.collapse_tokens, 77, "seqs: expected a list of messages' numbers, found a number"),
            (talk.context.expand, 1, "wanted: expected the id of a summary or marker, .* found a number"),
            (talk.context.expansion_tokens, None, "wanted: expected the id of a summary or marker, .* found nothing"),
            (talk.context.search, 3, "question: expected text, found a number"),
            (
                lambda scope: talk.context.search("x", scope=scope),
                "every",
                "scope: 'every' is not valid; valid: session, all",
            ),
            (lambda limit: talk.context.search("x", limit=limit), "y", "limit: expected a number of results"),
            (talk.context.archive.expand, 1, "wanted: expected an id, as text, found a number"),
            (talk.store.find, 5, "session: expected an id, its beginning, or a name, found a number"),
            (talk.store.list, "x", "limit: expected a number of sessions, or None for all, found text"),
        ]
        for call, value, said in wrong:
            with pytest.raises(nca.UsageError, match=said):
                call(value)
        name: Any = "openai/x"
        with pytest.raises(nca.UsageError, match=r"model: expected a model of nca\.open_model, or one of your own"):
            await talk.use_model(name)
        with pytest.raises(nca.UsageError, match=r"beside: expected a list of nca.agent.mentions.Beside\("):
            await talk.send("Hello", beside=[name])
        assert (await talk.send("Hello")).text == "Hi."


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
async def test_keys_and_addresses_are_those_of_the_environment_that_is_passed(variable: str, tmp_path: Path) -> None:
    secret = "sk-of-the-mapping-1234567890"

    async def call(self: Any) -> str:
        return f"The key is {secret}."

    env = {"OPENAI_API_KEY": secret, "NCA_HOME": str(tmp_path)}
    with Provider(in_order(scripted.Answer(text="Hi.")), api_key=secret) as provider, nca.Store.open(None) as store:
        loaded = nca.load_settings(project=tmp_path, env={variable: provider.url, **env})
        model = await nca.open_model("openai/test-model", loaded)
        talk = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path)
        assert (await talk.send("Hello")).text == "Hi."
        await talk.close()
        asks = Message("assistant", None, (ToolCall("c1", "own", "{}"),))
        talk = nca.Conversation.open(
            loaded, store=store, model=ScriptedModel([asks, "No."]), directory=tmp_path, tools=[tool(call)]
        )
        await talk.send("Which key?")
        assert secret not in str(talk.context.effective_history())
        await talk.close()
    for env in ({}, {"ANTHROPIC_API_KEY": ""}):
        with pytest.raises(nca.ModelUnavailable, match="ANTHROPIC_API_KEY is not set"):
            await nca.open_model("anthropic/claude-sonnet-4-5", nca.load_settings(project=tmp_path, env=env))


@pytest.mark.parametrize("kind", [TurnStarted, TextDelta, TurnFinished])
async def test_all_listeners_hear_what_one_of_them_breaks_on(kind: type[Event], tmp_path: Path) -> None:
    """And the one that breaks hears how the turn ended; the conversation goes on."""

    def breaks(event: Event) -> None:
        if isinstance(event, kind) and not broken:
            broken.append(event)
            raise KeyError("metrics")

    broken: list[Event] = []
    heard: list[Event] = []
    async with conversation(tmp_path, "One.", "Two.") as (talk, events):
        stop = talk.subscribe(breaks)
        talk.subscribe(heard.append)
        with pytest.raises(KeyError, match="metrics"):
            await talk.send("First")
        assert heard == events
        assert isinstance(heard[-1], TurnFinished)
        assert (await talk.send("Again")).reason == "answered"
        stop()


async def test_a_tool_whose_own_task_is_cancelled_has_failed_and_the_turn_goes_on(tmp_path: Path) -> None:
    class Waits(TypedTool):
        name, permission = "waits", "read"

        async def call(self) -> str:
            """Wait for a task that was cancelled."""
            task = asyncio.create_task(asyncio.sleep(60))
            task.cancel()
            await task
            return ""

    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(None) as store:
        model = ScriptedModel([Message("assistant", None, (ToolCall("c1", "waits", "{}"),)), "Never mind."])
        talk = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path, tools=[Waits()])
        finished = await talk.send("Wait.")
        assert (finished.reason, finished.text, finished.exit_code) == ("answered", "Never mind.", 0)
        [result] = [one.message for one in talk.context.entries if one.message.role == "tool"]
        assert (result.text, result.is_error) == ("Error: a task that the tool waited for was cancelled", True)
        await talk.close()


async def test_a_listener_may_stop_twice(tmp_path: Path) -> None:
    async with conversation(tmp_path, "Hi.", "Hi.") as (talk, _):
        heard: list[Event] = []
        stop = talk.subscribe(heard.append)
        stop()
        stop()
        await talk.send("Hello")
    assert heard == []


async def test_a_programs_tools_are_beside_those_of_nca(tmp_path: Path) -> None:
    asks = Message("assistant", None, (ToolCall("c1", "weather", '{"city": "Malta"}'),))
    loaded = nca.load_settings(project=tmp_path, env={})
    with nca.Store.open(tmp_path / "talk.db") as store:
        for box, names in ((None, {"read_file", "recall", "weather"}), (Toolbox(), {"weather"})):
            model = ScriptedModel([asks, "Warm."])
            talk = nca.Conversation.open(
                loaded, store=store, model=model, directory=tmp_path, toolbox=box, tools=[Weather()]
            )
            assert (await talk.send("How is it there?")).text == "Warm."
            assert names <= {tool["function"]["name"] for tool in model.requests[0].tools}
            assert model.requests[1].messages[-1]["content"] == "22 degrees in Malta"
            await talk.close()
        with pytest.raises(nca.UsageError, match="Two tools have the same name: read_file"):
            nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path, tools=[Reads()])


@pytest.mark.parametrize("sees_all", [False, True])
async def test_a_programs_conversation_reads_its_own_outputs_only(sees_all: bool, tmp_path: Path) -> None:
    (project := tmp_path / "project").mkdir()
    loaded = nca.load_settings(project=project, env={})
    with nca.Store.open(tmp_path / "talk.db") as store:
        model = ScriptedModel(["Hi."])
        talk = nca.Conversation.open(loaded, store=store, model=model, directory=project, sees_all_sessions=sees_all)
        folders = [store.outputs_folder(session) for session in (talk.session.info.id, "0ther5e55")]
        calls = []
        for number, folder in enumerate(folders):
            assert folder is not None
            folder.mkdir(parents=True)
            (folder / "5.txt").write_text("zebra")
            calls.append(ToolCall(f"c{number}", "read_file", json.dumps({"path": str(folder / "5.txt")})))
        await talk.use_model(ScriptedModel([Message("assistant", None, tuple(calls)), "Done."]))
        await talk.send("Read.")
        results = [entry.message.text for entry in talk.session.log.entries() if entry.message.role == "tool"]
        assert ["zebra" in one for one in results] == [True, sees_all]
        await talk.close()
