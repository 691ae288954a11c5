"""The rows of a file, as `nca compact FILE` takes them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nca.errors import InvalidMessages
from nca.messages import Message
from nca.sessions import Store
from nca.transcripts.conversation_file import read_conversation, read_plain
from nca.transcripts.formats.registry import formats
from nca.transcripts.formats.source import Source
from nca.transcripts.session_file import to_json, to_json_lines
from tests.sessions.samples import MANUAL, said


def test_what_was_rewound_is_in_no_row_of_an_export(tmp_path: Path) -> None:
    with Store.open(None) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("keep", "never mind"))
        _, view = session.rewinds.before(2)
        session.views.commit(view, MANUAL)
        session.log.append([Message("assistant", "Kept.")])
        copy = store.copy_of(session.info.id)
    for name, data in (("talk.json", to_json(copy)), ("talk.jsonl", to_json_lines(copy))):
        path = tmp_path / name
        path.write_bytes(data)
        transcript, notes = read_plain(Source.of_file(path))
        assert [row["content"] for row in transcript.messages] == ["keep", "Kept."]
        assert notes == ()
        imported = read_conversation(Source.of_file(path)).copy
        assert [entry.message.text for entry in imported.conversation] == ["keep", "Kept."]


@pytest.mark.parametrize("name", [".aider.chat.history.md", "../talk/.aider.chat.history.md"])
def test_a_relative_path_tells_the_whole_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / "talk"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".aider.chat.history.md").write_text(
        "# aider chat started at 2026-01-02 03:04:05\n\n#### Hello  \n\nYes?\n"
    )
    source = Source.of_file(Path(name))
    assert source.place == name
    assert read_conversation(source).copy.info.directory == str(folder.resolve())


def test_what_the_agent_recorded_as_a_cost_stays_beside_requests_that_it_has_none_for(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(
        "# aider chat started at 2026-01-02 03:04:05\n\n> Model: openai/gpt-4o with diff edit format\n"
        "\n#### Hello\n\nYes?\n\n> Tokens: 1.2k sent, 100 received. Cost: $0.50 message, $0.50 session.\n"
        "\n#### Go on\n\nFine.\n\n> Tokens: 1k sent, 10 received.\n"
    )
    costs = [row.usage.cost for row in read_conversation(Source.of_file(path)).copy.usage]
    assert costs == [0.5, pytest.approx(1_000 * 2.5e-6 + 10 * 1e-5)]


def refusal(path: Path) -> str:
    """What both ways of reading a file say."""
    said = set()
    for read in (read_conversation, read_plain):
        for key in ("", "k"):
            with pytest.raises(InvalidMessages) as refused:
                read(Source.of_file(path), key=key)
            said.add(refused.value.message)
    [message] = said
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"Dear diary,\nall is well.\n",
            "is neither a JSON array or object nor a session of any program that nca reads",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "is neither a JSON array or object nor a session of any program that nca reads"),
        (
            b"\xef\xbb\xbf2026-01-01 started\n",
            "is neither a JSON array or object nor a session of any program that nca reads",
        ),
        (b'{"level": "info"}\n{"level": "warn"}\n', "holds no messages"),
        (b'{"level": "info"}', "holds no messages"),
        (b"[1, 2]", "holds no messages"),
    ],
)
def test_a_file_of_no_known_program_names_all_programs_that_are(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    what, _, valid = refusal(path).partition("; valid: ")
    assert what == says
    assert valid.startswith("messages as JSON, or a session of ")
    assert [one.title for one in formats() if one.title not in valid] == []


def test_a_folder_and_a_database_of_another_program_are_refused_as_such(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith("is a folder, not a session of any program that nca reads; valid: ")
    path = tmp_path / "songs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title)")
        connection.commit()
    assert refusal(path).startswith("is a SQLite database, not a session of any program that nca reads; valid: ")
    with pytest.raises(InvalidMessages, match="x: is a SQLite database; valid: the path of its file"):
        read_conversation(Source("x", raw=path.read_bytes()))
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4_000)
    assert refusal(path).startswith("cannot be read as a database (")
    path.write_bytes(b"")
    assert refusal(path).startswith("is empty; valid: ")
