"""Whose words a user's message of Cline or Roo Code holds.

Both send results, the state of the editor and the person's words as blocks of text in one message. The person's stand
in tags of their own, behind a line of the program's; a result stands behind a line that names its call
(cline/cline, src/core/prompts/responses.ts and src/core/task; RooCodeInc/Roo-Code, the same paths).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from nca.messages import Message, Part, TextPart
from nca.transcripts.formats.authors import attached, text_by, typed_after, with_authors
from nca.transcripts.formats.blocks import part_of, tool_message, user_message
from nca.transcripts.formats.building import as_json, parsed
from nca.transcripts.formats.values import object_of, text_of

_HEADER = re.compile(r"\[(\w+)(?: for [^\n]*| completed)?\] Result:(?:\s+|\Z)")
"""What stands before a result, in a block of its own or in the same one."""
_TYPED = re.compile(r"<(task|feedback|answer|user_message|user_input)(?: [^>\n]*)?>\n?(.*?)\n?</\1>", re.DOTALL)
_ASKED = (
    *("ask_followup_question", "attempt_completion", "plan_mode_respond", "plan_mode_response"),
    *("condense", "new_task", "report_bug"),
)
"""Tools whose result is what the person answered."""
_ANSWERED = re.compile(
    r"(?:The user (?:denied|approved) this (?:operation|edit)|User denied the tool execution)\b[^\n]*\n"
    r"(?:The user provided[^\n]*\n)?(?=<feedback>)"
)
"""How the result of a call begins that the person answered with a word, where no block of its own holds that."""
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


def messages_of(
    blocks: Iterable[Mapping[str, Any]], names: Mapping[str, str], known: Collection[str] | None
) -> list[Message]:
    """The messages of a user's row: each result with a call's id is one, and so is what stands between them.

    names  the tools by the ids of their calls
    known  what the person typed, as the agent shows it; None if that is not known
    """
    found: list[Message] = []
    said: list[Mapping[str, Any]] = []
    for block in blocks:
        answered = text_of(block.get("tool_use_id"))
        if block.get("type") != "tool_result" or not answered:
            said.append(block)
            continue
        if said:
            found.append(_said(said, known))
            said = []
        name = names.get(answered, "")
        result = tool_message(block.get("content"), answered, name, is_error=bool(block.get("is_error")))
        found.append(_with_answer(result, known))
    return [*found, _said(said, known)] if said else found


def _said(blocks: list[Mapping[str, Any]], known: Collection[str] | None) -> Message:
    parts = [part_of(block) for block in blocks]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    # An older or a newer version may send the person's words as they are.
    has_marks = any(_HEADER.match(text) or _ADDED.match(text) or _begins(text) for text in texts)
    return with_authors(user_message(_told_apart(parts, known))) if has_marks else user_message(parts)


def _begins(text: str) -> re.Match[str] | None:
    """The person's words in a block of their own: in tags, behind a line of the program's at most."""
    found = _TYPED.search(text)
    return found if found and "\n" not in text[: found.start()].strip() else None


def _told_apart(parts: Iterable[Part], known: Collection[str] | None) -> Iterator[Part]:
    tool = ""
    for part in parts:
        if not isinstance(part, TextPart):
            yield part
            continue
        text = part.text
        if header := _HEADER.match(text):
            tool, text = header[1], text[header.end() :]
            yield text_by("tool", header[0].rstrip())
            if not text:
                continue
        if _ADDED.match(text):
            yield text_by("nca", text)
        elif tool and tool not in _ASKED:
            yield from _in_result(text, known) or (text_by("tool", text),)
        else:
            yield from _of_person(text)
        tool = ""


def _of_person(text: str) -> Iterator[Part]:
    """The words in a block of the person's, what the program put around them, and what they mention."""
    place = 0
    if found := _begins(text):
        yield text_by("nca", text[: found.start(2)].strip())
        yield text_by("typed", found[2].strip())
        yield text_by("nca", text[found.end(2) : found.end()].strip())
        place = found.end()
        while mentioned := _MENTIONED.match(text, place):
            yield attached(mentioned[2] or mentioned[1], mentioned[3])
            place = mentioned.end()
    if rest := text[place:].strip():
        yield text_by("nca", rest)


def _in_result(text: str, known: Collection[str] | None) -> tuple[Part, ...]:
    """A result that the person's word about the call is in; empty for any other."""
    begin = _ANSWERED.match(text) or (_FEEDBACK.search(text) if text.startswith(_RUNNING) else None)
    found = _TYPED.match(text, begin.end()) if begin else None
    if found is None or not _is_known(found[2], known):
        return ()
    around = (text_by("tool", text[: found.start(2)].strip()), text_by("typed", found[2].strip()))
    return (*around, text_by("tool", text[found.end(2) :].strip()))


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
        row = object_of(parsed(first)) if first.startswith("{") else {}
        typed = text_of(row.pop("feedback", ""))
        if row.get("status") not in _STATUSES or not typed or not _is_known(typed, known):
            return result
        lead = as_json(row)
    return Message(
        "tool",
        typed_after(lead, typed, rest),
        tool_call_id=result.tool_call_id,
        name=result.name,
        is_error=result.is_error,
    )


def _is_known(typed: str, known: Collection[str] | None) -> bool:
    return bool(typed.strip()) and (known is None or typed.strip() in known)
