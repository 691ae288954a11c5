"""Recorded sessions replayed in small windows: how many of the facts that were said can be read in each request.

    python -m benchmarks.recorded [FOLDER]      default: $NCA_TRANSCRIPTS, else the sessions of the tests
    python -m benchmarks.recorded --lines FILE  the messages of an export of nca, as lines to record; not what is aside

Code alone writes what stands for the messages that are compacted away. What counts as readable is decided by
`benchmarks.stated`, without anything of nca.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from benchmarks.stated import OWN, Recorded, sessions_in, shown
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.library.replay import replay
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.testing.scripted import ScriptedModel
from nca.transcripts.session_file import read_session
from nca.wire import message_from_dict, message_to_dict

FOLDER = "/home/me/project"
WINDOWS = (8_000, 12_000, 16_000, 24_000)


@dataclass(slots=True)
class Readable:
    """What could be read in the requests of one session in one window.

    requests   of each request: the message it follows, the number of facts due, the names of those that are lost
    """

    window_tokens: int
    compactions: int = 0
    requests: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of all facts due in all requests, how many could be read."""
        due = sum(count for _, count, _ in self.requests)
        return 1 - sum(len(lost) for _, _, lost in self.requests) / due if due else 1.0

    @property
    def worst(self) -> tuple[float, int, tuple[str, ...]]:
        """The request with the smallest share: the share, the message it follows, and what is lost."""
        shares = [(1 - len(lost) / due, head, lost) for head, due, lost in self.requests if due]
        return min(shares, default=(1.0, 0, ()))


def readable(
    session: Recorded,
    window_tokens: int,
    *,
    has_tools: bool = False,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Readable:
    """Replay the session, compacted where it is due by nca's policy and by code alone.

    has_tools   each request brings the chat's tools and system prompt, so that the messages have less room
    settings    in place of nca's defaults, by name
    """
    found = Readable(window_tokens)

    def watch(head: int, messages: Sequence[Message]) -> None:
        due = session.due(head)
        text = shown([message_to_dict(message) for message in messages])
        found.requests.append((head, len(due), tuple(fact.name for fact in due if not fact.is_in(text))))

    loaded = defaults().with_values({"model.context_window": window_tokens, **settings}, "the benchmark")
    messages = [message_from_dict(row) for row in session.rows]
    prompt, tools = beside_messages(window_tokens) if has_tools else ("", [])
    found.compactions = len(replay(messages, loaded, tools=tools, system_prompt=prompt, watch=watch).compactions)
    return found


@cache
def beside_messages(window_tokens: int) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt and the tools of a chat in an empty folder."""
    with TemporaryDirectory() as folder, Store.open(None) as store:
        model = ScriptedModel([""], facts=ModelFacts("scripted", "scripted", window_tokens))
        chat = Conversation.open(defaults(), store=store, model=model, directory=Path(folder))
        request = chat.context.next_request()
        asyncio.run(chat.close())
        # The name of the folder is as long as elsewhere.
        return str(request.messages[0]["content"]).replace(folder, FOLDER), request.tools


def recorded_lines(export: bytes, place: str) -> Iterator[str]:
    """The messages of an exported session, one a line, with who said each part, and without those that are aside."""
    for entry in read_session(export, place, directory="").conversation:
        row = message_to_dict(entry.message, annotate=True) | {"_seq": entry.seq}
        yield json.dumps(row, ensure_ascii=False)


def lines(sessions: Sequence[Recorded], *, has_tools: bool = False, has_details: bool = False) -> Iterator[str]:
    """A line for each session and window; with details, also one for each request that lost something."""
    for session in sessions:
        for window in WINDOWS:
            found = readable(session, window, has_tools=has_tools)
            share, after, lost = found.worst
            missing = f" (after message {after}: {', '.join(lost)})" if lost else ""
            yield (
                f"{session.name} at {window:,}: {found.share:.1%} of the facts readable over"
                f" {len(found.requests)} requests, {share:.0%} in the worst{missing}, {found.compactions} compactions"
            )
            for head, due, names in found.requests if has_details else ():
                if names:
                    yield f"  after message {head}: {due - len(names)} of {due}; lost: {', '.join(names)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(os.environ.get("NCA_TRANSCRIPTS") or OWN))
    parser.add_argument("--lines", type=Path, metavar="FILE", help="print the messages of this export (JSON) as lines")
    parser.add_argument("--tools", action="store_true", help="each request has the chat's tools and system prompt")
    parser.add_argument("--details", action="store_true", help="what is lost, request by request")
    options = parser.parse_args()
    if options.lines is not None:
        print("\n".join(recorded_lines(options.lines.read_bytes(), str(options.lines))))
        return
    for line in lines(sessions_in(options.folder), has_tools=options.tools, has_details=options.details):
        print(line, flush=True)


if __name__ == "__main__":
    main()
