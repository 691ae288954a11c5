"""What one turn leaves for the next: a conversation that goes on does as one that was closed and resumed.

So nothing of a turn is left in a part of the program that should begin anew. What is kept on purpose is not in these
turns: which files were read since the session was opened, and that two compactions in a row were in vain.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nca.agent.approvals import Answer, Nobody
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import OnlyReasoned, ProviderError, ProviderFailure
from nca.events import ApprovalAsked, Event, TextDelta
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedAnswer, ScriptedModel, ScriptedReply
from nca.words import Words, words

FACTS = ModelFacts(name="scripted/twice", provider="scripted", window_tokens=40_000)
_IF = """case "$(cat)" in %s) echo '%s';; esac"""
_BLOCK, _END = '{"decision": "block", "reason": "Go on."}', '{"continue": false, "stopReason": "Enough."}'
HOOKS = [
    {"event": "Stop", "command": _IF % ("""*'hook_active": true'*) ;; *GOON*""", _BLOCK)},
    {"event": "UserPromptSubmit", "command": _IF % ("*ENDIT*", _END)},
    {"event": "PostToolUse", "command": _IF % ("*ENDS*", _END)},
]
SETTINGS = {"agent.max_steps": 4, "hooks": HOOKS}
_VOLATILE = ("seconds", "at", "session_id")


@dataclass(frozen=True)
class OneTurn:
    """asks: what the person answers to questions; typed: what they type meanwhile; stops: at the first text."""

    text: str
    replies: tuple[ScriptedReply, ...] = ()
    asks: tuple[Answer, ...] = ()
    typed: tuple[str, ...] = ()
    stops: bool = False


def call(name: str, arguments: str, call_id: str = "c1") -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, arguments),))


LOOK = call("list_directory", "{}")


def write(request: ModelRequest) -> Message:
    """A new file each time: one that is there is read first, in each process."""
    return call("write_file", f'{{"path": "{len(request.messages)}.txt", "content": "one"}}')


LONG = "A long and varied answer, with details. " * 40
TURNS = {
    "answered": OneTurn("Hello", ("Fine.",)),
    "called": OneTurn("Look around", (LOOK, "Seen.")),
    "went on by a hook": OneTurn("Begin", ("GOON with it.", "Done now.")),
    "ended by a hook": OneTurn("ENDIT here"),
    "ended by a hook after a call": OneTurn("Look", (call("list_directory", '{"path": "./ENDS"}'), "Not reached.")),
    "failed": OneTurn("Ask", (ProviderError("down"),)),
    "too long": OneTurn("Sum up", (ProviderError("too long", failure=ProviderFailure("compact", True)), "Shorter.")),
    "only reasoned": OneTurn("Think", (OnlyReasoned("nothing said"), OnlyReasoned("nothing said"))),
    "refused": OneTurn("Write", (write, "A pity."), (Answer("deny", "not there"),)),
    "allowed": OneTurn("Write", (write, "Written."), (Answer("once"),)),
    "unanswered": OneTurn("Write", (write, "Nobody was there.")),
    "out of steps": OneTurn("Look", tuple(call("list_directory", f'{{"path": "{"./" * n}"}}') for n in range(1, 6))),
    "stuck": OneTurn("Look", (LOOK,) * 5),
    "stopped": OneTurn("Tell me all", (LONG,), stops=True),
    "cut": OneTurn("Tell me", (Reply(Message("assistant", "Half of"), finish_reason="length"), "the answer.")),
    "typed ahead": OneTurn("Look", (LOOK, "Seen both."), typed=("And there?",)),
    "planned": OneTurn("Plan it", (call("todo", '{"doing": "this", "open": ["that"]}'), "Planned.")),
}


class Scripted(Nobody):
    def __init__(self) -> None:
        self.asks: list[Answer] = []
        self.typed: list[str] = []

    async def ask(self, asked: ApprovalAsked) -> Answer:
        return self.asks.pop(0) if self.asks else Answer("unanswered")

    def typed_ahead(self) -> Sequence[Words]:
        typed, self.typed = self.typed, []
        return [words(text) for text in typed]


class Talk:
    """One session in a folder of its own, and what happened since `forget`."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        (self.project / "ENDS").mkdir(parents=True)
        self.store = Store.open(folder / "sessions.db")
        self.person = Scripted()
        self.replies: list[ScriptedReply] = []
        self.events: list[Event] = []
        self.session: str | None = None

    def open(self) -> None:
        self.model = ScriptedModel([self._reply] * 50, facts=FACTS)
        self.conversation = Conversation.open(
            defaults().with_values(SETTINGS, "the test"),
            store=self.store,
            model=self.model,
            directory=self.project,
            # One without messages is deleted when it is closed.
            session=self.session if self.store.list() else None,
            listener=self.events.append,
            person=self.person,
        )
        self.session = self.conversation.session.info.id

    def _reply(self, request: ModelRequest) -> ScriptedAnswer:
        reply = self.replies.pop(0)
        return reply(request) if callable(reply) else reply

    async def run(self, turn: OneTurn) -> dict[str, Any]:
        """The turn's events and requests."""
        del self.events[:]
        asked = len(self.model.requests)
        self.replies = list(turn.replies)
        self.person.asks, self.person.typed = list(turn.asks), list(turn.typed)
        running = asyncio.ensure_future(self.conversation.run_turn(words(turn.text)))
        while turn.stops and not any(isinstance(event, TextDelta) for event in self.events):
            await asyncio.sleep(0)
        if turn.stops:
            running.cancel()
        await running
        requests = [(request.messages, request.tools) for request in self.model.requests[asked:]]
        return {"events": [plain(event) for event in self.events], "requests": requests}


def plain(event: Event) -> dict[str, Any]:
    """An event without its times."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return {"kind": type(event).__name__} | {key: value for key, value in fields.items() if key not in _VOLATILE}


NEXT = ("went on by a hook", "too long", "unanswered", "out of steps")
"""They are told apart by what each kind of turn could leave."""


@pytest.mark.parametrize("first", TURNS)
async def test_a_conversation_that_goes_on_does_as_one_that_was_resumed(first: str, tmp_path: Path) -> None:
    for second in dict.fromkeys((*NEXT, first)):
        if first == second == "too long":
            continue
        found = []
        for is_resumed in (False, True):
            talk = Talk(folder := tmp_path / "same")
            talk.open()
            await talk.run(TURNS[first])
            if is_resumed:
                await talk.conversation.close()
                talk.open()
            found.append(await talk.run(TURNS[second]))
            await talk.conversation.close()
            talk.store.close()
            shutil.rmtree(folder)
        assert found[0]["events"] == found[1]["events"], second
        assert found[0]["requests"] == found[1]["requests"], second
