"""What an image, a document and an audio clip take: as the dearest provider counts."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context import media
from nca.context.media import MOST_IMAGE_TOKENS, PAGE_TOKENS, image_tokens, media_tokens
from nca.images import image_part
from nca.messages import MediaPart, Message, TextPart
from nca.vocabulary import count
from tests.context.samples import some

sides = st.integers(1, 8_000)


def png(width: int, height: int, more: int = 0) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\0" * more


def file(raw: bytes) -> MediaPart:
    return MediaPart("document", {"type": "file", "file": {"file_data": base64.b64encode(raw).decode()}})


def clip(raw: bytes) -> MediaPart:
    data = {"data": base64.b64encode(raw).decode(), "format": "wav"}
    return MediaPart("audio", {"type": "input_audio", "input_audio": data})


@pytest.mark.parametrize(("width", "height", "tokens"), [(200, 200, 54), (1_000, 1_000, 1_334), (1_092, 1_092, 1_534)])
def test_claude_counts_pixels(width: int, height: int, tokens: int) -> None:
    """The table of "Vision"; 1,092 × 1,092 is scaled to 1.15 megapixels."""
    assert media._claude(width, height) == pytest.approx(tokens, abs=60)


@pytest.mark.parametrize(("width", "height", "tokens"), [(1_024, 1_024, 765), (2_048, 4_096, 1_105), (512, 512, 255)])
def test_gpt_4o_counts_tiles(width: int, height: int, tokens: int) -> None:
    assert media._tiles(width, height) == tokens


@pytest.mark.parametrize(("width", "height", "patches"), [(1_024, 1_024, 1_024), (1_800, 2_400, 1_536)])
def test_the_small_models_of_openai_count_patches(width: int, height: int, patches: int) -> None:
    assert media._patches(width, height) == -(-patches * 162 // 100)


@pytest.mark.parametrize(("width", "height", "tokens"), [(384, 384, 258), (960, 540, 516), (768, 769, 516)])
def test_gemini_counts_tiles_of_its_own(width: int, height: int, tokens: int) -> None:
    assert media._gemini(width, height) == tokens


@some
@given(sides, sides)
def test_no_provider_counts_more_than_what_is_counted(width: int, height: int) -> None:
    counts = [each(width, height) for each in (media._claude, media._tiles, media._patches, media._gemini)]
    part = image_part(png(width, height), "image/png")
    assert media_tokens(part) == image_tokens(width, height) == max(counts)
    assert 255 <= max(counts) <= MOST_IMAGE_TOKENS


def test_the_size_is_found_behind_a_long_preamble() -> None:
    preamble = b"\xff\xe1\xff\xf0" + b"\0" * 0xFFEE
    jpeg = b"\xff\xd8" + preamble * 2 + b"\xff\xc0\0\x11\x08" + struct.pack(">HH", 300, 400) + b"\x03" * 20
    assert media_tokens(image_part(jpeg, "image/jpeg")) == image_tokens(400, 300)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"image_url": {"url": "data:image/png;base64,A"}},
        {"image_url": {"url": "data:image/png;base64,\u00e9\u00e9\u00e9\u00e9"}},
        {"source": {"type": "file", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}},
    ],
)
def test_an_image_of_unknown_size_is_counted_as_a_large_one(payload: dict[str, Any]) -> None:
    assert media_tokens(MediaPart("image", payload)) == MOST_IMAGE_TOKENS


@pytest.mark.parametrize("pages", [1, 7])
def test_a_document_counts_its_pages(pages: int) -> None:
    raw = b"%PDF-1.7\n\xe2\xe3<</Type /Pages>>" + b"<</Type/Page /Parent 1 0 R>>\n" * pages
    assert media_tokens(file(raw)) == pages * PAGE_TOKENS
    assert media_tokens(file(b"%PDF-1.7\n\xe2\xe3" + b"\0" * 120_000)) == 3 * PAGE_TOKENS
    assert media_tokens(file(b"A report. " * 9_000)) == count("A report. " * 9_000)
    assert media_tokens(MediaPart("document", {})) == PAGE_TOKENS


def test_base64_in_lines_and_in_the_alphabet_of_addresses_is_base64_too() -> None:
    raw = b"%PDF-1.7\n\xe2\xe3\xff\xff" + b"<</Type/Page /Parent 1 0 R>>\n" * 9
    for data in (base64.encodebytes(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
        payload = {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{data}"}}
        assert media_tokens(MediaPart("document", payload)) == 9 * PAGE_TOKENS


@pytest.mark.parametrize("word", ["word ", "Wörter, ", "a.b "])
def test_what_is_not_base64_is_text(word: str) -> None:
    found = MediaPart("document", {"type": "web_search_result", "content": [{"text": word * 9_000}, {"text": "more"}]})
    assert media_tokens(found) >= count(word * 9_000)


def test_a_clip_counts_its_seconds() -> None:
    header = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 16_000, 2, 16)
    assert media_tokens(clip(header + b"\0" * (160_000 - len(header)))) == 320
    assert media_tokens(clip(b"ID3" + b"\0" * 39_997)) == 320
    assert media_tokens(clip(header[:20])) >= 1
    assert media_tokens(MediaPart("audio", {})) == 1


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        ({}, ""),
        ({"image_url": {"url": "data:image/png;base64,AAAA"}}, ""),
        ({"image_url": "https://example.org/a/plan.png?x=1"}, "plan.png"),
        ({"source": {"type": "url", "url": "https://example.org/plan.png/"}}, "plan.png"),
        ({"title": "The\nplan", "source": {"type": "base64", "data": "AAAA"}}, "The plan"),
        ({"file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, "plan.pdf"),
        ({"file_url": 3, "image_url": ["x"]}, ""),
    ],
)
def test_a_file_has_the_name_that_its_part_gives(payload: dict[str, Any], name: str) -> None:
    assert MediaPart("image", payload).name == name


def test_a_picture_of_the_chat_has_the_name_before_it() -> None:
    part = image_part(png(2, 2), "image/png")
    parts = (TextPart("Look.", source="typed"), TextPart("[a.png]", source="nca"), part, part)
    assert Message("user", parts).told == "Look.\n[image: a.png]\n[image]"
