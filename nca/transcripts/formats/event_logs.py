"""Read the sessions of Copilot CLI and of Kimi Code, which keep a log of events.

Copilot's `events.jsonl` has the title in `workspace.yaml` beside it. A rewind takes its events out of the file, so all
of it is live. While Copilot summarizes in the background its model continues: what it says meanwhile stays, and so do
the person's messages, which Copilot writes above the summary (@github/copilot 1.0.102).

Kimi Code has a `wire.jsonl` for each agent, with title and directory in the session's `state.json`. A compaction keeps
the person's messages; an undo takes back the newest ones and all since (@moonshot-ai/kimi-code 2.1.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nca.messages import Message, Part, TextPart, Usage
from nca.safe_files import paths_below
from nca.tools.skill_places import front_fields
from nca.tools.tool import ToolError
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, Said, StoredSession, facts
from nca.transcripts.formats.row import Row, rows_of, text_of
from nca.transcripts.formats.source import Source, row_file, small_file
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


class _CopilotReading(Reading):
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


COPILOT = Copilot("copilot", _CopilotReading)


_MAIN = "main"


class KimiCode(Format):
    def knows(self, source: Source) -> bool:
        is_wire = source.first_row.get("type") == "metadata" and "protocol_version" in source.first_row
        return is_wire and any(row.get("type") in self.places.kinds for row in source.first_rows)

    def about(self, source: Source) -> About:
        """The facts in the session's folder, two above the agent's."""
        if source.path is None or len(source.path.parents) < 3:
            return About()
        folder = source.path.parents[2]
        state = row_file(folder / "state.json")
        is_main = source.path.parent.name == _MAIN
        return About(
            session=folder.name if is_main else f"{folder.name}/{source.path.parent.name}",
            title=state.text("title") if is_main else "",
            directory=state.text("cwd"),
            parent="" if is_main or not state else folder.name,
        )

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        about = self.about(source)
        return [self.stored(source, about, parent=about.parent)]

    def subagents(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        found = paths_below(self.folder(env, home), "sessions/*/*/agents/*/wire.jsonl")
        return (path for path in found if path.parent.name != _MAIN)


class _KimiReading(Reading):
    def __init__(self) -> None:
        self._seen: list[tuple[str, bool]] = []
        """The messages that the model still sees or that a summary covers; whether the person said each."""
        self._left: set[str] = set()
        self._model = self._trigger = ""
        self._usage: Usage | None = None
        self._answer = make.Blocks()

    def ended(self) -> Iterator[Record]:
        self.id, self.place, self.at = "end", "end", 0.0
        yield from self._answered()
        if self._left:
            yield Live(frozenset(id for id, _ in self._seen))

    def record(self, row: Row) -> Iterator[Record]:
        self.id, self.at = self.place, row.seconds("time")
        match row.get("type"):
            case "profile.bind":
                if prompt := row.text("systemPrompt"):
                    yield from self.said(Message("system", prompt), is_aside=True)
            case "llm.request" if row.get("kind") == "loop":
                self._model = row.text("model")
                yield About(model=self._model)
            case "usage.record":
                names = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
                self._usage = row.row("usage").usage(*names, adds_cache=True)
            case "context.append_message":
                yield from self._message(row.row("message"))
            case "context.append_loop_event":
                yield from self._event(row.row("event"))
            case "full_compaction.begin":
                self._trigger = "manual" if row.get("source") == "manual" else "auto"
            case "context.apply_compaction":
                yield self._compaction(row)
            case "context.clear":
                yield self.compacted()
                self._seen = [(id, False) for id, _ in self._seen]
            case "context.undo":
                self._undo(row.count("count"))
            case str():
                return
            case _:
                yield self.unreadable("is not a record with a type")

    def _message(self, row: Row) -> Iterator[Record]:
        if row.get("role") != "user":
            return
        kind = row.value("origin", "kind")
        content = _read(row.rows("content")).said
        said = make.person(content, "typed" if kind == "user" else "nca")
        if kind == "shell_command":
            said = make.printed(content)
        yield from self._sees(said, is_prompt=kind == "user")

    def _event(self, event: Row) -> Iterator[Record]:
        match event.get("type"):
            case "step.begin":
                yield from self._answered()
                self._usage = None
            case "content.part":
                _read([event.row("part")], self._answer)
            case "tool.call":
                self._answer.add(make.tool_call(event.get("toolCallId"), event.get("name"), event.get("args")))
            case "tool.result":
                yield from self._answered()
                result = event.row("result")
                given = result.get("output")
                content = _read(rows_of(given)).said if isinstance(given, list) else make.shown(given)
                is_error = result.get("isError") is True
                self.id = f"{self.place}r"
                yield from self._sees(make.tool_result(event.get("toolCallId"), "", content, is_error=is_error))
            case "step.end":
                yield from self._answered()

    def _answered(self) -> Iterator[Record]:
        """The answer of the parts read so far: it is whole once its step ends or a first result comes."""
        message, self._answer = self._answer.answer(), make.Blocks()
        if message is not None:
            usage, self._usage = self._usage, None
            yield from self._sees(message, usage=usage)

    def _sees(
        self, message: Message | None, *, is_prompt: bool = False, usage: Usage | None = None
    ) -> Iterator[Record]:
        if message is not None:
            self._seen.append((self.id, is_prompt))
            yield from self.said(message, usage=usage, model=self._model)

    def _compaction(self, row: Row) -> Record:
        kept = tuple(id for id, is_prompt in self._seen if is_prompt)
        self._seen.append((self.id, False))
        counts = {"tokens_before": row.count("tokensBefore"), "tokens_after": row.count("tokensAfter")}
        return self.summarized(row.text("summary"), kept=kept, trigger=self._trigger, **counts)

    def _undo(self, turns: int) -> None:
        while turns and self._seen:
            left, is_prompt = self._seen.pop()
            self._left.add(left)
            turns -= is_prompt


def _read(blocks: Iterable[Row], before: make.Blocks | None = None) -> make.Blocks:
    """The blocks behind those before. A picture is a file beside the session, which is named, or an address here."""
    found = before or make.Blocks()
    for block in blocks:
        match block.get("type"):
            case "think":
                found.thoughts.append(block.text("think"))
            case "image_url":
                address = (block.row("imageUrl") or block.row("image_url")).text("url")
                is_here = address.startswith(("data:", "http"))
                found.add(make.picture(address) if is_here else TextPart(f"[image {address}]"))
            case _:
                found.add(TextPart(block.text("text")))
    return found


KIMI_CODE = KimiCode("kimi-code", _KimiReading)
