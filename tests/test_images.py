"""read_file on images: shown to models that accept images, one line for others."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.images import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, image_kind, image_problem, image_size
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


def _jpeg(width: int, height: int, before: bytes) -> bytes:
    frame = b"\xff\xc2\0\x11\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + before + frame + b"\3" * 6


def _lossless(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (width - 1 | height - 1 << 14 | 7 << 28).to_bytes(4, "little")


def _lossy(width: int, height: int) -> bytes:
    """The two highest bits of each number are a scale."""
    sizes = (width | 1 << 14).to_bytes(2, "little") + (height | 2 << 14).to_bytes(2, "little")
    return b"RIFF\0\0\0\0WEBPVP8 " + b"\7" * 7 + b"\x9d\x01\x2a" + sizes


SEGMENTS = st.lists(st.binary(max_size=40).map(lambda body: b"\xff\xe1" + (2 + len(body)).to_bytes(2, "big") + body))
FILL = st.integers(0, 3).map(lambda count: b"\xff" * count)


@given(st.integers(1, 16_383), st.integers(1, 16_383), SEGMENTS.map(b"".join), FILL)
def test_each_kind_tells_any_size_that_its_header_can_hold(width: int, height: int, before: bytes, fill: bytes) -> None:
    png = PNG[:16] + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    gif = b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little")
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    extended = b"RIFF\0\0\0\0WEBPVP8X" + b"\5" * 8 + canvas
    jpeg = _jpeg(width, height, before + fill)
    for raw in (png, gif, extended, jpeg, _lossless(width, height), _lossy(width, height)):
        assert image_size(raw) == (width, height)
        assert image_size(raw + b"\1" * 9) == (width, height)
        assert (image_problem(raw) == "") == (max(width, height) <= MAX_IMAGE_PIXELS)
    # A header that is cut off has no size, or the walk ends before it.
    assert image_size(jpeg[: jpeg.rindex(b"\xff\xc2") + 8]) == (0, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_the_largest_side_decides_and_none_may_be_missing(side: int) -> None:
    def png(length: int) -> bytes:
        lengths = [20, 20]
        lengths[side] = length
        return PNG[:16] + b"".join(one.to_bytes(4, "big") for one in lengths)

    assert image_problem(png(MAX_IMAGE_PIXELS)) == ""
    assert "at most 8,000" in image_problem(png(MAX_IMAGE_PIXELS + 1))
    assert image_problem(png(0)) == "is broken"


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
