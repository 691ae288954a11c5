"""Read trajectories of SWE-agent and mini-swe-agent: one JSON object with the messages.

SWE-agent keeps them as `history`, beside `trajectory` and `info`; mini-swe-agent as `messages`, beside `info` and
`trajectory_format`. Both keep the shape of the provider's interface
(SWE-agent/SWE-agent, sweagent/types.py; SWE-agent/mini-swe-agent, src/minisweagent/agents/default.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from nca.errors import InvalidMessages
from nca.messages import Message, Usage
from nca.shapes.responses import ResponsesItems
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Reading, Record, StoredSession, facts
from nca.transcripts.formats.row import Row, list_of, row_of
from nca.transcripts.formats.source import Source
from nca.wire import message_from_dict

_MESSAGE_KEYS = ("role", "content", "tool_calls", "tool_call_id", "reasoning_content", "name")
_OBSERVED = "observation"
_RETURNED = "<returncode>"
"""How what a command printed begins, in versions of mini-swe-agent that note nothing else of it."""
_WRONG_FORMAT = "FormatError"
_ROLES = ("system", "user", "assistant", "tool", "developer")


class SweAgent(Format):
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
        return [self.stored(source, About(title=title))]

    def records(self, source: Source, key: str) -> Iterator[Record]:
        whole = row_of(source.value())
        yield facts(self.name, whole)
        rows = list_of(whole.get("history")) or list_of(whole.get("messages")) or list(_steps(whole))
        reading = _Reading()
        for number, row in enumerate(map(row_of, rows), 1):
            reading.place = f"message {number}"
            yield from reading.record(row)


FORMAT = SweAgent("swe-agent")


def _steps(whole: Row) -> Iterator[Row]:
    """The messages of a trajectory without a history: what was asked first, then answers and what came back."""
    steps = list(map(row_of, list_of(whole.get("trajectory"))))
    for step in steps[:1]:
        yield from step.rows("query")
    for step in steps:
        yield Row(role="assistant", content=step.get("response"))
        yield Row(role="user", content=step.get("observation"), message_type=_OBSERVED)


class _Reading(Reading):
    _has_begun = False
    """Whether a model has answered."""

    def record(self, row: Row) -> Iterator[Record]:
        if row.get("role") == "exit":
            return
        extra = row.row("extra")
        usage, self.at = _usage(row.row("usage") or extra.row("response", "usage"), extra), extra.seconds("timestamp")
        try:
            messages = list(_read(row, self.place))
        except InvalidMessages as error:
            yield self.unreadable(error.message.split(": ", 1)[-1])
            return
        for one in messages:
            if one.role == "tool" or one.content or one.tool_calls or one.reasoning:
                message = _by_its_author(one, row, extra, has_begun=self._has_begun)
                self._has_begun = self._has_begun or message.role == "assistant"
                yield from self.said(message, usage=usage, model=extra.text("response", "model"))


def _by_its_author(message: Message, row: Row, extra: Row, *, has_begun: bool) -> Message:
    """A message in the user's role with who said it, and a result with whether its command failed.

    has_begun  a model has answered: before that stands the task, which both programs put into a template
    """
    if message.role == "tool":
        failed = extra.count("returncode") > 0 or bool(extra.get("exception_info"))
        return msgspec.structs.replace(message, is_error=failed, content=message.content or "(no output)")
    if message.role != "user":
        return message
    if row.get("is_demo") is True or extra.get("interrupt_type") == _WRONG_FORMAT:
        return msgspec.structs.replace(message, source="nca")
    is_result = row.get("role") == "tool" or row.get("message_type") == _OBSERVED or "returncode" in extra
    if has_begun and (is_result or message.text.startswith(_RETURNED)):
        return make.printed(message.content or "") or message
    return message


def _read(row: Row, place: str) -> Iterable[Message]:
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


def _usage(row: Row, extra: Row) -> Usage | None:
    cached, thoughts = "prompt_tokens_details.cached_tokens", "completion_tokens_details.reasoning_tokens"
    for prompt, completion in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
        if usage := row.usage(prompt, completion, cached, thoughts=thoughts, cost=extra.get("cost")):
            return usage
    return None
