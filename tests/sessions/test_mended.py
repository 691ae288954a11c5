"""A wrong byte in a stored message costs itself: the text around it is shown, with a mark in its place."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nca.messages import AttachmentPart, Message, TextPart, ToolCall
from nca.sessions import Store
from nca.sessions.encoding import encode
from nca.sessions.mended import MARK, mended, stored_message
from tests.sessions.damage import Words, words_in

WORDS = Words()
CALLS = (
    ToolCall("c1", "shell", f'{{"command": "echo {WORDS.take(60)}"}}'),
    ToolCall("c2", "read_file", '{"path": "a"}'),
)
MESSAGES = (
    Message("user", f'Say "hello"\n{WORDS.take(150)}', source="typed"),
    Message("assistant", f"Yes: {WORDS.take(60)}", CALLS),
    Message("assistant", tool_calls=CALLS),
    Message("tool", WORDS.take(50), tool_call_id="c1", name="shell", is_error=True),
    Message("user", (TextPart(WORDS.take(60), source="typed"), AttachmentPart("a.py", WORDS.take(60), 999))),
)


def words_of(message: Message) -> set[str]:
    texts = [message.text, *(part.text for part in message.attachments)]
    texts += [call.arguments for call in message.tool_calls]
    return words_in("\n".join(texts).encode())


@pytest.mark.parametrize("message", MESSAGES)
def test_each_wrong_byte_costs_no_word_but_its_own(message: Message) -> None:
    body = encode(message).encode()
    chance = random.Random(1)
    for place in range(len(body)):
        damaged = bytearray(body)
        damaged[place] = chance.choice((0, 0x0A, 0xFF, *b'"\\{},:', body[place] ^ 1 << chance.randrange(8)))
        found = stored_message(damaged.decode("utf-8", "replace"), message.role, 7, len(body))
        assert words_in(bytes(damaged)) <= words_of(found), (place, bytes(damaged[max(0, place - 20) : place + 20]))


@pytest.mark.parametrize("seed", range(60))
def test_what_stands_around_many_wrong_bytes_is_shown(seed: int) -> None:
    chance = random.Random(seed)
    message = MESSAGES[0]
    damaged = bytearray(encode(message).encode())
    place = chance.randrange(40, len(damaged))
    damaged[place : place + 200] = chance.choice((bytes(200), chance.randbytes(200), b""))
    found = stored_message(damaged.decode("utf-8", "replace"), "user", 7, len(damaged))
    assert found.role == "user"
    assert words_in(bytes(damaged)) <= words_of(found)


def test_a_message_keeps_what_is_not_damaged() -> None:
    message = MESSAGES[3]
    body = encode(message).replace("W", "\x01", 1)
    assert mended(body, "tool") == Message(
        "tool", message.text.replace("W", MARK, 1), tool_call_id="c1", name="shell", is_error=True
    )


@pytest.mark.parametrize("place", ['"c1"', '"is_error"', '"name"', '"shell"'])
def test_a_wrong_byte_where_a_text_begins_costs_no_other_field(place: str) -> None:
    message = MESSAGES[3]
    found = mended(encode(message).replace(place, place.replace('"', "\x01", 1), 1), "tool")
    assert found is not None
    assert (found.tool_call_id, found.name, found.is_error) == ("c1", "shell", True)


def test_a_run_of_wrong_bytes_is_counted() -> None:
    found = mended('{"role":"user","content":"before ' + "\0" * 4092 + ' after"}', "user")
    assert found == Message("user", f"before {MARK}[4,092 damaged bytes]{MARK} after")


@pytest.mark.parametrize("body", ["", "\ufffd" * 500, '{"role":"user', "[" * 5000])
def test_nothing_that_can_be_read_is_said(body: str) -> None:
    found = stored_message(body, "tool", 7, len(body))
    assert found == Message("user", f"[message 7 is damaged; {len(body):,} bytes]", source="nca")


@pytest.mark.parametrize("wrong", [b'"', b"\\", b"\0", b"\xff"])
def test_one_wrong_byte_in_a_message_of_50_kb_is_marked(path: Path, wrong: bytes) -> None:
    text = Words().take(4500)
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([Message("user", text)])
        info = session.info
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("DROP TRIGGER messages_never_change")
        connection.execute("UPDATE messages SET body = replace(body, 'W002250', CAST(? AS TEXT))", (wrong,))
        connection.execute("""CREATE TRIGGER messages_never_change BEFORE UPDATE ON messages
BEGIN SELECT raise(ABORT, 'the log is append-only'); END""")
    with Store.open(path) as store, store.open_session(info.id) as session:
        [entry] = session.log.entries()
        assert MARK in entry.message.text
        assert len(words_in(entry.message.text.encode())) == 4499
        assert store.preview(info.id).asked == entry.message.text
