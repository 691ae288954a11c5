"""Home directories with earlier sessions, for the process that is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from nca.context.view import Summary, View
from nca.messages import Message, ToolCall
from nca.sessions import sql
from nca.sessions.database import Database, connect, migrate, prepare
from nca.sessions.store import Store
from nca.sessions.views import CompactionRecord
from tests.sessions.samples import pin
from tests.soak.account import Account, Known
from tests.soak.facts import digest_of, prose


def of_schema(home: Path, version: int) -> Account:
    """A store of an older nca with two sessions, one of them compacted."""
    path = home / "data" / "sessions.db"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    newest = home / "newest.db"
    with Store.open(newest) as store:
        account = _filled(store)
    database = Database(connect(path), path)
    prepare(database.connection)
    migrate(database, sql.MIGRATIONS[:version])
    _copy(newest, database)
    database.close()
    for left in home.glob("newest*"):
        left.unlink() if left.is_file() else shutil.rmtree(left)
    return account


def _copy(source: Path, target: Database) -> None:
    """The rows of every table, as far as the target's schema has a place for them; what is found comes by itself."""
    target.connection.execute("ATTACH ? AS source", (str(source),))
    with target.transaction() as connection:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        tables = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT GLOB 'passages*' ORDER BY name"
        for (table,) in connection.execute(tables).fetchall():
            old, new = (
                {str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_info(?, ?)", (table, where))}
                for where in ("main", "source")
            )
            columns = ", ".join(sorted(old & new))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}")


def damaged(home: Path) -> Account:
    """A store with a table missing; everything else of it can be read."""
    path = home / "data" / "sessions.db"
    with Store.open(path) as store:
        account = _filled(store)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE learned")
    connection.close()
    account.allows_notes = True
    return account


def _filled(store: Store) -> Account:
    account = Account()
    for number in range(2):
        with store.create(directory="/work", model="m") as session:
            call = ToolCall(f"{number}", "effect", "{}")
            session.log.append([Message("user", f"question {number}"), Message("assistant", None, (call,))])
            session.log.append([Message("tool", "done", tool_call_id=call.id, name="effect")])
            session.log.append([Message("assistant", prose(f"old-{number}", 500))])
            session.log.append([Message("user", "and on"), Message("assistant", prose(f"older-{number}", 3_000))])
            session.views.commit(View((Summary("s", ((1, 4),), "A summary."),), 5), CompactionRecord(trigger="manual"))
            pin(session, 5)
            log = [digest_of(entry.message) for entry in session.log.entries()]
            account.sessions[session.info.id] = Known(log)
    return account
