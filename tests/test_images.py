"""read_file on images: shown to models that accept images, one line for others."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from nca.images import MAX_IMAGE_BYTES, image_kind, image_size
from nca.tools.files.read import ReadFile
from nca.tools.files.workspace import Workspace
from nca.tools.tool import ToolError

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (30).to_bytes(4, "big") + (20).to_bytes(4, "big")
IMAGES = {
    "image/png": [PNG],
    "image/jpeg": [b"\xff\xd8\xff\xe0\0\4ab\xff\xff\xc0\0\x11\x08\0\x14\0\x1e" + b"\0" * 9],
    "image/gif": [b"GIF89a\x1e\0\x14\0", b"GIF87a\x1e\0\x14\0"],
    "image/webp": [
        b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x1d\0\0\x13\0\0",
        b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (29 | 19 << 14).to_bytes(4, "little"),
        b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 7 + b"\x9d\x01\x2a" + b"\x1e\0\x14\0",
    ],
}


def test_a_sound_is_no_image_although_it_begins_as_one() -> None:
    assert image_kind(b"RIFF\0\0\0\0WAVEfmt ") == ""


def test_a_size_is_read_only_behind_the_name_of_its_header() -> None:
    assert image_size(PNG) == (30, 20)
    assert image_size(PNG.replace(b"IHDR", b"tEXt")) == (0, 0)


@pytest.mark.parametrize(("kind", "start"), [(kind, start) for kind, starts in IMAGES.items() for start in starts])
async def test_an_image_is_known_by_its_first_bytes(tmp_path: Path, kind: str, start: bytes) -> None:
    raw = start + b"\0" * 100
    (tmp_path / "picture.txt").write_bytes(raw)
    outcome = await ReadFile(Workspace(tmp_path), can_see=lambda: True).call("picture.txt")
    assert outcome.text == f"[picture.txt: {kind}, 30 by 20, {len(raw)} bytes; shown beside]"
    (part,) = outcome.media
    assert part.kind == "image"
    assert part.payload["image_url"]["url"] == f"data:{kind};base64,{base64.b64encode(raw).decode()}"
    with pytest.raises(ToolError, match=f"is an image .{kind}, {len(raw)} bytes., and the model takes none"):
        await ReadFile(Workspace(tmp_path)).call("picture.txt")


async def test_what_a_provider_would_refuse_is_not_sent(tmp_path: Path) -> None:
    tool = ReadFile(Workspace(tmp_path), can_see=lambda: True)
    broken = [
        *(PNG[:length] for length in range(12, len(PNG))),
        b"\xff\xd8\xff\xe0\0\0",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBPxxxx",
    ]
    for raw in broken:
        (tmp_path / "cut").write_bytes(raw)
        with pytest.raises(ToolError, match="the image cut is broken"):
            await tool.call("cut")
    (tmp_path / "wide.png").write_bytes(PNG[:16] + (8_001).to_bytes(4, "big") + PNG[20:])
    with pytest.raises(ToolError, match="is 8,001 by 20 pixels; at most 8,000"):
        await tool.call("wide.png")


async def test_a_large_image_and_what_only_looks_like_one(tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(PNG + b"\0" * MAX_IMAGE_BYTES)
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "binary.png").write_bytes(b"\0\1\2")
    tool = ReadFile(Workspace(tmp_path), can_see=lambda: True)
    with pytest.raises(ToolError, match="the most is"):
        await tool.call("large.png")
    with pytest.raises(ToolError, match="is a binary file"):
        await tool.call("binary.png")
    assert (await tool.call("text.png")).text == "no picture"
