"""Recognize images by their first bytes, check them against providers' limits, and encode them for a request."""

from __future__ import annotations

import base64

from nca.messages import MediaPart

MAX_IMAGE_BYTES = 5 * 1024 * 1024 * 3 // 4
"""Anthropic's limit for one image, 5 MiB of base64. It is the smallest among the large providers."""
MAX_IMAGE_PIXELS = 8_000
"""Anthropic's limit for an image's width and height."""
_JPEG_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_kind(raw: bytes) -> str:
    """The media type of an image that models accept; "" for everything else."""
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS if raw.startswith(start)), "")


def image_size(raw: bytes) -> tuple[int, int]:
    """Width and height in pixels, from the header; (0, 0) if it has none."""
    kind = image_kind(raw)
    if kind == "image/png" and raw[12:16] == b"IHDR":
        return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if kind == "image/gif":
        return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")
    if kind == "image/jpeg":
        return _jpeg_size(raw)
    return _webp_size(raw) if kind == "image/webp" else (0, 0)


def image_problem(raw: bytes) -> str:
    """Why a provider would refuse every request with this image; "" if nothing is wrong."""
    width, height = image_size(raw)
    if not (width and height):
        return "is broken"
    if max(width, height) > MAX_IMAGE_PIXELS:
        return f"is {width:,} by {height:,} pixels; at most {MAX_IMAGE_PIXELS:,}"
    return ""


def _jpeg_size(raw: bytes) -> tuple[int, int]:
    """The size in the first frame header, found by walking the segments by their lengths."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        if raw[at + 1] in _JPEG_FRAMES:
            return int.from_bytes(raw[at + 7 : at + 9], "big"), int.from_bytes(raw[at + 5 : at + 7], "big")
        at += 1 if raw[at + 1] == 0xFF else 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(raw: bytes) -> tuple[int, int]:
    match raw[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(raw[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(raw[26:28], "little") & 0x3FFF, int.from_bytes(raw[28:30], "little") & 0x3FFF
    return 0, 0


def image_part(raw: bytes, kind: str) -> MediaPart:
    """The image as a part of a request, in OpenAI's shape."""
    address = f"data:{kind};base64,{base64.b64encode(raw).decode()}"
    return MediaPart("image", {"type": "image_url", "image_url": {"url": address}})
