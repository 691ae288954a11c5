"""A prompt of the protocol as messages; and a loaded session's messages, sent to the client again."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from acp import helpers, schema

from nca.acp.tool_calls import CallIds, Outlet, edit_content, is_plan, output_content, plan_of, started
from nca.agent.mentions import Beside, name_in
from nca.agent.prompt_commands import find_prompts
from nca.context.file_reads import arguments_of
from nca.context.todo import newest_list
from nca.errors import UsageError
from nca.messages import MediaPart, Message, ToolCall, clean_text
from nca.terminal.input.line_kind import line_kind
from nca.terminal.render.event_lines import TOOL_CHARS
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.tools.tool import EditorFiles
from nca.words import Span, Words, part_of, stripped, text_of, words

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


Block = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
_NAME_CHARS = 200


@dataclass(slots=True)
class Prompt:
    """The content of a prompt.

    said         the person's text, with the names of what they put among it; an editor does not say what was typed
    is_command   the person typed a slash command
    attachments  files to attach
    beside       texts that go along as files would
    """

    said: Words = ()
    is_command: bool = False
    attachments: list[Path] = field(default_factory=list)
    beside: list[Beside] = field(default_factory=list)


def prompt_of(blocks: Sequence[Block], directory: Path, folder: Path, open_files: EditorFiles | None) -> Prompt:
    """Read a prompt. Blocks: it may ask the editor for texts.

    directory   of the session
    folder      where images of the prompt are put
    open_files  the editor's, for text that is not saved
    Raises UsageError for what cannot be sent; then nothing is sent.
    """
    prompt = Prompt()
    pieces: list[Span] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                pieces += words(block.text, "foreign")
            case schema.ResourceContentBlock():
                pieces += words(_linked(block, directory, open_files, prompt), "attached")
            case schema.EmbeddedResourceContentBlock():
                pieces += words(_embedded(block, directory, folder, prompt), "attached")
            case schema.ImageContentBlock():
                pieces += words(_image(block.data, block.mime_type, folder, prompt), "attached")
            case _:
                raise UsageError("nca takes no audio.", advice="Nothing was sent.")
    prompt.said = stripped(tuple(pieces))
    # The protocol has slash commands as text; other parts of a message never begin one.
    if blocks and isinstance(blocks[0], schema.TextContentBlock):
        text = text_of(prompt.said)
        prompt.is_command = line_kind(words(text), partial(find_prompts, directory)) == "command"
        prompt.said = part_of(prompt.said, 1) if text.startswith("//") else prompt.said
    return prompt


def path_of(uri: str) -> Path | None:
    """The file that a `file:` address names; None for another address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost") or not path or "\0" in path:
        return None
    return Path(path)


def _linked(block: schema.ResourceContentBlock, directory: Path, open_files: EditorFiles | None, prompt: Prompt) -> str:
    """A link to a file attaches it, as the editor has it; any other is only named."""
    path = path_of(block.uri)
    label = one_line(block.title or block.name, _NAME_CHARS)
    if path is None:
        return f" [{label}]({one_line(block.uri)}) "
    name = name_in(path, directory)
    text = open_files.read(path).get(path) if open_files is not None and not os.path.isdir(path) else None
    if text is not None and not _is_saved(path, text):
        prompt.beside.append(Beside(name, clean_text(text), "attached"))
    elif os.path.exists(path):
        prompt.attachments.append(path)
    else:
        raise UsageError(f"{one_line(str(path))}: there is no such file.", advice="Nothing was sent.")
    return f" `{one_line(name)}`{_lines(block.uri)} "


def _embedded(block: schema.EmbeddedResourceContentBlock, directory: Path, folder: Path, prompt: Prompt) -> str:
    resource = block.resource
    path = path_of(resource.uri)
    name = name_in(path, directory) if path is not None else one_line(resource.uri, _NAME_CHARS)
    if isinstance(resource, schema.TextResourceContents):
        prompt.beside.append(Beside(f"{name}{_lines(resource.uri)}", clean_text(resource.text), "attached"))
        return f" `{one_line(name)}`{_lines(resource.uri)} "
    if resource.mime_type in _SUFFIXES:
        return _image(resource.blob, resource.mime_type, folder, prompt)
    from nca.tools.files.text_file import is_binary

    try:
        text = base64.b64decode(resource.blob, validate=True).decode("utf-8")
    except ValueError:
        text = "\0"
    if is_binary(text.encode()):
        raise UsageError(f"{name} is neither text nor an image.", advice="Nothing was sent.")
    prompt.beside.append(Beside(name, clean_text(text), "attached"))
    return f" `{one_line(name)}` "


