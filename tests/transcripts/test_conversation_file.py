"""The rows of a file, as `nca compact FILE` takes them."""

from __future__ import annotations

from pathlib import Path

from nca.messages import Message
from nca.sessions import Store
from nca.transcripts.conversation_file import read_plain
from nca.transcripts.formats.source import Source
from nca.transcripts.session_file import to_json
from tests.sessions.samples import MANUAL, said


def test_what_was_rewound_is_in_no_row_of_an_export(tmp_path: Path) -> None:
    with Store.open(None) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("keep", "never mind"))
        _, view = session.rewinds.before(2)
        session.views.commit(view, MANUAL)
        session.log.append([Message("assistant", "Kept.")])
        path = tmp_path / "talk.json"
        path.write_bytes(to_json(store.copy_of(session.info.id)))
    transcript, notes = read_plain(Source.of_file(path))
    assert [row["content"] for row in transcript.messages] == ["keep", "Kept."]
    assert notes == ()
