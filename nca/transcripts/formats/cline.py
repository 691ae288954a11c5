"""Read tasks of Cline and Roo Code: Anthropic's messages in `api_conversation_history.json`, one folder for each task.

Cline leaves a range of messages out of its requests, which the list of tasks names. Roo Code marks its summary, and
what that stands for (cline/cline, src/core/storage; RooCodeInc/Roo-Code, src/core/condense).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from nca.messages import Message, Part, TextPart
from nca.safe_files import paths_below
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Reading, Record, facts
from nca.transcripts.formats.row import Row, list_of, parsed, row_of, rows_of, texts_of
from nca.transcripts.formats.source import Source, json_file, row_file

_HEADER = re.compile(r"\[(\w+)(?: for [^\n]*| completed)?\] Result:(?:\s+|\Z)")
"""The text before a result, in a block of its own or in the same one."""
_TYPED = re.compile(r"<(task|feedback|answer|user_message|user_input)(?: [^>\n]*)?>\n?(.*?)\n?</\1>", re.DOTALL)
_ASKED = (
    *("ask_followup_question", "attempt_completion", "plan_mode_respond", "plan_mode_response"),
    *("condense", "new_task", "report_bug"),
)
"""Tools with the person's answer as result."""
_ANSWERED = re.compile(
    r"(?:The user (?:denied|approved) this (?:operation|edit)|User denied the tool execution)\b[^\n]*\n"
    r"(?:The user provided[^\n]*\n)?(?=<feedback>)"
)
"""The beginning of a call's result with the person's answer in it, if no block of its own holds the answer."""
_RUNNING = "Command is still running in the user's terminal"
_FEEDBACK = re.compile(r"\n\nThe user provided the following feedback:\n(?=<feedback>)")
_MENTIONED = re.compile(
    r"\s*<(file_content|folder_content|url_content|git_commit|git_working_state|workspace_diagnostics|terminal_output)"
    r'(?: (?:path|url|hash)="([^"\n]*)")?[^>\n]*>\n(.*?)\n</\1>',
    re.DOTALL,
)
_ADDED = re.compile(
    r"\s*<(environment_details|mode_notice|hook_context|explicit_instructions|system-reminder|detected_changes)\b"
)
_STATUSES = ("denied", "approved", "guidance")
FILE_NAME = "api_conversation_history.json"
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_REPLACED = ("condenseParent", "truncationParent")
_SHOWN = "ui_messages.json"
"""The person's view of the task, beside the model's messages."""
_OF_PROGRAM = ("system", "status")
"""The display roles of messages that are for the model only."""


class Cline(Format):
    def knows(self, source: Source) -> bool:
        """By its name: inside it is a list of Anthropic's messages, which nca reads anyway."""
        return source.path is not None and source.path.name == FILE_NAME and source.head.lstrip()[:1] == b"["

    def about(self, source: Source) -> About:
        return facts(self.name, _task(source))

    def records(self, source: Source, key: str) -> Iterator[Record]:
        left_out = _range(_task(source))
        names: dict[str, str] = {}
        known = _typed(source)
        kept: list[str] = []
        reading = Reading()
        for number, given in enumerate(list_of(source.value())):
            row = row_of(given)
            reading.id = reading.place = f"message {number + 1}"
            reading.at = row.seconds("ts")
            if row.get("isSummary") is True:
                yield reading.summarized(texts_of(make.blocks_of(row.get("content"))), kept=tuple(kept))
                continue
            messages = _messages(row, names, known)
            if messages is None:
                yield reading.unreadable("is a message without a known role")
                continue
            if not any(row.get(key) for key in _REPLACED):
                kept.append(reading.id)
            yield from reading.said(*messages, model=row.text("modelInfo", "modelId"))
            if left_out is not None and number == left_out[1]:
                yield reading.compacted(kept=tuple(f"message {one + 1}" for one in range(left_out[0])))

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        places = [home / ".cline" / "data"]
        for base in (home / ".config", home / "Library" / "Application Support"):
            places += [
                base / editor / "User" / "globalStorage" / extension for editor in _EDITORS for extension in _EXTENSIONS
            ]
        return [path for place in places for path in sorted(paths_below(place, f"tasks/*/{FILE_NAME}"))]


FORMAT = Cline("cline")


def _said(known: Collection[str] | None, parts: list[Part]) -> Message:
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    # An older or a newer version may send the person's words as they are.
    has_marks = any(_HEADER.match(text) or _ADDED.match(text) or _begins(text) for text in texts)
    return make.with_authors(make.user_message(_with_sources(parts, known))) if has_marks else make.user_message(parts)


def _begins(text: str) -> re.Match[str] | None:
    """The person's words in a block of their own: in tags, after at most one line of the program."""
    found = _TYPED.search(text)
    return found if found and "\n" not in text[: found.start()].strip() else None