def _image(data: str, kind: str, folder: Path, prompt: Prompt) -> str:
    """The image's kind, and whether the model can see it, are checked as for any attached file."""
    if kind not in _SUFFIXES:
        valid = ", ".join(_SUFFIXES)
        raise UsageError(f"An image of type {one_line(kind, 40)!r} cannot be sent; valid: {valid}.")
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        raise UsageError("An image is not valid base64.", advice="Nothing was sent.") from None
    path = folder / f"image-{len(prompt.attachments) + 1}{_SUFFIXES[kind]}"
    path.write_bytes(raw)
    prompt.attachments.append(path)
    return f" [{path.name}] "


def _lines(uri: str) -> str:
    """The lines that an address points to, such as `#L10:20`, as the client wrote them."""
    mark = one_line(uri.partition("#")[2], 40)
    return f" ({mark})" if mark else ""


def _is_saved(path: Path, text: str) -> bool:
    from nca.tools.files.text_file import says_the_same

    try:
        return says_the_same(path.read_text("utf-8", "replace"), text)
    except OSError:
        return False


_AT_A_TIME = 100
"""Messages that are told before others get their turn."""


async def replay(conversation: Conversation, outlet: Outlet, ids: CallIds) -> None:
    """The whole conversation, oldest first, without rewound messages and side questions."""
    entries = list(conversation.context.backwards())[::-1]
    calls: dict[str, ToolCall] = {}
    for number, entry in enumerate(entries):
        if number % _AT_A_TIME == 0:
            await asyncio.sleep(0)
        message = entry.message
        if message.role == "user" and not message.is_synthetic:
            for block in _blocks(message, conversation.directory):
                outlet.send(helpers.update_user_message(block))
        elif message.role == "assistant":
            outlet.think(to_terminal(message.reasoning))
            outlet.say(to_terminal(message.text))
            for call in message.tool_calls:
                if is_plan(call.name):
                    continue
                calls[call.id] = call
                title = one_line(conversation.toolbox.describe(call), TOOL_CHARS)
                outlet.send(started(call, ids.begin(call.id), title, conversation.directory))
        elif message.role == "tool" and (found := calls.pop(message.tool_call_id, None)) is not None:
            outlet.send(_ended(found, message, conversation.directory, ids))
    if (newest := newest_list(entries)) is not None:
        outlet.send(helpers.update_plan(plan_of(newest[1]) or []))


def _blocks(
    message: Message, directory: Path
) -> Iterator[schema.TextContentBlock | schema.ResourceContentBlock | schema.ImageContentBlock]:
    if message.text.strip():
        yield helpers.text_block(to_terminal(message.text))
    for attached in message.attachments:
        uri = (directory / attached.path).as_uri() if "\0" not in attached.path else attached.path
        yield schema.ResourceContentBlock(type="resource_link", name=one_line(attached.path), uri=uri)
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, MediaPart) and part.kind == "image" and (image := _shown_image(part)) is not None:
            yield image


def _shown_image(part: MediaPart) -> schema.ImageContentBlock | None:
    address = part.payload.get("image_url")
    url = address.get("url") if isinstance(address, dict) else None
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return schema.ImageContentBlock(
        type="image", data=data, mime_type=head.removeprefix("data:").removesuffix(";base64")
    )


def _ended(call: ToolCall, message: Message, directory: Path, ids: CallIds) -> schema.ToolCallProgress:
    changes = [] if message.is_error else edit_content(call.name, arguments_of(call), directory)
    status: schema.ToolCallStatus = "failed" if message.is_error else "completed"
    content = changes or output_content(message.text) or None
    return helpers.update_tool_call(ids.of(call.id), status=status, content=content)
