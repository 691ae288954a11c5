"""The chat over a scripted model, run by the tests in a terminal or a pipe of its own.

Its argument is a JSON object: replies (see `_reply`), home (history file and store; none: memory), settings,
window_tokens, banner, directory, piece_seconds. Not a test; pytest does not collect it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from nca.agent.conversation import Conversation
from nca.config.layers import defaults
from nca.errors import ProviderError
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.model import Delta, ModelRequest, OnDelta, Reply
from nca.models.tool_calls import ToolCallAssembler
from nca.sessions.store import Store
from nca.terminal.app import ChatApp
from nca.terminal.interrupts import Interrupts
from nca.terminal.open_terminal import has_screen, open_terminal
from nca.terminal.render.stream_writer import replace_unencodable
from nca.testing.scripted import ScriptedModel, split_text


class SlowModel(ScriptedModel):
    """SLOW at the beginning: a first piece, then nothing. PAUSE, and summaries: an answer after a second.

    piece_seconds   how long each piece of an answer takes, and of its calls
    """

    piece_seconds = 0.0

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        last = str(request.messages[-1]["content"])
        if last.startswith("SLOW"):
            on_delta(Delta(text="The first piece. "))
            await asyncio.sleep(60)
        if last.startswith("PAUSE") or "<transcript>" in last or "PAUSE" in str(request.messages[-1:]):
            await asyncio.sleep(1)
        pieces: list[Delta] = []
        try:
            reply = await super().ask(request, pieces.append if self.piece_seconds else on_delta)
        except IndexError as over:
            raise ProviderError(f"The script is over: {over}.") from over
        written = ToolCallAssembler()
        for call in reply.message.tool_calls if self.piece_seconds else ():
            for piece in ("", *split_text(call.arguments)):
                sent = {"id": call.id, "function": {"name": call.name, "arguments": piece}}
                pieces += [Delta(call=grown) for grown in written.add(sent)]
        for delta in pieces:
            on_delta(delta)
            await asyncio.sleep(self.piece_seconds)
        return reply


def _reply(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if "error" in value:
        return ProviderError(value["error"], advice=value.get("advice", ""))
    if "tool" in value:
        return Message("assistant", tool_calls=(ToolCall("call-1", value["tool"], json.dumps(value["arguments"])),))
    return Message("assistant", value["text"] * value.get("times", 1), reasoning=value.get("reasoning", ""))


async def main(script: dict[str, Any]) -> int:
    home = Path(script["home"]) if "home" in script else None
    loaded = defaults()
    for name, value in script.get("settings", {}).items():
        loaded = loaded.with_value(name, value, "the test")
    facts = ModelFacts(
        name="scripted/model",
        provider="scripted",
        window_source="the script",
        window_tokens=script.get("window_tokens", 10_000),
    )
    replace_unencodable(sys.stdout, sys.stderr)
    SlowModel.piece_seconds = script.get("piece_seconds", 0.0)
    replies = [_reply(reply) for reply in script["replies"]]
    settings, interrupts = loaded.settings.terminal, Interrupts()
    directory = Path(script.get("directory", Path.cwd()))
    first = None
    if has_screen(settings):
        # Imported here: line mode does without prompt_toolkit.
        from nca.terminal.input.first_prompt import FirstPrompt

        first = FirstPrompt(settings, directory, home / "history" if home else None, interrupts)
    output, reader = open_terminal(settings, first, interrupts)
    with Store.open(home / "store.db" if home else None) as store:
        conversation = Conversation.open(
            loaded,
            store=store,
            model=SlowModel(replies, facts=facts),
            directory=directory,
            listener=output.on_event,
            prepares=script.get("prepares", False),
            sees_all_sessions=True,
            person=reader,
        )
        for line in script.get("banner", ()):
            output.notice(line)
        return await ChatApp(conversation, output, reader, interrupts).run()


if __name__ == "__main__":
    code = asyncio.run(main(json.loads(sys.argv[1])))
    sys.stderr.write(f"left with {code}\n")
    sys.exit(code)