def _with_sources(parts: Iterable[Part], known: Collection[str] | None) -> Iterator[Part]:
    tool = ""
    for part in parts:
        if not isinstance(part, TextPart):
            yield part
            continue
        text = part.text
        if header := _HEADER.match(text):
            tool, text = header[1], text[header.end() :]
            yield make.text_by("tool", header[0].rstrip())
            if not text:
                continue
        if _ADDED.match(text):
            yield make.text_by("nca", text)
        elif tool and tool not in _ASKED:
            yield from _in_result(text, known) or (make.text_by("tool", text),)
        else:
            yield from _of_person(text)
        tool = ""


def _of_person(text: str) -> Iterator[Part]:
    """The words in a block of the person's, what the program put around them, and what they mention."""
    place = 0
    if found := _begins(text):
        yield make.text_by("nca", text[: found.start(2)].strip())
        yield make.text_by("typed", found[2].strip())
        yield make.text_by("nca", text[found.end(2) : found.end()].strip())
        place = found.end()
        while mentioned := _MENTIONED.match(text, place):
            yield make.attached(mentioned[2] or mentioned[1], mentioned[3])
            place = mentioned.end()
    if rest := text[place:].strip():
        yield make.text_by("nca", rest)


def _in_result(text: str, known: Collection[str] | None) -> tuple[Part, ...]:
    """A result that the person's word about the call is in; empty for any other."""
    begin = _ANSWERED.match(text) or (_FEEDBACK.search(text) if text.startswith(_RUNNING) else None)
    found = _TYPED.match(text, begin.end()) if begin else None
    if found is None or not _is_known(found[2], known):
        return ()
    around = (make.text_by("tool", text[: found.start(2)].strip()), make.text_by("typed", found[2].strip()))
    return (*around, make.text_by("tool", text[found.end(2) :].strip()))


def _with_answer(result: Message, known: Collection[str] | None) -> Message:
    """A result with a call's id, and in it what the person typed about the call."""
    text = result.content
    if not isinstance(text, str):
        return result
    if result.name in _ASKED and (found := _begins(text)):
        lead, typed, rest = text[: found.start(2)], found[2], text[found.end(2) :]
    elif parts := _in_result(text, known):
        lead, typed, rest = (part.text for part in parts if isinstance(part, TextPart))
    else:
        first, _, rest = text.partition("\n")
        row = Row(row_of(parsed(first)) if first.startswith("{") else {})
        typed = row.text("feedback")
        row.pop("feedback", None)
        if row.get("status") not in _STATUSES or not typed or not _is_known(typed, known):
            return result
        lead = make.as_json(row)
    return msgspec.structs.replace(result, content=make.typed_after(lead, typed, rest))


def _is_known(typed: str, known: Collection[str] | None) -> bool:
    return bool(typed.strip()) and (known is None or typed.strip() in known)


def _task(source: Source) -> Row:
    """The task's entry: Roo Code has it beside the messages, Cline in one list of all tasks."""
    if source.path is None:
        return Row()
    folder = source.path.parent
    beside = row_file(folder / "history_item.json")
    listed = [] if beside else rows_of(json_file(folder.parent.parent / "state" / "taskHistory.json"))
    return beside or next((one for one in listed if one.get("id") == folder.name), Row())


def _range(task: Row) -> tuple[int, int] | None:
    """The first and the last message, from 0, that Cline leaves out."""
    given = list_of(task.get("conversationHistoryDeletedRange"))
    if len(given) == 2 and all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        return (given[0], given[1]) if 0 <= given[0] <= given[1] else None
    return None


def _typed(source: Source) -> frozenset[str] | None:
    """The person's messages while the task ran, from the file beside it; None if there is none."""
    rows = json_file(source.path.with_name(_SHOWN)) if source.path else None
    if not isinstance(rows, list):
        return None
    return frozenset(row.text("text").strip() for row in rows_of(rows) if row.get("say") == "user_feedback")


def _messages(row: Row, names: dict[str, str], known: frozenset[str] | None) -> list[Message] | None:
    blocks = [_block(block) for block in make.blocks_of(row.get("content"))]
    if row.get("role") == "user":
        if row.text("metadata", "displayRole") in _OF_PROGRAM:
            return [make.user_message(map(make.part_of, blocks), source="nca")] if blocks else []
        messages = make.user_messages(blocks, names, partial(_said, known))
        return [_with_answer(message, known) if message.role == "tool" else message for message in messages]
    if row.get("role") != "assistant":
        return None
    message = make.answer_message(blocks, row.text("modelInfo", "modelId"))
    names.update((call.id, call.name) for call in message.tool_calls)
    return [message] if message.content or message.tool_calls or message.reasoning else []


def _block(block: Row) -> Row:
    """Roo Code stores thoughts under a type of its own."""
    if block.get("type") != "reasoning":
        return block
    return Row(type="thinking", thinking=block.get("text"))
