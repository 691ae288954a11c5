"""Convert a server's results to a tool outcome or to text. What is not text is described in a line."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nca.images import MAX_IMAGE_BYTES, image_kind, image_part
from nca.messages import MediaPart, clean_text
from nca.tools.tool import ToolOutcome

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_MOST_IMAGES = 8
_PROGRESS_CHARS = 200


def outcome_of(result: CallToolResult, *, can_see: bool) -> ToolOutcome:
    """The outcome of a call, with its images if the model takes images."""
    blocks = list(result.content)
    texts = [described(block) for block in blocks]
    if result.structured_content is not None and not any(block.type == "text" for block in blocks):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    images = [image for block in blocks if block.type == "image" and (image := _image(block.data))]
    media = tuple(images[:_MOST_IMAGES]) if can_see else ()
    text = "\n".join(texts) or "[the server returned nothing]"
    return ToolOutcome(text, is_error=result.is_error, media=media)


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


def _image(encoded: str) -> MediaPart | None:
    if len(encoded) > MAX_IMAGE_BYTES * 4 // 3:
        return None
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = image_kind(raw)
    return image_part(raw, kind) if kind else None


def progress_line(progress: float, total: float | None, message: str | None) -> str:
    """How far a call is, in one line: `3/10 reading`. The server's words are shortened."""
    count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    words = " ".join(clean_text((message or "")[:_PROGRESS_CHARS]).split())
    return f"{count} {words}".rstrip()
