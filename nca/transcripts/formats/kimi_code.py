"""Read Kimi Code's sessions: `wire.jsonl` of each agent, with title and directory in the session's `state.json`.

A compaction keeps the person's messages; an undo takes back the newest ones and all since
(@moonshot-ai/kimi-code 2.1.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nca.messages import Message, TextPart, Usage
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Live, Reading, Record, StoredSession
from nca.transcripts.formats.row import Row, rows_of
from nca.transcripts.formats.source import Source, row_file

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
        found = self.folder(env, home).glob("sessions/*/*/agents/*/wire.jsonl")
        return (path for path in found if path.parent.name != _MAIN)


class _Reading(Reading):
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


FORMAT = KimiCode("kimi-code", _Reading)
