"""What `@` brings in beside text files: listings, images, and one clear line for everything else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nca.agent.mentions import mentioned, with_attachments
from nca.context.request import repair
from nca.context.rules.media import NOT_SHOWN, without_media
from nca.context.tokens import IMAGE_TOKENS
from nca.errors import UsageError
from nca.events import ErrorRaised
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.wire import message_to_dict
from tests.agent.test_conversation import Room

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14"
PICTURE = PNG + b"\0" * 100


def sent(text: str, directory: Path, room_tokens: int = 10_000, **options: Any) -> Message:
    return with_attachments(text, mentioned(text, directory), directory, room_tokens, **options)


def test_a_directory_is_its_listing(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("print()")
    message = sent("What is in @src/ and @src?", tmp_path)
    (part,) = message.attachments
    assert (part.path, part.text, part.is_cut) == ("src/", "a.py  7 bytes\ndeep/", False)
    assert message.text == "What is in @src/ and @src?"


def test_a_long_listing_is_bounded(tmp_path: Path) -> None:
    for number in range(700):
        (tmp_path / f"file-with-a-long-name-{number:04}").touch()
    (whole,) = sent("@.", tmp_path).attachments
    assert whole.path == "./"
    assert whole.text.endswith("[200 more entries are not shown]")
    (cut,) = sent("@.", tmp_path, 500).attachments
    assert cut.is_cut
    assert len(cut.text) < 2_000


def test_an_image_is_shown_whole_where_the_model_sees(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PICTURE)
    (tmp_path / "a.txt").write_text("text")
    message = sent("Look at @shot.png and @a.txt", tmp_path, can_see=True)
    text, attached, name, image = message_to_dict(message)["content"]
    assert text == {"type": "text", "text": "Look at @shot.png and @a.txt"}
    assert attached["text"] == '<file path="a.txt">\ntext\n</file>'
    assert name["text"] == "[image shot.png]"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert message.text == "Look at @shot.png and @a.txt"
    (hidden,) = repair([without_media(message)], "openai")
    assert NOT_SHOWN in str(message_to_dict(hidden))
    assert "image_url" not in str(message_to_dict(hidden))


def test_what_cannot_come_along_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PICTURE)
    (tmp_path / "broken.png").write_bytes(PNG + b"\0" * 100)
    (tmp_path / "huge.png").write_bytes(PNG + b"\0" * 5_000_001)
    (tmp_path / "data.bin").write_bytes(b"a\0b")
    os.mkfifo(tmp_path / "pipe.txt")
    for text, options, reason in (
        ("@shot.png", {}, "is an image .image/png., and the model takes none"),
        ("@huge.png", {"can_see": True}, "the most is 3,932,160"),
        ("@data.bin", {}, "is not a text file"),
        ("@pipe.txt", {}, "is not an ordinary file"),
        ("@gone.txt", {}, "there is no such file"),
    ):
        with pytest.raises(UsageError, match=reason) as caught:
            sent(text, tmp_path, **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no room for so many images"):
        sent("@shot.png", tmp_path, IMAGE_TOKENS - 1, can_see=True)


async def test_the_model_decides_whether_an_image_is_sent(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "shot.png").write_bytes(PICTURE)
    blind = room.open(["Never asked."])
    assert (await blind.send("See @shot.png")).reason == "failed"
    assert blind.entries == ()
    assert "takes none" in room.of(ErrorRaised)[0].message
    facts = ModelFacts(name="scripted/eyes", provider="scripted", window_tokens=20_000, can_see=True)
    seeing = room.open(["I see."], facts=facts)
    before = seeing.stats().used_tokens
    assert (await seeing.send("See @shot.png")).reason == "answered"
    assert "image_url" in str(seeing.model.requests[0].messages)  # type: ignore[attr-defined]
    assert seeing.stats().used_tokens - before < 2 * IMAGE_TOKENS
