"""Read Copilot CLI's sessions: `events.jsonl`, with the title in `workspace.yaml` beside it.

A rewind takes its events out of the file, so all of it is live. While Copilot summarizes in the background its model
continues: what it says meanwhile stays, and so do the person's messages, which Copilot writes above the summary
(@github/copilot 1.0.102).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from nca.messages import Message, Part, TextPart, Usage
from nca.tools.skill_places import front_fields
from nca.tools.tool import ToolError
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Reading, Record, Said, facts
from nca.transcripts.formats.row import Row, rows_of, text_of
from nca.transcripts.formats.source import Source, small_file
from nca.words import Source as Author

_WORKSPACE_BYTES = 64 * 1024


class Copilot(Format):
    def knows(self, source: Source) -> bool:
        return source.first_row.get("type") == "session.start" and "sessionId" in source.first_row.row("data")

    def about(self, source: Source) -> About:
        return About(directory=source.first_row.text("data", "context", "cwd"), title=_title(source))


def _title(source: Source) -> str:
    given = small_file(source.path.with_name("workspace.yaml"), _WORKSPACE_BYTES) if source.path else b""
    with suppress(ToolError):
        return text_of(front_fields(given.decode("utf-8", "replace")).get("name"))
    return ""


class _Reading(Reading):
    def __init__(self) -> None:
        self._asked: list[str] = []
        """The person's messages; `_since`: all messages since a compaction began. It keeps both."""
        self._since: list[str] | None = None
        self._calls: dict[tuple[str, str], Row] = {}
        """By the agent and the id of the call: those of subagents may be the same."""
        self._usage: dict[str, Usage] = {}
        self._assets: dict[str, Row] = {}
        self._prompts: dict[str, str] = {}

    def record(self, row: Row) -> Iterator[Record]:
        data = row.row("data")
        if not isinstance(row.get("type"), str) or not isinstance(row.get("data"), dict):
            yield self.unreadable("is not an event")
            return
        agent, usage = row.text("agentId"), None
        self.id, self.at = row.text("id") or self.place, row.seconds("timestamp")
        message: Message | None = None
        match row["type"]:
            case "session.start" | "session.resume" | "session.model_change" if not agent:
                yield facts("copilot", data)
            case "session.compaction_start" if not agent:
                self._since = []
            case "session.compaction_complete" if not agent and data.get("success") is not False:
                yield self._compaction(data)
            case "session.context_cleared" if not agent:
                self._asked = []
                yield self.compacted()
            case "session.usage_record":
                given = data.row("usage")
                # It comes before the answer that it belongs to.
                if reported := given.usage("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"):
                    self._usage[given.text("apiCallId")] = reported
            case "session.binary_asset":
                self._assets[data.text("assetId")] = data
            case "tool.execution_start" | "tool.user_requested":
                self._calls[agent, data.name("toolCallId")] = data
            case "system.message":
                yield from self._prompt(data.text("content"), agent)
            case "system.notification":
                message = make.person(data.text("content"), "nca")
            case "user.message":
                source: Author = "nca" if agent or data.get("source") else "typed"
                said = make.text_by(source, data.text("content"))
                message = make.person(make.joined([said, *self._media(data.get("attachments"))]))
                if message is not None and message.source != "nca":
                    self._asked.append(self.id)
            case "assistant.message":
                usage = self._usage.pop(data.text("apiCallId"), None)
                message = _answer(data) or (Message("assistant", "") if usage else None)
            case "tool.execution_complete":
                message = self._result(data, agent)
        if message is not None and self._since is not None and not agent:
            self._since.append(self.id)
        yield from self.said(message, usage=usage, model=data.text("model"), is_aside=bool(agent))

    def _compaction(self, data: Row) -> Record:
        since, self._since = self._since or [], None
        return self.summarized(
            data.text("summaryContent"),
            kept=tuple(dict.fromkeys([*self._asked, *since])),
            trigger="manual" if data.get("trigger") == "manual" else "auto",
            tokens_before=data.count("preCompactionTokens"),
            tokens_after=data.count("postCompactionTokens"),
        )

    def _prompt(self, text: str, agent: str) -> Iterator[Said]:
        """Copilot's own instructions, which it writes again when they have changed. They do not hold in nca."""
        if text and self._prompts.get(agent) != text:
            self._prompts[agent] = text
            yield from self.said(Message("system", text), is_aside=True)

    def _result(self, data: Row, agent: str) -> Message | None:
        """The result of a call, or the output of a command that the person ran, as the model was sent it."""
        call_id, result = data.name("toolCallId"), data.row("result")
        call = self._calls.get((agent, call_id), Row())
        text = result.text("content") or data.text("error", "message")
        code = data.count("shellExecution", "exitCode")
        if data.get("isUserRequested") is True:
            return make.printed(make.command_ran(call.value("arguments", "command"), text, code))
        content = make.joined([TextPart(text), *self._media(result.get("binaryResultsForLlm"))])
        failed = data.get("success") is False or code > 0
        return make.tool_result(call_id, call.get("toolName"), content, is_error=failed)

    def _media(self, given: Any) -> list[Part | None]:
        """Files that are named by their path alone are in the text."""
        found = [(one, self._assets.get(one.text("assetId"), one)) for one in rows_of(given)]
        return [make.media(asset.get("data"), one.get("mimeType"), one.get("displayName")) for one, asset in found]


def _answer(data: Row) -> Message | None:
    calls = [
        make.tool_call(one.get("toolCallId"), one.get("name"), one.get("arguments"))
        for one in data.rows("toolRequests")
    ]
    return make.answer([TextPart(data.text("content"))], calls, data.text("reasoningText"))


FORMAT = Copilot("copilot", _Reading)
