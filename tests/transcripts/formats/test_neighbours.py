"""Files that lie beside other agents' sessions, as these agents write them: one line says which file to give."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from nca.errors import InvalidMessages
from nca.transcripts.conversation_file import read_conversation, read_plain
from nca.transcripts.formats.registry import recognise
from nca.transcripts.formats.source import Source


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def indented(value: Any) -> bytes:
    return json.dumps(value, indent=4).encode()


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("conversations.json", "[]")
    return file.getvalue()


FILES = (
    (
        "api_conversation_history.json",
        indented([{"ts": 1_770_577_372_307, "type": "say", "say": "task", "text": "Fix it."}]),
    ),
    (
        "~/.claude/projects/",
        lines({"display": "Fix it.", "pastedContents": {}, "timestamp": 1_767_607_200_000, "project": "/repo"}),
    ),
    ("~/.codex/sessions/", lines({"session_id": "0199", "ts": 1_767_607_200, "text": "Fix it."})),
    ("below storage/session/", indented({"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1}})),
    ("below storage/session/", lines({"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Fix it."})),
    ("where opencode has it", indented({"id": "ses_1", "version": "1.0", "projectID": "p", "time": {"created": 1}})),
    (".aider.chat.history.md", b"\n# 2026-02-21 20:33:19.510661\n+Fix it.\n"),
    (".aider.chat.history.md", b"TO LLM 2026-02-21T20:33:19\n-------\nUSER Fix it.\n"),
    ("goose/sessions/sessions.db", b"#V2\nFix it.\n"),
    ("sessions.db beside it", lines({"working_dir": "/repo", "description": "Fix", "message_count": 2})),
    ("chats/", indented([{"sessionId": "s1", "messageId": 0, "type": "user", "message": "Fix it."}])),
    ("chats/", indented([{"role": "user", "parts": [{"text": "Fix it."}]}])),
    ("chats/", indented({"history": [{"role": "user", "parts": [{"text": "Fix it."}]}], "authType": "oauth"})),
    ("context.jsonl", lines({"type": "metadata", "protocol_version": "1.9"})),
    ("messages.jsonl", indented({"session_id": "s1", "parent_session_id": None, "start_time": "2026-01-05T10:00:00"})),
    ("conversations.json", b"<html>\n<head><title>ChatGPT Data Export</title></head></html>"),
    ("unpacked", archive()),
)


@pytest.mark.parametrize(("valid", "raw"), FILES)
def test_a_file_beside_a_session_names_the_one_to_give(valid: str, raw: bytes) -> None:
    source = Source("given", raw=raw)
    assert recognise(source) is None
    for read in (read_conversation, read_plain):
        with pytest.raises(InvalidMessages) as refused:
            read(source)
        head, _, rest = refused.value.message.partition("; valid: ")
        assert head.startswith("given: is ")
        assert valid in rest
        assert "\n" not in rest


def test_a_file_of_claude_code_that_holds_only_notes_is_known_as_one() -> None:
    notes = lines(
        {"type": "file-history-snapshot", "messageId": "m1", "snapshot": {}}, {"type": "summary", "leafUuid": "u1"}
    )
    with pytest.raises(InvalidMessages, match="given: holds no messages that can be read"):
        read_conversation(Source("given", raw=notes))
