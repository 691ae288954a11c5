"""Read trajectories of SWE-agent and mini-swe-agent: one JSON object with the messages.

SWE-agent keeps them as `history`, beside `trajectory` and `info`; mini-swe-agent as `messages`, beside `info` and
`trajectory_format`. Both keep the shape of the provider's interface
(SWE-agent/SWE-agent, sweagent/types.py; SWE-agent/mini-swe-agent, src/minisweagent/agents/default.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nca.errors import InvalidMessages
from nca.messages import Message, Usage
from nca.shapes.responses import ResponsesItems
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats.building import (
    cost_of,
    count_of,
    list_of,
    object_of,
    printed,
    seconds_of,
    some_messages,
    text_of,
)
from nca.transcripts.formats.records import About, Record, Said, StoredSession, Unreadable, stored
from nca.transcripts.formats.source import Source
from nca.wire import message_from_dict

_MESSAGE_KEYS = ("role", "content", "tool_calls", "tool_call_id", "reasoning_content", "name")
_OBSERVED = "observation"
_RETURNED = "<returncode>"
"""How what a command printed begins, in versions of mini-swe-agent that note nothing else of it."""
_WRONG_FORMAT = "FormatError"
_ROLES = ("system", "user", "assistant", "tool", "developer")


class SweAgent:
    name = "swe-agent"
    title = "SWE-agent"

    def knows(self, source: Source) -> bool:
        head = source.head.lstrip()
        if not head.startswith(b"{"):
            return False
        if b'"trajectory_format"' in head and b"mini-swe-agent" in head:
            return True
        if source.path is not None and (source.path.name.endswith((".traj", ".traj.json"))):
            return b'"trajectory"' in head or b'"history"' in head or b'"messages"' in head
        return b'"trajectory"' in head[:400] and (b'"observation"' in head or b'"history"' in head)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        title = source.path.name.removesuffix(".json").removesuffix(".traj") if source.path else ""
        return [stored(self.name, source, title=title)]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """The last run of mini-swe-agent; where others are is the person's choice."""
        folders = (home / ".config" / "mini-swe-agent", home / "Library" / "Application Support" / "mini-swe-agent")
        return [path for folder in folders for path in sorted(folder.glob("*.traj.json"))]


FORMAT = SweAgent()


def _records(source: Source) -> Iterator[Record]:
    whole = object_of(source.value())
    info = object_of(whole.get("info"))
    config = object_of(info.get("config"))
    environment = object_of(object_of(config.get("environment")))
    yield About(
        session=text_of(whole.get("instance_id")),
        title=text_of(whole.get("environment")),
        directory=text_of(environment.get("cwd")),
        model=text_of(object_of(config.get("model")).get("model_name")),
        version=text_of(info.get("mini_version")) or text_of(info.get("swe_agent_version")),
    )
    rows = list_of(whole.get("history")) or list_of(whole.get("messages")) or list(_steps(whole))
    names: dict[str, str] = {}
    has_begun = False
    for number, row in enumerate(rows, 1):
        for record in _message(row, f"message {number}", names):
            if not isinstance(record, Said):
                yield record
                continue
            message = _by_its_author(record.message, object_of(row), has_begun=has_begun)
            has_begun = has_begun or message.role == "assistant"
            yield msgspec.structs.replace(record, message=message)


def _steps(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of a trajectory without a history: what was asked first, then answers and what came back."""
    steps = [object_of(step) for step in list_of(whole.get("trajectory"))]
    for step in steps[:1]:
        yield from (one for one in list_of(step.get("query")) if isinstance(one, dict))
    for step in steps:
        yield {"role": "assistant", "content": step.get("response")}
        yield {"role": "user", "content": step.get("observation"), "message_type": _OBSERVED}


def _message(given: Any, place: str, names: dict[str, str]) -> Iterator[Record]:
    row = object_of(given)
    extra = object_of(row.get("extra"))
    if row.get("role") == "exit":
        return
    try:
        messages = list(_read(row, place, names))
    except InvalidMessages as error:
        yield Unreadable(place, error.message.split(": ", 1)[-1])
        return
    usage = _usage(object_of(row.get("usage")) or object_of(object_of(extra.get("response")).get("usage")), extra)
    for message in messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        is_answer = message.role == "assistant"
        if message.role == "tool" or message.content or message.tool_calls or message.reasoning:
            yield Said(
                message=_named(message, names, extra) if message.role == "tool" else message,
                at=seconds_of(extra.get("timestamp")),
                usage=usage if is_answer else None,
                model=text_of(object_of(extra.get("response")).get("model")) if is_answer else "",
                place=place,
            )


def _by_its_author(message: Message, row: Mapping[str, Any], *, has_begun: bool) -> Message:
    """A message in the user's role with who said it. `has_begun`: a model has answered: before that stands the task,
    which both programs put into a template."""
    if message.role != "user":
        return message
    extra, text = object_of(row.get("extra")), message.text
    if row.get("is_demo") is True or extra.get("interrupt_type") == _WRONG_FORMAT:
        return msgspec.structs.replace(message, source="nca")
    is_result = row.get("role") == "tool" or row.get("message_type") == _OBSERVED or "returncode" in extra
    if has_begun and (is_result or text.startswith(_RETURNED)):
        return printed(message.content or "") or message
    return message


def _named(result: Message, names: Mapping[str, str], extra: Mapping[str, Any]) -> Message:
    """A result with its tool's name, and whether the command failed."""
    failed = count_of(extra.get("returncode")) > 0 or bool(extra.get("exception_info"))
    content = result.content or "(no output)"
    return msgspec.structs.replace(result, name=names.get(result.tool_call_id, ""), is_error=failed, content=content)


def _read(row: dict[str, Any], place: str, names: dict[str, str]) -> Iterable[Message]:
    """A chat message, or what the Responses API gave or gets."""
    if row.get("role") not in _ROLES:
        items = row.get("output") if row.get("object") == "response" else [row]
        if not isinstance(items, list):
            raise InvalidMessages(f"{place}: a message without a known role")
        return [as_chat_message(message) for message in ResponsesItems({"input": items}).messages]
    kept = {key: row[key] for key in _MESSAGE_KEYS if row.get(key) is not None}
    answered = list_of(row.get("tool_call_ids"))
    if row["role"] == "tool" and "tool_call_id" not in kept and answered:
        kept["tool_call_id"] = answered[0]
    if row["role"] == "tool" and not kept.get("tool_call_id"):
        kept["role"] = "user"
    if row["role"] in ("user", "system") and kept.get("content") is None:
        kept["content"] = ""
    if row["role"] != "assistant":
        kept.pop("tool_calls", None)
    return [as_chat_message(message_from_dict(kept))]


def _usage(row: Mapping[str, Any], extra: Mapping[str, Any]) -> Usage | None:
    prompt = count_of(row.get("prompt_tokens")) or count_of(row.get("input_tokens"))
    completion = count_of(row.get("completion_tokens")) or count_of(row.get("output_tokens"))
    if not prompt and not completion:
        return None
    cached = count_of(object_of(row.get("prompt_tokens_details")).get("cached_tokens"))
    thoughts = count_of(object_of(row.get("completion_tokens_details")).get("reasoning_tokens"))
    return Usage(prompt, completion, cached, reasoning_tokens=thoughts, cost=cost_of(extra.get("cost")))
