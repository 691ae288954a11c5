"""Search: what is found by which words, and that no question is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nca.messages import AttachmentPart, Message, TextPart, ToolCall
from nca.sessions import Session, Store, sql
from nca.sessions.database import Database, connect, migrate, prepare
from nca.sessions.query import Only
from nca.sessions.search import MAX_POSTINGS, ranked
from tests.sessions.samples import MANUAL, hiding, result, said

SHA = "dee2a81c0ffee1234567890abcdef1234567890a"
LOG = [
    Message("user", "Please look at nca/sessions/schema.py:123 and rename get_user_name there."),
    Message(
        "assistant", "I renamed getUserName in the class HTTPServer.", (ToolCall("1", "grep", '{"path": "a b.md"}'),)
    ),
    Message("tool", f"commit {SHA}\nValueError: bad token at line 77 of the lexer", tool_call_id="1", name="grep"),
    Message("assistant", "The children went to the museum on 2024-05-09 and bought three postcards."),
    Message("user", "東京タワーへ行きたいです。予約してください。"),
    Message("assistant", "한국어 문서도 있습니다. Ναι, και ελληνικά. Café crème."),
    Message("user", (TextPart("See the file."), AttachmentPart("notes/plan.md", "the zebra crossing", 18))),
]


@pytest.fixture
def filled(session: Session) -> Session:
    session.log.append(LOG)
    return session


@pytest.mark.parametrize(
    ("question", "seq"),
    [
        ("nca/sessions/schema.py", 1),
        ("schema.py:123", 1),
        ("sessions/schema", 1),
        ("schema", 1),
        ("get_user_name", 1),
        ("userName", 2),
        ("user name", 1),
        ("HTTPServer", 2),
        ("server http", 2),
        ("a b.md", 2),
        ("grep", 2),
        (SHA, 3),
        ("dee2a81", 3),
        ("ValueError: bad token", 3),
        ('"bad token at line"', 3),
        ("line 77", 3),
        ("When does a child go to museums?", 4),
        ("who was buying a postcard", 4),
        ("what happened in May", 4),
        ("京", 5),
        ("東京", 5),
        ("タワー", 5),
        ("東京タワ", 5),
        ("予約", 5),
        ("한국", 6),
        ("Ελληνικά", 6),
        ("cafe creme", 6),
        ("zebra", 7),
        ("plan.md", 7),
    ],
)
def test_each_is_found_as_a_whole_and_by_its_parts(filled: Session, question: str, seq: int) -> None:
    assert seq in [hit.seq for hit in filled.search(question, 3) if hit.score > 0][:2]


def test_a_hit_says_where_it_is_and_what_stands_around_it(filled: Session) -> None:
    hit = filled.search("ValueError bad token")[0]
    assert (hit.session, hit.seq, hit.role, hit.turn) == (filled.info.id, 3, "tool", (1, 4))
    assert hit.id == f"{filled.info.id}:3"
    assert "ValueError: bad token" in hit.snippet
    assert all(abs(beside.seq - 3) == 1 and beside.snippet for beside in hit.around)


def test_what_is_not_there_is_not_found(filled: Session) -> None:
    for question in ("walrus", "", "   ", "???", "\0", "京都"):
        assert filled.search(question) == []


def test_a_question_of_stop_words_only_still_finds_them(session: Session) -> None:
    session.log.append(said("to be or not to be", "that is the question"))
    assert session.search("to be")[0].seq == 1


def test_an_answer_is_found_by_the_question_before_it(session: Session) -> None:
    session.log.append([*said(*(f"filler {number}" for number in range(10)))])
    session.log.append(said("How was the pottery workshop?", "Amazing, I made a bowl."))
    hits = session.search("pottery workshop", 5)
    assert [hit.seq for hit in hits[:2]] == [11, 12]


def test_compaction_hides_nothing_from_search(filled: Session) -> None:
    filled.views.commit(hiding(4), MANUAL)
    assert filled.search("museum")[0].seq == 4


def test_recall_does_not_find_itself(session: Session) -> None:
    call = Message("assistant", None, (ToolCall("1", "recall", '{"query": "walrus"}'),))
    found = Message("tool", "walrus, walrus", tool_call_id="1", name="recall")
    made = Message("tool", "walrus: outcome unknown", tool_call_id="1", source="nca")
    session.log.append([call, found, made])
    assert session.search("walrus") == []


def test_scope(store: Store) -> None:
    one, other = (store.create(directory="/", model="m") for _ in range(2))
    one.log.append(said("the walrus is here"))
    other.log.append(said("a seal", "no walrus in this one, but a walrus it was"))
    assert {hit.session for hit in one.search("walrus")} == {one.info.id}
    assert {hit.session for hit in store.search("walrus")} == {one.info.id, other.info.id}
    best = store.search_sessions("a seal and a walrus")
    assert best[0].session == other.info.id
    assert best[0].hits


def test_a_deleted_session_is_forgotten(store: Store) -> None:
    session = store.create(directory="/", model="m")
    session.log.append(said("the walrus is here", "x" * 5_000))
    session.close()
    store.delete(session.info.id)
    assert store.search("walrus") == []
    assert store._database.row("SELECT count(*) FROM passages_docsize") == (0,)
    again = store.create(directory="/", model="m")
    again.log.append(said("another walrus"))
    assert [hit.session for hit in store.search("walrus")] == [again.info.id]


def test_the_whole_of_a_cut_output_is_found(store: Store, session: Session, path: Path) -> None:
    folder = path.parent / "outputs" / session.info.id
    folder.mkdir(parents=True)
    (folder / "1.txt").write_text("beginning\n" * 2_000 + "the hidden walrus\n" + "end\n" * 2_000)
    session.log.append([result("1", f"beginning\n[…]\nend\n[The whole output is in {folder / '1.txt'}]")])
    hit = session.search("hidden walrus")[0]
    assert "the hidden walrus" in hit.snippet
    assert "the hidden walrus" in session.searchable_text(1)


def test_no_other_file_is_read_because_a_tool_names_it(session: Session, path: Path) -> None:
    secret = path.parent.parent / "secret" / "1.txt"
    secret.parent.mkdir()
    secret.write_text("the hidden walrus")
    (path.parent / "outputs").mkdir()
    (path.parent / "outputs" / "link").symlink_to(path.parent)
    (path.parent / "outputs" / session.info.id).mkdir()
    (path.parent / "outputs" / session.info.id / "9.txt").symlink_to(secret)
    for named in (secret, f"../../secret/{secret.name}", f"outputs/{session.info.id}/9.txt"):
        session.log.append([result("1", f"nothing\n[The whole output is in {named}]")])
    assert session.search("walrus") == []


def test_a_reader_searches_too(filled: Session, path: Path) -> None:
    with Store.open(path, read_only=True) as reader:
        assert reader.search("zebra crossing")[0].seq == 7
        filled.log.append(said("the walrus came later"))
        assert reader.search("walrus")[0].seq == 8


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=80) | st.text("\"*()^:-+{}'\0AND OR NOT NEAR text:extra \ud800é漢字", max_size=60))
@example('" OR text:"')
@example("NEAR(a b, 3)")
@example("{text} : a* ^b -c")
@example("\ud800 lone")
@example("a" * 100_000)
@example("word " * 20_000)
@example("漢" * 5_000)
@example("ª ² ½ Ⅷ ﷺ \u0301 \u200d \U0001f600")
def test_no_text_is_an_error(filled: Session, question: str) -> None:
    for hit in filled.search(question, 5):
        assert 1 <= hit.seq <= len(LOG)
        assert len(hit.snippet) <= 202


def test_words_that_are_everywhere_find_the_newest(session: Session) -> None:
    count = MAX_POSTINGS + 1_500
    session.log.append(said(*(f"the same words in message {number}" for number in range(1, count + 1))))
    assert session.search("same words message", 3)[0].seq > 1_000
    assert session.search(f"same words {count - 5}", 1)[0].seq == count - 5
    assert session.search("same words 17", 1)[0].seq == 17


def test_a_session_that_is_most_of_the_store_finds_what_the_index_finds(store: Store, session: Session) -> None:
    """Its candidates are looked up one by one; the index looks up those of a smaller one."""
    with store.create(directory="/", model="m") as other:
        other.log.append(said(*(f"number {number} of kind k{number % 40}" for number in range(100))))
        count = MAX_POSTINGS + 500
        session.log.append(
            said(*(f"number {number} of kind k{number % 40} at {number % 7}" for number in range(count)))
        )
        for question in ("number 17", "kind k3", "k7 or k11 at 3", "number 6400"):
            by_rows = ranked(session.database, question, session.number)
            assert by_rows == ranked(session.database, question, None, only=Only((session.number,), MAX_POSTINGS))
            assert {one.session for one in by_rows[0]} == {session.number}
            assert {one.session for one in ranked(session.database, question, other.number)[0]} <= {other.number}


def old_database(path: Path) -> None:
    """A database of schema 1 with a session in it."""
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    database = Database(connect(path), path)
    prepare(database.connection)
    migrate(database, sql.MIGRATIONS[:1])
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO sessions (number, id, name, directory, model, created_at, updated_at, touched)"
            " VALUES (1, 'old00001', '', '/', 'm', 1, 1, 1)"
        )
        connection.execute('INSERT INTO views VALUES (1, 0, NULL, \'{"items":[],"tail":1}\')')
        for seq, body in enumerate(
            ('{"role":"user","content":"an old walrus"}', "not a message", '{"role":"user"}'), 1
        ):
            connection.execute(
                "INSERT INTO messages (session, seq, at, role, body) VALUES (1, ?, 1, 'user', ?)", (seq, body)
            )
    database.close()


def test_an_older_database_is_indexed_when_it_is_opened(path: Path) -> None:
    old_database(path)
    with Store.open(path, read_only=True) as reader:
        assert [hit.seq for hit in reader.search("walrus")] == [1]
    assert not list(path.parent.glob("*before-schema*"))
    with Store.open(path) as store:
        assert [hit.seq for hit in store.search("walrus")] == [1]
    assert len(list(path.parent.glob("*before-schema*"))) == 1
