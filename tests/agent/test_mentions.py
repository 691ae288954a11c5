"""`@` mentions besides text files: folder listings, images, and one clear line for everything else."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from nca.agent.mentions import mentioned, with_attachments
from nca.context.media import image_tokens
from nca.context.request import repair
from nca.context.rules.messages import NOT_SHOWN, without_media
from nca.errors import UsageError
from nca.events import ErrorRaised, Notice
from nca.images import image_size
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.wire import message_to_dict
from nca.words import words
from tests.agent.test_conversation import Room, call

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14"
PICTURE = PNG + b"\0" * 100
IMAGE_TOKENS = image_tokens(*image_size(PICTURE))


def sent(text: str, directory: Path, room_tokens: int = 10_000, **options: Any) -> Message:
    return with_attachments(words(text), mentioned(words(text), directory), directory, room_tokens, **options)


def test_a_directory_is_its_listing(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("print()")
    message = sent("What is in @src/ and @src?", tmp_path)
    (part,) = message.attachments
    assert (part.path, part.text, part.is_cut) == ("src/", "a.py  7 bytes\ndeep/", False)
    assert message.text == "What is in @src/ and @src?"


async def test_what_goes_along_is_said_on_a_line_each(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "shot.png").write_bytes(PICTURE)
    names = [f"src/part_{number}.py" for number in range(1, 7)]
    for name in names:
        (tmp_path / name).write_text("print()\n" * 120)
    facts = ModelFacts(name="scripted/eyes", provider="scripted", window_tokens=20_000, can_see=True)
    chat = room.open(["Fine.", "Fine."], facts=facts)
    await chat.send("Compare @src/part_1.py, @src/ and @shot.png")
    text, listing, image = (event.message for event in room.of(Notice))
    assert text.startswith("Attached src/part_1.py · 120 lines · about ")
    assert listing.startswith("Attached src/ · 6 lines · about ")
    assert image == f"Attached image shot.png · about {IMAGE_TOKENS * 1.15:,.0f} tokens"
    await chat.send(" ".join(f"@{name}" for name in names))
    assert [event.message.partition(" · ")[0] for event in room.of(Notice)[3:]] == [
        *(f"Attached {name}" for name in names[:4]),
        "… and 2 more",
    ]


async def test_what_is_left_of_a_cut_file_is_priced_too(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "big.log").write_text("a line of the log\n" * 4_000)
    chat = room.open(["Fine."], facts=ModelFacts("scripted/model", "scripted", 8_000))
    await chat.send("Look at @big.log")
    (told,) = (event.message for event in room.of(Notice) if "big.log" in event.message)
    said = re.fullmatch(r"big\.log was cut to fit: ([\d,]+) of 72,000 bytes · about ([\d,]+) tokens", told)
    assert said is not None
    kept, tokens = (int(one.replace(",", "")) for one in said.groups())
    assert kept / 8 < tokens < kept / 2


@pytest.mark.parametrize("word", ["@~nobody-of-this-name/x", "@" + "x" * 300, "@circle", "@a\0b"])
def test_what_cannot_be_a_file_is_text(word: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    if word.startswith("@~"):
        with pytest.raises(UsageError, match="no such file"):
            mentioned(words(word), tmp_path)
    else:
        assert mentioned(words(f"{word} and so on"), tmp_path) == []


def test_a_name_may_end_like_a_sentence(tmp_path: Path) -> None:
    for name in ("what?", "what", "etc.", "plain.txt"):
        (tmp_path / name).write_text("x")
    assert mentioned(words('@"what?" and @"etc." and @plain.txt!'), tmp_path) == [
        tmp_path / "what?",
        tmp_path / "etc.",
        tmp_path / "plain.txt",
    ]
    assert mentioned(words("@what?"), tmp_path) == [tmp_path / "what?"]
    assert mentioned(words("Is it @what:"), tmp_path) == [tmp_path / "what"]


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
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.bin").write_bytes(b"a\0b")
    os.mkfifo(tmp_path / "pipe.txt")
    for text, options, reason in (
        ("@shot.png", {}, "is an image .image/png., and the model takes none"),
        ("@huge.png", {"can_see": True}, "the most is 3,932,160"),
        ("@data.bin", {}, "is not a text file"),
        ("@sub/data.bin", {}, "^@sub/data.bin is not a text file"),
        ("@pipe.txt", {}, "is not an ordinary file"),
        ("@gone.txt", {}, "there is no such file in "),
        ("@~/gone.txt", {}, "@~/gone.txt: there is no such file."),
        ("@*.py", {}, "@ takes no pattern"),
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
    assert blind.context.entries == ()
    assert "takes none" in room.of(ErrorRaised)[0].message
    facts = ModelFacts(name="scripted/eyes", provider="scripted", window_tokens=20_000, can_see=True)
    seeing = room.open(["I see."], facts=facts)
    before = seeing.context.stats().used_tokens
    assert (await seeing.send("See @shot.png")).reason == "answered"
    assert "image_url" in str(seeing.model.requests[0].messages)  # type: ignore[attr-defined]
    assert seeing.context.stats().used_tokens - before < 2 * IMAGE_TOKENS


async def test_a_person_says_in_the_chat_whether_the_model_takes_images(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "shot.png").write_bytes(PICTURE)
    chat = room.open(["I see.", "It is gone."])
    await chat.send("See @shot.png")
    assert "/config model.images yes" in room.of(ErrorRaised)[0].advice
    chat.set("model.images", "on")
    assert (await chat.send("See @shot.png")).reason == "answered"
    chat.set("model.images", "no")
    assert (await chat.send("And now?")).reason == "answered"
    with_image, without = (str(request.messages) for request in chat.model.requests)  # type: ignore[attr-defined]
    assert "image_url" in with_image
    assert "image_url" not in without


async def test_a_file_that_came_along_whole_may_be_written_over(tmp_path: Path) -> None:
    room = Room(tmp_path)
    for name in ("whole.py", "cut.py"):
        (tmp_path / name).write_text(
            "".join(f"line_{number} = {number}\n" for number in range(3 if "w" in name else 9_000))
        )

    def write(name: str) -> Message:
        return call("write_file", json.dumps({"path": name, "content": "line_1 = 2\n"}), name)

    facts = ModelFacts(name="scripted/small", provider="scripted", window_tokens=20_000)
    chat = room.open(
        [write("whole.py"), write("cut.py"), "Done."], facts=facts, settings={"agent.permission": "accept-edits"}
    )
    finished = await chat.send("Mend @whole.py and @cut.py")
    assert finished.reason == "answered", room.of(ErrorRaised)
    whole, cut = (entry.message for entry in chat.context.entries if entry.message.role == "tool")
    assert "line_1 = 2" in (tmp_path / "whole.py").read_text(), whole.text
    assert "line_1 = 2\n" not in (tmp_path / "cut.py").read_text()
    assert "read" in cut.text


def test_a_name_with_spaces_is_asked_for_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "my dir").mkdir()
    (tmp_path / "my dir" / "a b.txt").write_text("1")
    for text, named in (("see @my dir/a b.txt", "my dir"), ('see @"my dir"/a', ""), ("mail @my friend", "")):
        if named:
            with pytest.raises(UsageError, match=f"^@{named}: a name with spaces needs quotes"):
                mentioned(words(text, "typed"), tmp_path)
        else:
            mentioned(words(text, "typed"), tmp_path)
    assert mentioned(words('see @"my dir/a b.txt"', "typed"), tmp_path) == [tmp_path.resolve() / "my dir" / "a b.txt"]


async def test_lines_behind_a_name_attach_the_whole_file(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "invo").mkdir()
    (tmp_path / "invo" / "core.py").write_text("print()\n" * 12)
    chat = room.open(["Fine."] * 6)
    for lines in (":12", ":3-5", "#L3-5", "#L3-L5", ":12:5", ":12."):
        await chat.send(f"Look at @invo/core.py{lines}")
        assert room.of(Notice)[-1].message.startswith("Attached invo/core.py · all 12 lines · about "), lines
    assert len(room.of(Notice)) == 6


def test_lines_behind_a_name_are_its_own_where_a_file_has_them(tmp_path: Path) -> None:
    for name in ("notes:12", "notes"):
        (tmp_path / name).write_text("x")
    assert mentioned(words("@notes:12 and @notes:13"), tmp_path) == [tmp_path / "notes:12", tmp_path / "notes"]
    assert mentioned(words("@notes:12"), tmp_path, servers=["notes"]) == []
    assert mentioned(words("at @10:30 and @nobody:3"), tmp_path) == []


@pytest.mark.parametrize("lines", [":12", ":3-5", "#L3-5", ":12:5"])
def test_lines_of_a_missing_file_are_refused(lines: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"@nofile\.py: there is no such file"):
        mentioned(words(f"@nofile.py{lines}"), tmp_path)


def test_a_backslash_before_a_space_keeps_the_name_together(tmp_path: Path) -> None:
    (tmp_path / "my file.txt").write_text("x")
    assert mentioned(words(r"Read @my\ file.txt:1 now"), tmp_path) == [tmp_path / "my file.txt"]
    with pytest.raises(UsageError, match=r"@no file\.txt: there is no such file"):
        mentioned(words(r"Read @no\ file.txt now"), tmp_path)


@pytest.mark.parametrize(
    "name", ["chart.png", "me.JPEG", "a.gif", "a.svg", "a.pdf", "data.csv", "data.csv:3", "x.log", "a.ts", "b.zip"]
)
def test_a_missing_file_of_any_kind_is_refused(name: str, tmp_path: Path) -> None:
    for text in (f"@{name} what is on it?", f"What is in @{name}?", f"@{name}\nSum it up.", f"Sum (it)\n@{name}"):
        with pytest.raises(UsageError, match=r"there is no such file .* To send it as text, put it in `backticks`"):
            mentioned(words(text), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "What does @pytest.fixture do, and @functools.cache?",
        "Ask @team, then @user. And me@example.com, @you... or @v1.2",
        '@app.route("/")\nasync def page():\n    ...',
        "@pytest.fixture\ndef room():\n    ...",
        "Mend it:\n\n    @staticmethod\n    @functools.cache\n    @jax.jit\n    async def f(x): ...",
        "@attrs.frozen\nclass One:\n    ...",
        "What does `@pytest.fixture` do?",
    ],
)
def test_names_of_people_and_decorators_in_code_are_text(text: str, tmp_path: Path) -> None:
    assert mentioned(words(text), tmp_path) == []
