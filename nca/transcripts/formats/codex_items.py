"""The items of Codex's rollouts, which are those of OpenAI's Responses API, as messages and calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nca.messages import MediaPart, Message, Part, TextPart, ToolCall
from nca.shapes.shaped import as_chat_message
from nca.transcripts.formats import building as make
from nca.transcripts.formats.row import Row, row_of, rows_of, text_of

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_CONTEXT = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|permissions|user_shell_command|skill|subagent_)"
    r"|# AGENTS\.md instructions for )"
)
"""How messages in the person's role begin that Codex wrote."""
_REQUEST = "\n## My request for Codex:\n"
"""The text that the editor's extension puts between its open files and the person's words."""
_EDITORS = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_FRAMES = re.compile(r"\s*</?image\b[^>]*>\s*")
"""The text that Codex puts before and after a picture."""
_ABOUT_CODEX = ("<environment_context>", "<permissions")
_EXIT_CODE = re.compile(r"(?:\A|\n)(?:Exit code:|Process exited with code) (\d+)")
_EXIT_CODE_WITHIN_CHARS = 400


def is_context(text: str) -> bool:
    """Whether Codex wrote a message of the person's role."""
    return _CONTEXT.match(text) is not None


def text_in(item: Row) -> str:
    """All text of an item's content."""
    content = item.get("content")
    if isinstance(content, str):
        return text_of(content)
    return "\n".join(part.text("text") for part in rows_of(content) if part.get("type") in _TEXTS)


def parts_of(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(text_of(content))] if content else []
    found: list[Part] = []
    for part in rows_of(content):
        kind, text = part.get("type"), part.get("text", part.get("refusal"))
        if isinstance(text, str):
            found.append(TextPart(text_of(text)))
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            found.append(MediaPart("image", dict(part)))
        else:
            found.append(TextPart(make.as_json(part)))
    return found


def is_about_codex(item: Row) -> bool:
    """Whether a message is a rule for Codex itself (its sandbox, its approvals), which would mislead another agent."""
    return item.get("role") != "user" or text_in(item).lstrip().startswith(_ABOUT_CODEX)


def said(item: Row) -> Message | None:
    """A message that is not an answer; None if it is empty."""
    parts = parts_of(item.get("content"))
    if not parts:
        return None
    if item.get("role") != "user":
        return as_chat_message(Message("system", tuple(parts)))
    return as_chat_message(Message("user", tuple(parts), source="nca" if is_context(text_in(item)) else ""))


def as_typed(message: Message, typed: str) -> Message | None:
    """The message with what the person typed as theirs; None if it is another one.

    typed  what an event of the rollout says that they sent: the same text without what frames pictures
    """
    content = message.content
    parts = (TextPart(content),) if isinstance(content, str) else content or ()
    texts = [part.text for part in parts if isinstance(part, TextPart) and not _FRAMES.fullmatch(part.text)]
    # How several texts are put together differs.
    own, sent = ("".join(text.split()) for text in (_request(typed), " ".join(map(_request, texts))))
    if message.source or not own or own != sent:
        return None
    found: list[Part] = []
    for part in parts:
        if not isinstance(part, TextPart):
            found.append(part)
        elif _FRAMES.fullmatch(part.text):
            found.append(make.text_by("nca", part.text.strip()))
        else:
            before = part.text[: len(part.text) - len(_request(part.text))].strip()
            found += [make.text_by("nca", before)] if before else []
            found.append(make.text_by("typed", _request(part.text)))
    return make.with_authors(msgspec.structs.replace(message, content=tuple(found)))


def _request(text: str) -> str:
    """The person's words, without the text that the editor's extension put before them."""
    before, marker, request = text.partition(_REQUEST)
    return request if marker and before.lstrip().startswith(_EDITORS) else text


def call(item: Row) -> ToolCall | None:
    """A tool call; None if it has no id."""
    match item.get("type"):
        case "custom_tool_call":
            arguments: Any = {"input": item.text("input")}
        case "local_shell_call":
            arguments = item.row("action")
        case _:
            arguments = item.get("arguments")
    return make.tool_call(item.first("call_id", "id"), item.text("name") or "shell", arguments)


def output(item: Row, names: Mapping[str, str]) -> Message | None:
    """A call's result. A rollout has no mark for errors: the exit code tells, if there is one."""
    answered = item.text("call_id")
    if not answered:
        return None
    given, is_error = item.get("output"), False
    if isinstance(given, dict):
        is_error = given.get("success") is False
        given = given.get("content", given.get("content_items"))
    if isinstance(given, str) and given.startswith("{"):
        given, is_error = _unwrapped(given)
    parts = parts_of(given)
    first = next((part.text for part in parts if isinstance(part, TextPart)), "")
    beginning = first[:_EXIT_CODE_WITHIN_CHARS]
    if "code" in beginning and (code := _EXIT_CODE.search(beginning)):
        is_error = is_error or int(code[1]) != 0
    return as_chat_message(make.tool_result(answered, names.get(answered), tuple(parts), is_error=is_error))


def _unwrapped(text: str) -> tuple[str, bool]:
    """The output of a command that older rollouts store as JSON with its exit code, and whether it failed."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text, False
    code = row_of(row_of(value).get("metadata")).get("exit_code")
    shown = row_of(value).get("output")
    return (shown, code not in (0, None)) if isinstance(shown, str) else (text, False)


def thought(item: Row) -> str:
    """The readable part of a reasoning item; most of it is encrypted."""
    texts = [part.text("text") for key in ("summary", "content") for part in rows_of(item.get(key))]
    return "\n\n".join(text for text in texts if text)
