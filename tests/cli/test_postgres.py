"""Sessions in PostgreSQL from the command line: two machines with one store, copies, a team."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nca.humanize import local_time
from nca.sessions import Store
from nca.sessions.encoding import encode, encode_bytes
from nca.sessions.postgres.spool import Kept, spool_of
from nca.testing.provider import Provider
from tests.cli.command import keys
from tests.postgres import Cluster
from tests.sessions.store_suite import made, said
from tests.testing.forks import forked

PEOPLE = ("ada", "ben")


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.new_database()


def test_a_second_machine_goes_on_where_the_first_one_was(tmp_path: Path, provider: Provider, url: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env: Any = keys(provider) | {"NCA_SESSION__STORE": url}
    first = forked("run", "hello", home=tmp_path / "one", cwd=work, **env)
    assert first.returncode == 0, first.stderr
    with Store.open(None, url=url) as store:
        [info] = store.list()
    second = forked("run", "--session", info.id, "again", home=tmp_path / "two", cwd=work, **env)
    assert second.returncode == 0, second.stderr
    with Store.open(None, url=url) as store:
        entries = store.copy_of(info.id).entries
    assert [entry.message.text for entry in entries if entry.message.role == "user"] == ["hello", "again"]
    assert not (tmp_path / "one" / "nca" / "data" / "sessions.db").exists()


def test_copies_go_both_ways(tmp_path: Path, url: str) -> None:
    path = tmp_path / "nca" / "data" / "sessions.db"
    with Store.open(path) as store:
        ids = [made(store, "Where is the zebra?", "In the zoo.").info.id, made(store, "more").info.id]
        outputs = store.outputs_folder(ids[0])
        assert outputs
        outputs.mkdir(parents=True)
        (outputs / "1.txt").write_text("all of it")
        copies = [store.copy_of(id) for id in ids]
    assert forked("sessions", "copy", "--to", url, home=tmp_path).stdout == "Copied 2 sessions.\n"
    again = forked("sessions", "copy", "--to", url, home=tmp_path)
    assert again.stdout == "Copied 0 sessions. 2 were already there.\n"
    env: Any = {"NCA_SESSION__STORE": url}
    found = json.loads(forked("sessions", "search", "zebra", "--json", home=tmp_path, **env).stdout)
    assert [hit["session"] for hit in found] == ids[:1]
    back = tmp_path / "back" / "sessions.db"
    back.parent.mkdir()
    done = forked("sessions", "copy", "--to", str(back), ids[0], home=tmp_path, **env)
    assert done.stdout == "Copied 1 session.\n"
    with Store.open(back) as store, Store.open(None, url=url) as there:
        folder = store.outputs_folder(ids[0])
        assert folder
        assert (folder / "1.txt").read_text() == "all of it"
        for name in ("entries", "views", "summaries", "compactions", "pins", "usage"):
            assert getattr(store.copy_of(ids[0]), name) == getattr(there.copy_of(ids[0]), name)
            assert getattr(there.copy_of(ids[0]), name) == getattr(copies[0], name)
        assert [info.id for info in there.list()] == [info.id for info in reversed([one.info for one in copies])]
    with Store.open(back) as store, store.open_session(ids[0]) as session:
        session.log.append([copies[1].entries[0].message])
    differs = forked("sessions", "copy", "--from", str(back), home=tmp_path, **env)
    assert (differs.returncode, "has this session with other messages" in differs.stderr) == (1, True)


def test_a_session_that_another_machine_has_is_named(tmp_path: Path, provider: Provider, url: str) -> None:
    env: Any = keys(provider) | {"NCA_SESSION__STORE": url}
    with Store.open(None, url=url) as store:
        session = made(store, "one")
        done = forked("run", "--session", session.info.id, "hello", home=tmp_path, **env)
        assert (done.returncode, "already open in process" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("postgresql://ada:geheim@host/d", "write no password here"),
        ("postgresql://host/d?password=geheim", "write no password here"),
        ("mysql://geheim@host/d", "not an address such as"),
        ("postgresql://[geheim/d", "not an address such as"),
    ],
)
def test_a_password_is_refused_and_never_shown(value: str, said: str, tmp_path: Path) -> None:
    for arguments in (("sessions", "list"), ("config", "show"), ("doctor",)):
        done = forked(*arguments, home=tmp_path, NCA_SESSION__STORE=value)
        assert said in done.stderr + done.stdout, arguments
        assert "geheim" not in done.stderr + done.stdout


def test_a_project_names_no_store(tmp_path: Path) -> None:
    (tmp_path / ".nca").mkdir()
    (tmp_path / ".nca" / "config.toml").write_text('[session]\nstore = "postgresql://elsewhere/d"\n')
    assert forked("config", "get", "session.store", home=tmp_path).stdout == "\n"
    done = forked("config", "set", "session.store", "postgresql://elsewhere/d", home=tmp_path)
    assert "a project may not set it" in done.stderr


def test_init_and_doctor(tmp_path: Path, url: str) -> None:
    env: Any = {"NCA_SESSION__STORE": url}
    before = forked("doctor", home=tmp_path, **env).stdout
    assert "schema 0 of 1, 0 sessions" in before
    assert "nca store init" in before
    for _ in range(2):
        assert "schema 1." in forked("store", "init", home=tmp_path, **env).stdout
    assert "schema 1 of 1, 0 sessions" in forked("doctor", home=tmp_path, **env).stdout
    assert "session.store is not set" in forked("store", "init", home=tmp_path).stderr
    away = forked("doctor", home=tmp_path, NCA_SESSION__STORE="postgresql://ada@/none?host=/nowhere")
    assert (away.returncode, "Cannot reach the PostgreSQL database none at /nowhere" in away.stdout) == (1, True)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Two messages that a chat kept for a database."""
    home = tmp_path / "nca" / "data" / "postgresql-nowhere-d"
    spool = spool_of(home / "sessions.db", "0a1b2c3d", 1)
    spool.parent.mkdir(parents=True)
    kept = [Kept(seq, 1.7e9, encode(said(text)[0])) for seq, text in ((1, "one"), (2, "two"))]
    spool.write_bytes(b"".join(encode_bytes(one) + b"\n" for one in kept))
    return spool


