"""Read Kimi Code's sessions: `wire.jsonl` of each agent, with title and directory in the session's `state.json`.

A compaction keeps the person's messages; an undo takes back the newest ones and all since
(@moonshot-ai/kimi-code 2.1.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nca.messages import Message, Part, TextPart, ToolCall, Usage
from nca.transcripts.formats.building import (
    answer,
    count_of,
    joined,
    name_of,
    object_of,
    objects_of,
    person,
    picture,
    printed,
    read_rows,
    seconds_of,
    shown,
    some_messages,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import (
    About,
    Compacted,
    Live,
    Record,
    Said,
    StoredSession,
    Unreadable,
    chosen_folder,
    json_file,
    stored,
)
from nca.transcripts.formats.source import Source

_MAIN = "main"
_OWN = ("profile.bind", "context.append_message", "runtime.set_binding")


class KimiCode:
    name = "kimi-code"
    title = "Kimi Code"

    def knows(self, source: Source) -> bool:
        rows = source.first_rows
        is_wire = bool(rows) and rows[0].get("type") == "metadata" and "protocol_version" in rows[0]
        return is_wire and any(row.get("type") in _OWN for row in rows)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        about = _about(source)
        found = stored(self.name, source, directory=about.directory, title=about.title)
        yield msgspec.structs.replace(found, parent=about.parent)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_Reading().records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        return sorted(_agents(env, home).glob(f"*/*/agents/{_MAIN}/wire.jsonl"))

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        return (path for path in _agents(env, home).glob("*/*/agents/*/wire.jsonl") if path.parent.name != _MAIN)


FORMAT = KimiCode()


def _agents(env: Mapping[str, str], home: Path) -> Path:
    return (chosen_folder(env.get("KIMI_CODE_HOME"), home) or home / ".kimi-code") / "sessions"


def _about(source: Source) -> About:
    """What the folder of the session tells: it is two above the agent's."""
    if source.path is None or len(source.path.parents) < 3:
        return About()
    folder = source.path.parents[2]
    state = object_of(json_file(folder / "state.json"))
    is_main = source.path.parent.name == _MAIN
    return About(
        session=folder.name if is_main else f"{folder.name}/{source.path.parent.name}",
        title=text_of(state.get("title")) if is_main else "",
        directory=text_of(state.get("cwd")),
        parent="" if is_main or not state else folder.name,
    )


