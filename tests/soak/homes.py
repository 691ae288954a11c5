"""Homes with a past: what lies on the disk before the process that is killed starts."""

from __future__ import annotations

from pathlib import Path

import apsw

from nca.context.view import Summary, View
from nca.messages import Message, ToolCall
from nca.sessions import schema
from nca.sessions.database import Database, connect, migrate, prepare
from nca.sessions.opening import Opened
from nca.sessions.store import Store
from nca.sessions.views import CompactionRecord
from tests.soak.account import Account, Known
from tests.soak.facts import digest_of, prose


def of_schema(home: Path, version: int) -> Account:
    """A store of an older nca with two sessions, one of them compacted."""
    path = home / "data" / "sessions.db"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    database = Database(connect(path), path)
    prepare(database.connection)
    migrate(database, schema.MIGRATIONS[:version])
    with Store(Opened(database, None, ()), path, is_read_only=False) as store:
        return _filled(store)


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
            session.append([Message("user", f"question {number}"), Message("assistant", None, (call,))])
            session.append([Message("tool", "done", tool_call_id=call.id, name="effect")])
            session.append([Message("assistant", prose(f"old-{number}", 500))])
            session.append([Message("user", "and on"), Message("assistant", prose(f"older-{number}", 3_000))])
            session.commit_view(View((Summary("s", ((1, 4),), "A summary."),), 5), CompactionRecord(trigger="manual"))
            session.pin(5)
            log = [digest_of(entry.message) for entry in session.entries()]
            account.sessions[session.info.id] = Known(log)
    return account