@pytest.mark.parametrize("store", ["postgresql://ada@/d?host=/nowhere", ""])
def test_doctor_names_a_spool_that_waits(store: str, tmp_path: Path, spool: Path) -> None:
    findings = json.loads(forked("doctor", "--json", home=tmp_path, NCA_SESSION__STORE=store).stdout)["findings"]
    [found] = [one for one in findings if one["name"] == "not stored"]
    assert found["status"] == "warn"
    assert found["detail"] == f"session 0a1b2c3d: 2 messages since {local_time(1.7e9)}, in {spool}."
    assert ("next start" if store else "names another database") in found["advice"]


@pytest.mark.parametrize(("damage", "why"), [(b"?", "Cannot read line 1: "), (b"", "Message 2 is missing.")])
def test_doctor_names_a_spool_that_cannot_be_stored(damage: bytes, why: str, tmp_path: Path, spool: Path) -> None:
    first, second = spool.read_bytes().splitlines(keepends=True)
    spool.write_bytes(damage + first + second.replace(b'"seq":2', b'"seq":3'))
    found = forked("doctor", home=tmp_path).stdout
    assert f"session 0a1b2c3d: {spool} cannot be stored. {why}" in found
    assert "Repair the line, or delete it and those after it." in found


def test_a_file_s_commands_say_what_to_do_instead(tmp_path: Path, url: str) -> None:
    env: Any = {"NCA_SESSION__STORE": url}
    assert "pg_dump --schema=nca" in forked("sessions", "backup", str(tmp_path / "b"), home=tmp_path, **env).stderr
    assert "gives back room by itself" in forked("sessions", "vacuum", home=tmp_path, **env).stderr
    assert "search index" in forked("sessions", "usage", home=tmp_path, **env).stdout
    assert "--team needs a store in PostgreSQL" in forked("sessions", "list", "--team", home=tmp_path).stderr


def _listed(home: Path, url: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return forked("sessions", "search", "zebra", "--all", "--json", *flags, home=home, NCA_SESSION__STORE=url)


def test_a_team_reads_all_and_changes_its_own(cluster: Cluster, tmp_path: Path, url: str) -> None:
    name = url.split("/")[3].split("?")[0]
    assert forked("store", "init", "--team", home=tmp_path, NCA_SESSION__STORE=url).returncode == 0
    for person in PEOPLE:
        cluster.execute(
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{person}')"
            f" THEN CREATE ROLE {person} LOGIN; END IF; END $$; GRANT nca_team TO {person}"
        )
    ada, ben = (cluster.url(name, person) for person in PEOPLE)
    with closing(Store.open(None, url=ada)) as store:
        session_id = made(store, "the zebra of Ada").info.id
    with closing(Store.open(None, url=ben)) as store:
        own = made(store, "the zebra of Ben").info.id
        assert [info.id for info in store.list()] == [own]
        assert [hit.session for hit in store.search("zebra")] == [own]
    assert [hit["session"] for hit in json.loads(_listed(tmp_path, ben).stdout)] == [own]
    found = {hit["session"] for hit in json.loads(_listed(tmp_path, ben, "--team").stdout)}
    assert found == {own, session_id}
    listed = forked("sessions", "list", "--team", "--json", home=tmp_path, NCA_SESSION__STORE=ben)
    by = {row["id"]: (row["owner"], row["machine"]) for row in json.loads(listed.stdout)}
    assert by == {session_id: ("ada", socket.gethostname()), own: ("ben", socket.gethostname())}
    listed = forked("sessions", "list", "--team", home=tmp_path, NCA_SESSION__STORE=ben)
    assert all(
        f"  {person}@{socket.gethostname()}  the zebra of {person.title()}" in listed.stdout for person in PEOPLE
    )
    shown = forked("sessions", "show", session_id, "--team", home=tmp_path, NCA_SESSION__STORE=ben)
    assert "the zebra of Ada" in shown.stdout
    hidden = forked("sessions", "show", session_id, home=tmp_path, NCA_SESSION__STORE=ben)
    assert "There is no session" in hidden.stderr
    with closing(Store.open(None, url=ben, of_team=True)) as store:
        with store._database.transaction() as connection:
            for sql in ("UPDATE sessions SET name = 'x'", "DELETE FROM sessions", "DELETE FROM messages"):
                connection.execute(f"{sql} WHERE {'number' if 'sessions' in sql else 'session'} = 1")
        assert store.copy_of(session_id).entries
        assert store.find(session_id).name == ""