class _Reading:
    def __init__(self) -> None:
        self._seen: list[tuple[str, bool]] = []
        """The messages that the model still sees, or that a summary stands for; whether the person said each."""
        self._left: set[str] = set()
        self._model = self._trigger = ""
        self._usage: Usage | None = None
        self._parts: list[Part | None] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall | None] = []
        self._names: dict[str, str] = {}

    def records(self, source: Source) -> Iterator[Record]:
        yield _about(source)
        yield from read_rows(source, self._record)
        yield from self._answered("end", 0.0)
        if self._left:
            yield Live(frozenset(id for id, _ in self._seen))

    def _record(self, row: Mapping[str, Any], place: str) -> Iterator[Record]:
        at = seconds_of(row.get("time"))
        match row.get("type"):
            case "profile.bind":
                if prompt := text_of(row.get("systemPrompt")):
                    yield Said(message=Message("system", prompt), at=at, is_aside=True, place=place)
            case "llm.request" if row.get("kind") == "loop":
                self._model = text_of(row.get("model"))
                yield About(model=self._model)
            case "usage.record":
                self._usage = _usage(object_of(row.get("usage")))
            case "context.append_message":
                yield from self._message(object_of(row.get("message")), place, at)
            case "context.append_loop_event":
                yield from self._event(object_of(row.get("event")), place, at)
            case "full_compaction.begin":
                self._trigger = "manual" if row.get("source") == "manual" else "auto"
            case "context.apply_compaction":
                yield self._compacted(row, place, at)
            case "context.clear":
                yield Compacted(summary="", id=place, at=at, place=place)
                self._seen = [(id, False) for id, _ in self._seen]
            case "context.undo":
                self._undo(count_of(row.get("count")))
            case str():
                return
            case _:
                yield Unreadable(place, "is no record with a type")

    def _message(self, row: Mapping[str, Any], place: str, at: float) -> Iterator[Record]:
        if row.get("role") != "user":
            return
        kind = object_of(row.get("origin")).get("kind")
        content = joined([_part(block) for block in objects_of(row.get("content"))])
        said = printed(content) if kind == "shell_command" else person(content, "typed" if kind == "user" else "nca")
        if said is not None:
            yield self._said(said, place, at, is_prompt=kind == "user")

    def _event(self, event: Mapping[str, Any], place: str, at: float) -> Iterator[Record]:
        match event.get("type"):
            case "step.begin":
                yield from self._answered(place, at)
                self._usage = None
            case "content.part":
                part = object_of(event.get("part"))
                if part.get("type") == "think":
                    self._thoughts.append(text_of(part.get("think")))
                else:
                    self._parts.append(_part(part))
            case "tool.call":
                self._calls.append(tool_call(event.get("toolCallId"), event.get("name"), event.get("args")))
                self._names[name_of(event.get("toolCallId"))] = text_of(event.get("name"))
            case "tool.result":
                yield from self._answered(place, at)
                call_id, result = name_of(event.get("toolCallId")), object_of(event.get("result"))
                given = result.get("output")
                content = joined([_part(one) for one in objects_of(given)]) if isinstance(given, list) else shown(given)
                is_error = result.get("isError") is True
                yield self._said(
                    tool_result(call_id, self._names.get(call_id, ""), content, is_error=is_error), f"{place}r", at
                )
            case "step.end":
                yield from self._answered(place, at)

    def _answered(self, place: str, at: float) -> Iterator[Record]:
        """The answer whose parts were read: it is whole where its step ends or a first result comes."""
        message = answer(self._parts, self._calls, "\n\n".join(filter(None, self._thoughts)))
        self._parts, self._calls, self._thoughts = [], [], []
        if message is not None:
            usage, self._usage = self._usage, None
            yield self._said(message, place, at, usage=usage)

    def _said(
        self, message: Message, place: str, at: float, *, is_prompt: bool = False, usage: Usage | None = None
    ) -> Said:
        self._seen.append((place, is_prompt))
        model = self._model if message.role == "assistant" else ""
        return Said(message=message, id=place, at=at, usage=usage, model=model, place=place.removesuffix("r"))

    def _compacted(self, row: Mapping[str, Any], place: str, at: float) -> Compacted:
        summary = text_of(row.get("summary"))
        compacted = Compacted(
            summary=summary,
            id=place,
            kept=tuple(id for id, is_prompt in self._seen if is_prompt),
            is_unreadable=not summary,
            trigger=self._trigger,
            tokens_before=count_of(row.get("tokensBefore")),
            tokens_after=count_of(row.get("tokensAfter")),
            at=at,
            place=place,
        )
        self._seen.append((place, False))
        return compacted

    def _undo(self, turns: int) -> None:
        while turns and self._seen:
            left, is_prompt = self._seen.pop()
            self._left.add(left)
            turns -= is_prompt


def _part(block: Mapping[str, Any]) -> Part | None:
    """A picture is a file beside the session, which is named, or stands here as an address."""
    if block.get("type") == "image_url":
        address = text_of(object_of(block.get("imageUrl") or block.get("image_url")).get("url"))
        return picture(address) if address.startswith(("data:", "http")) else TextPart(f"[image {address}]")
    return TextPart(text_of(block.get("text"))) if text_of(block.get("text")) else None


def _usage(row: Mapping[str, Any]) -> Usage | None:
    read, written = count_of(row.get("inputCacheRead")), count_of(row.get("inputCacheCreation"))
    prompt, completion = count_of(row.get("inputOther")) + read + written, count_of(row.get("output"))
    return Usage(prompt, completion, read, written) if prompt or completion else None
