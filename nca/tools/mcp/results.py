"""Convert an MCP server's results to a tool outcome or to text, and read its lists: tools, prompts, resources.

Content other than text is described in a line. nca listens for changes of the lists.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nca.humanize import one_line
from nca.images import MAX_IMAGE_BYTES, image_kind, image_part, image_problem
from nca.messages import MediaPart, clean_text
from nca.tools.mcp.tool import Offer
from nca.tools.tool import ToolOutcome

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult, Prompt, Resource


_MOST_IMAGES = 8
_PROGRESS_CHARS = 200


def outcome_of(result: CallToolResult, *, can_see: bool) -> ToolOutcome:
    """The outcome of a call, with its images if the model takes images. One line says why an image does not come."""
    texts: list[str] = []
    images: list[MediaPart] = []
    for block in result.content:
        line, image = line_and_image(block, len(images), can_see=can_see)
        texts.append(line)
        images += [image] if image is not None else []
    if result.structured_content is not None and not any(block.type == "text" for block in result.content):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = "\n".join(texts) or "[the server returned nothing]"
    return ToolOutcome(text, is_error=result.is_error, media=tuple(images))


def line_and_image(block: Any, images: int, *, can_see: bool) -> tuple[str, MediaPart | None]:
    """A content block as text, and its image, if any. `images`: those before it. The text says why one is not shown."""
    line, encoded = described(block), _encoded_image(block)
    if encoded is None:
        return line, None
    why_not, image = _image(encoded, images, can_see=can_see)
    return f"{line[:-1]}; not shown: {why_not}]" if why_not else line, image


def _encoded_image(block: Any) -> str | None:
    """The image of a block, in base64; None of a block that is none."""
    if block.type == "image":
        return str(block.data)
    if block.type == "resource" and (block.resource.mime_type or "").startswith("image/"):
        return getattr(block.resource, "blob", None)
    return None


def _image(encoded: str, images: int, *, can_see: bool) -> tuple[str, MediaPart | None]:
    """The image after so many others, for the model; or why it cannot be shown."""
    if not can_see:
        return "this model takes no images", None
    if images >= _MOST_IMAGES:
        return f"more than {_MOST_IMAGES} images", None
    if len(encoded) > MAX_IMAGE_BYTES * 4 // 3:
        return f"larger than {MAX_IMAGE_BYTES:,} bytes", None
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return "it is not in base64", None
    kind = image_kind(raw)
    if not kind:
        return "it is not a PNG, JPEG, GIF or WebP", None
    problem = image_problem(raw)
    return (f"it {problem}", None) if problem else ("", image_part(raw, kind))


def described(block: Any) -> str:
    """A content block of the SDK, of any type, as text."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            return f"[resource {block.uri}: {block.description or block.name}]"
        case "resource":
            return text_of_resource([block.resource])
        case other:
            return f"[{other}]"


def text_of_resource(contents: Iterable[Any]) -> str:
    """The contents of a resource: text as it is, binary data described."""
    parts = []
    for one in contents:
        text = getattr(one, "text", None)
        kind = one.mime_type or "of no known type"
        parts.append(text if isinstance(text, str) else f"[resource {one.uri}, {kind}, {_size(one.blob)}]")
    return "\n".join(parts)


def _size(encoded: str) -> str:
    return f"{len(encoded) * 3 // 4:,} bytes"


def progress_line(progress: float, total: float | None, message: str | None) -> str:
    """How far a call is, in one line: `3/10 reading`. The server's words are shortened."""
    count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    words = one_line(clean_text((message or "")[: 10 * _PROGRESS_CHARS]), _PROGRESS_CHARS)
    return f"{count} {words}".rstrip()


ListKind = Literal["tools", "prompts", "resources"]
ALL_KINDS: frozenset[ListKind] = frozenset({"tools", "prompts", "resources"})
MOST_LISTED = 200
_MOST_PAGES = 50
_LISTEN_PAUSE_SECONDS = 30.0
"""Pause between two subscriptions, for a server that drops them again and again."""
CHANGED: dict[str, ListKind] = {f"notifications/{kind}/list_changed": kind for kind in ALL_KINDS}
"""The list that has changed, by the method of the notification that says so."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The lists as last read, each with at most MOST_LISTED entries."""

    offers: tuple[Offer, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()


async def read_lists(client: Client, kinds: Collection[ListKind], before: Listing) -> Listing:
    """Read these lists again and replace them in `before`. Raises the SDK's error if the tools cannot be listed."""
    from mcp import MCPError

    listing, offered = before, client.server_capabilities
    if "tools" in kinds:
        listing = replace(listing, offers=await _offers(client))
    for kind, ask in (("prompts", client.list_prompts), ("resources", client.list_resources)):
        if kind in kinds and getattr(offered, kind):
            # If such a list cannot be read, the server is used without it.
            with contextlib.suppress(MCPError):
                listing = replace(listing, **{kind: tuple(await _pages(ask, kind))})
    return listing


async def keep_listening(client: Client, on_listening: Callable[[], None]) -> None:
    """Subscribe to changes of the lists, as the protocol demands since 2026-07-28.

    The notifications reach the client's message handler, as in older protocols. `on_listening` is called whenever a
    subscription begins, because earlier changes are not reported. Returns if the server does not support it.
    """
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    offered = client.server_capabilities
    tells = {kind: bool(getattr(getattr(offered, kind), "list_changed", False)) for kind in ALL_KINDS}
    while any(tells.values()):
        with contextlib.suppress(SubscriptionLost):
            try:
                async with client.listen(
                    tools_list_changed=tells["tools"],
                    prompts_list_changed=tells["prompts"],
                    resources_list_changed=tells["resources"],
                ) as subscription:
                    on_listening()
                    async for _ in subscription:
                        pass
            except (ListenNotSupportedError, MCPError):
                return
        await asyncio.sleep(_LISTEN_PAUSE_SECONDS)


async def _offers(client: Client) -> tuple[Offer, ...]:
    return tuple(
        Offer(
            tool.name,
            tool.description or (tool.title or ""),
            tool.input_schema,
            is_read_only=bool(tool.annotations and tool.annotations.read_only_hint),
        )
        for tool in await _pages(client.list_tools, "tools")
        # One that refuses plain calls (protocol 2025-11-25) would cost tokens and an error.
        if tool.execution is None or tool.execution.task_support != "required"
    )


async def _pages(ask: Any, field: str) -> list[Any]:
    """All pages of a list, within the bounds."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]
