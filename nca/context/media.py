"""Tokens of images, documents and audio clips.

Each provider counts an image in its own way. nca counts as the dearest of them does, so it never takes a request for
smaller than it is.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, sqrt
from typing import Any

from nca.images import image_size
from nca.messages import MediaPart
from nca.vocabulary import count

CLAUDE_EDGE, CLAUDE_PIXELS, CLAUDE_PIXELS_PER_TOKEN = 1_568, 1_150_000, 750
"""Anthropic, "Vision": an image is scaled to 1,568 pixels on its long edge and about 1.15 megapixels; width × height /
750 tokens."""
TILE, TILES_EDGE, TILES_SHORT_EDGE, TILE_TOKENS, TILES_BASE = 512, 2_048, 768, 170, 85
"""OpenAI, "Images and vision", GPT-4o and 4.1: scaled into a square of 2,048, then to 768 on the short edge; 170 tokens
a tile of 512 and 85 for the image."""
PATCH, MOST_PATCHES, PATCH_FACTOR = 32, 1_536, 1.62
"""The same page, GPT-4.1-mini and 5-mini: patches of 32 pixels, at most 1,536, times 1.62. The factor of nano is 2.46,
but its tokens are the cheapest, and its window the same."""
GEMINI_SMALL, GEMINI_TILE, GEMINI_TOKENS = 384, 768, 258
"""Google, "Image understanding": 258 tokens up to 384 pixels a side, else for each tile of 768."""
MOST_IMAGE_TOKENS = ceil(MOST_PATCHES * PATCH_FACTOR)
"""For an image of unknown size, such as one behind an address."""
PAGE_TOKENS = 3_000
"""Anthropic, "PDF support": 1,500 to 3,000 tokens a page."""
PAGE_BYTES = 50_000
"""Bytes per page of a document, if its pages cannot be found because they are compressed."""
AUDIO_TOKENS_PER_SECOND = 32
"""Google, "Audio understanding"; OpenAI's count is lower."""
AUDIO_BYTES_PER_SECOND = 4_000
"""Compressed speech of 32 kbit/s: a file of higher quality is counted too long, never too short."""

_HEAD_CHARS = 65_536
"""Base64 of an image's beginning, which has its size except for a long preamble."""
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_DATA_URL = re.compile(r"data:[^,]{0,200},")
_WAV_RATE = struct.Struct("<I")
_STANDARD = str.maketrans("-_", "+/")
"""To the alphabet of base64 from the one for addresses."""


def media_tokens(part: MediaPart) -> int:
    """Tokens of an image, a document or an audio clip."""
    data = _data(part.payload)
    match part.kind:
        case "image":
            return _image_tokens(data)
        case "document":
            return _document_tokens(raw) if (raw := _decoded(data)) else _text_tokens(part.payload)
        case "audio":
            return _audio_tokens(_decoded(data))


def _image_tokens(data: str) -> int:
    width, height = image_size(_decoded(data[:_HEAD_CHARS]))
    if not (width and height) and len(data) > _HEAD_CHARS:
        width, height = image_size(_decoded(data))
    return image_tokens(width, height) if width and height else MOST_IMAGE_TOKENS


def image_tokens(width: int, height: int) -> int:
    """Tokens of an image of so many pixels, as the dearest provider counts it."""
    return max(_claude(width, height), _tiles(width, height), _patches(width, height), _gemini(width, height))


def _claude(width: int, height: int) -> int:
    scale = min(1.0, CLAUDE_EDGE / max(width, height), sqrt(CLAUDE_PIXELS / (width * height)))
    return ceil(width * scale * height * scale / CLAUDE_PIXELS_PER_TOKEN)


def _tiles(width: int, height: int) -> int:
    scale = min(1.0, TILES_EDGE / max(width, height))
    scale = min(scale, TILES_SHORT_EDGE / min(width, height))
    across, down = (ceil(round(side * scale, 3) / TILE) for side in (width, height))
    return TILES_BASE + TILE_TOKENS * across * down


def _patches(width: int, height: int) -> int:
    return ceil(min(MOST_PATCHES, ceil(width / PATCH) * ceil(height / PATCH)) * PATCH_FACTOR)


def _gemini(width: int, height: int) -> int:
    if max(width, height) <= GEMINI_SMALL:
        return GEMINI_TOKENS
    # Large images are scaled down first; how far is not said, so no more tiles than a request to Claude would see.
    scale = min(1.0, 3 * GEMINI_TILE / max(width, height))
    return GEMINI_TOKENS * ceil(width * scale / GEMINI_TILE) * ceil(height * scale / GEMINI_TILE)


def _document_tokens(raw: bytes) -> int:
    with suppress(UnicodeDecodeError):
        return max(PAGE_TOKENS, count(raw.decode("utf-8")))
    return PAGE_TOKENS * (len(_PAGE.findall(raw)) or ceil(len(raw) / PAGE_BYTES))


def _text_tokens(payload: Any) -> int:
    """Of what holds no file but names one, or is a part of a type that nobody here knows."""
    return max(PAGE_TOKENS, sum(map(count, _texts(payload))))


def _audio_tokens(raw: bytes) -> int:
    seconds = len(raw) / AUDIO_BYTES_PER_SECOND
    if raw[:4] == b"RIFF" and raw[8:12] == b"WAVE" and raw[12:16] == b"fmt ":
        each_second: int = _WAV_RATE.unpack_from(raw.ljust(32, b"\0"), 28)[0]
        seconds = len(raw) / each_second if each_second else seconds
    return max(1, ceil(seconds * AUDIO_TOKENS_PER_SECOND))


def _data(payload: Any) -> str:
    """The longest text of a payload is its base64; "" if there is only an address or a name."""
    longest = max(_texts(payload), key=len, default="")
    if (start := _DATA_URL.match(longest)) is not None:
        return longest[start.end() :]
    return "" if "://" in longest[:40] else longest


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _decoded(data: str) -> bytes:
    """The decoded base64, in lines or not; b"" for any other text."""
    data = "".join(data.splitlines()).translate(_STANDARD)
    try:
        return base64.b64decode(data[: len(data) - len(data) % 4] or "", validate=True)
    except ValueError:
        return b""
