"""Read Copilot CLI's sessions: `events.jsonl`, with the title in `workspace.yaml` beside it.

A rewind takes its events out of the file, so all of it is live. While Copilot summarizes in the background its model
goes on: what it says meanwhile stays, and so do the person's messages, which Copilot writes above the summary
(@github/copilot 1.0.102).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, Usage
from nca.safe_files import open_ordinary
from nca.tools.skill_places import front_fields
from nca.tools.tool import ToolError
from nca.transcripts.formats.building import (
    answer,
    command_ran,
    count_of,
    joined,
    media,
    name_of,
    object_of,
    objects_of,
    person,
    printed,
    read_rows,
    seconds_of,
    some_messages,
    text_by,
    text_of,
    tool_call,
    tool_result,
)
from nca.transcripts.formats.records import (
    About,
    Compacted,
    Record,
    Said,
    StoredSession,
    Unreadable,
    chosen_folder,
    stored,
)
from nca.transcripts.formats.source import Source
from nca.words import Source as Author

_WORKSPACE_BYTES = 64 * 1024


class Copilot:
    name = "copilot"
    title = "Copilot CLI"

    def knows(self, source: Source) -> bool:
        first = source.first_rows[:1]
        return any(row.get("type") == "session.start" and "sessionId" in object_of(row.get("data")) for row in first)

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        started = object_of(next(iter(source.first_rows), {}).get("data"))
        directory = text_of(object_of(started.get("context")).get("cwd"))
        return [stored(self.name, source, directory=directory, title=_title(source))]

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return some_messages(_Reading().records(source), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        folder = chosen_folder(env.get("COPILOT_HOME"), home) or home / ".copilot"
        return sorted((folder / "session-state").glob("*/events.jsonl"))


FORMAT = Copilot()


def _title(source: Source) -> str:
    if source.path is None:
        return ""
    with suppress(OSError, ValueError, ToolError), open_ordinary(source.path.with_name("workspace.yaml")) as file:
        return text_of(front_fields(file.read(_WORKSPACE_BYTES).decode("utf-8", "replace")).get("name"))
    return ""


class _Reading:
    def __init__(self) -> None:
        self._asked: list[str] = []
        """What the person said; `_since`: all that was said since a compaction began. It keeps both."""
        self._since: list[str] | None = None
        self._calls: dict[tuple[str, str], dict[str, Any]] = {}
        """By the agent and the id of the call: those of subagents may be the same."""
        self._usage: dict[str, Usage] = {}
        self._assets: dict[str, dict[str, Any]] = {}
        self._prompts: dict[str, str] = {}

    def records(self, source: Source) -> Iterator[Record]:
        yield About(title=_title(source))
        yield from read_rows(source, self._record)

    def _record(self, event: Mapping[str, Any], place: str) -> Iterator[Record]:
        data = event.get("data")
        if not isinstance(event.get("type"), str) or not isinstance(data, dict):
            yield Unreadable(place, "is no event")
            return
        agent, record_id = text_of(event.get("agentId")), text_of(event.get("id")) or place
        at, usage = seconds_of(event.get("timestamp")), None
        message: Message | None = None
        match event["type"]:
            case "session.start" | "session.resume" | "session.model_change" if not agent:
                yield _about(data)
            case "session.compaction_start" if not agent:
                self._since = []
            case "session.compaction_complete" if not agent and data.get("success") is not False:
                yield self._compacted(data, record_id, at, place)
            case "session.context_cleared" if not agent:
                self._asked = []
                yield Compacted(summary="", id=record_id, at=at, place=place)
            case "session.usage_record":
                self._take_usage(object_of(data.get("usage")))
            case "session.binary_asset":
                self._assets[text_of(data.get("assetId"))] = data
            case "tool.execution_start" | "tool.user_requested":
                self._calls[agent, name_of(data.get("toolCallId"))] = data
            case "system.message":
                yield from self._prompt(text_of(data.get("content")), agent, place)
            case "system.notification":
                message = person(text_of(data.get("content")), "nca")
            case "user.message":
                message = self._asked_by(data, "nca" if agent or data.get("source") else "typed")
                if message is not None and message.source != "nca":
                    self._asked.append(record_id)
            case "assistant.message":
                usage = self._usage.pop(text_of(data.get("apiCallId")), None)
                message = _answer(data) or (Message("assistant", "") if usage else None)
            case "tool.execution_complete":
                message = self._result(data, agent)
        if message is None:
            return
        if self._since is not None and not agent:
            self._since.append(record_id)
        model = text_of(data.get("model")) if message.role == "assistant" else ""
        yield Said(message=message, id=record_id, at=at, usage=usage, model=model, is_aside=bool(agent), place=place)

    def _compacted(self, data: Mapping[str, Any], record_id: str, at: float, place: str) -> Compacted:
        summary = text_of(data.get("summaryContent"))
        since, self._since = self._since or [], None
        return Compacted(
            summary=summary,
            id=record_id,
            kept=tuple(dict.fromkeys([*self._asked, *since])),
            is_unreadable=not summary,
            trigger="manual" if data.get("trigger") == "manual" else "auto",
            tokens_before=count_of(data.get("preCompactionTokens")),
            tokens_after=count_of(data.get("postCompactionTokens")),
            at=at,
            place=place,
        )

    def _take_usage(self, given: dict[str, Any]) -> None:
        """It stands before the answer that it belongs to."""
        read, written = count_of(given.get("cacheReadTokens")), count_of(given.get("cacheWriteTokens"))
        prompt, completion = count_of(given.get("inputTokens")), count_of(given.get("outputTokens"))
        if prompt or completion:
            self._usage[text_of(given.get("apiCallId"))] = Usage(prompt, completion, read, written)

    def _prompt(self, text: str, agent: str, place: str) -> Iterator[Record]:
        """Copilot's own instructions, which it writes again when they have changed. They do not hold in nca."""
        if text and self._prompts.get(agent) != text:
            self._prompts[agent] = text
            yield Said(message=Message("system", text), is_aside=True, place=place)

    def _asked_by(self, data: Mapping[str, Any], source: Author) -> Message | None:
        parts: list[Part | None] = [text_by(source, text_of(data.get("content")))]
        return person(joined([*parts, *self._media(data.get("attachments"))]))

    def _result(self, data: Mapping[str, Any], agent: str) -> Message | None:
        """The result of a call, or the output of a command that the person ran, as the model was sent it."""
        call_id, result = name_of(data.get("toolCallId")), object_of(data.get("result"))
        call = self._calls.get((agent, call_id), {})
        text = text_of(result.get("content")) or text_of(object_of(data.get("error")).get("message"))
        code = count_of(object_of(data.get("shellExecution")).get("exitCode"))
        if data.get("isUserRequested") is True:
            return printed(command_ran(object_of(call.get("arguments")).get("command"), text, code))
        content = joined([TextPart(text), *self._media(result.get("binaryResultsForLlm"))])
        return tool_result(call_id, call.get("toolName"), content, is_error=data.get("success") is False or code > 0)

    def _media(self, given: Any) -> list[Part | None]:
        """Files that are named by their path alone are in the text."""
        held = [(one, self._assets.get(text_of(one.get("assetId")), one)) for one in objects_of(given)]
        return [media(asset.get("data"), one.get("mimeType"), one.get("displayName")) for one, asset in held]


def _about(data: Mapping[str, Any]) -> About:
    return About(
        session=text_of(data.get("sessionId")),
        directory=text_of(object_of(data.get("context")).get("cwd")),
        model=text_of(data.get("newModel")) or text_of(data.get("selectedModel")),
        version=text_of(data.get("copilotVersion")),
    )


def _answer(data: Mapping[str, Any]) -> Message | None:
    calls = [
        tool_call(one.get("toolCallId"), one.get("name"), one.get("arguments"))
        for one in objects_of(data.get("toolRequests"))
    ]
    return answer([TextPart(text_of(data.get("content")))], calls, text_of(data.get("reasoningText")))
