"""One connection to PostgreSQL: its settings, and statements with `?` for parameters."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import psycopg
from psycopg import conninfo
from psycopg.abc import RV, PQGen
from psycopg.adapt import Loader
from psycopg.types.string import StrDumper

from nca.errors import ConfigError, StoreError
from nca.sessions.store_errors import on_failure

# psycopg warns of a connection that is lost in mid-transaction; whoever lost it gets an error that says so.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CONNECT_SECONDS = 10
_SILENT_SECONDS = 2.0
"""After so long without an answer, a second connection asks whether the server works at it. No setting of libpq does:
a tunnel or proxy that has lost the server still confirms to TCP that it got everything."""
_ASK_SECONDS = 2
"""How long the server may take to answer a second connection; libpq knows no less."""
_BUSY_MILLISECONDS = 10_000
"""How long a statement waits for another writer, as in SQLite."""
_OLDEST = 130_000
"""PostgreSQL 13: the first with pg_xact_status."""
_INTEGERS = 2**63
_PARAMETER = re.compile(r"\?(\d*)")
_SET_UP = (
    "SELECT set_config('search_path', 'nca', false), set_config('nca.machine', ?, false),"
    " set_config('lock_timeout', ?, false), set_config('nca.scope', ?, false),"
    # The first passages of a word are to be the oldest: how many there are follows from how far they reach.
    " set_config('synchronize_seqscans', 'off', false),"
    " set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
    " set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '60000', false)"
)
"""The server notices within a minute that a machine is gone, and gives its sessions free."""
_IS_WORKING = (
    "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2 AND wait_event_type IS DISTINCT FROM 'Client'"
)
"""Whether a process of the server waits for nothing from its client."""


class _Number(Loader):
    """Sums of integers are of type numeric; others are not used."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class Rows:
    """The result of a statement; see `nca.sessions.sql.Result`."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    @property
    def get(self) -> Any:
        if not self._rows:
            return None
        return self._rows[0][0] if len(self._rows[0]) == 1 else self._rows[0]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def __iter__(self) -> Any:
        return iter(self._rows)


class Backend(NamedTuple):
    """The server's process for a connection."""

    pid: int
    since: Any


class Statement(NamedTuple):
    """A statement. `is_many`: `bindings` has those of each row."""

    sql: str
    bindings: Sequence[Any] = ()
    is_many: bool = False

    @property
    def gives_rows(self) -> bool:
        return self.sql.startswith(("SELECT", "WITH")) or "RETURNING" in self.sql


class NoAnswer(psycopg.OperationalError):
    """The server gives no answer and cannot be asked why."""


class _Patient(psycopg.Connection[tuple[Any, ...]]):
    """Waits for an answer as long as the server works at it; else it is closed. Raises NoAnswer, psycopg.Error.

    silent_seconds  how long it waits before it asks
    is_working      asks the server whether it does, and raises NoAnswer
    """

    silent_seconds: float = _SILENT_SECONDS
    is_working: Callable[[], bool] | None = None

    def wait(self, gen: PQGen[RV], *limits: Any, **more: Any) -> RV:
        return super().wait(self._answered(gen), *limits, **more)

    def _answered(self, answer: PQGen[RV]) -> PQGen[RV]:
        """The same, which psycopg resumes ten times a second while nothing comes."""
        try:
            wants, heard = next(answer), time.monotonic()
            while True:
                if ready := (yield wants):
                    heard = time.monotonic()
                elif time.monotonic() > heard + self.silent_seconds:
                    self._ask(answer)
                    heard = time.monotonic()
                wants = answer.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value

    def _ask(self, answer: PQGen[RV]) -> None:
        lost = psycopg.OperationalError("the connection is lost")
        try:
            if self.is_working is not None and self.is_working():
                return
        except NoAnswer as error:
            lost = error
        self.close()
        with suppress(psycopg.Error, StopIteration):
            answer.throw(lost)  # so that it ends
        raise lost


class Connection:
    """Statements on one connection. Raises psycopg.Error."""

    def __init__(self, url: str, *, of_team: bool = False, seconds: int = _CONNECT_SECONDS) -> None:
        """of_team: show the sessions of the whole team. seconds: how long the server may take to answer."""
        self._connect = partial(
            _Patient.connect,
            url,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            application_name="nca",
            client_encoding="UTF8",
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
        )
        self._psycopg = self._connect(connect_timeout=seconds)
        self._psycopg.silent_seconds = seconds
        adapters = self._psycopg.adapters
        adapters.register_dumper(str, StrDumper)
        adapters.register_loader("numeric", _Number)
        with on_failure(self.close):
            version = self._psycopg.info.server_version
            if version < _OLDEST:
                raise StoreError(f"PostgreSQL {version // 10_000} is too old", advice="nca needs 13 or newer.")
            self.run(_SET_UP, (socket.gethostname(), str(_BUSY_MILLISECONDS), "team" if of_team else "own"))
            found = self.run("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()", ())
            self.backend = Backend(*found[0])
            self._psycopg.is_working, self._psycopg.silent_seconds = self._is_working, _SILENT_SECONDS

    def _is_working(self) -> bool:
        try:
            with self._connect(connect_timeout=_ASK_SECONDS) as asking:
                return bool(asking.execute(_IS_WORKING, self.backend).fetchall())
        except psycopg.OperationalError as error:
            if error.sqlstate:  # it is there, but takes no more connections
                return True
            raise NoAnswer("the server does not answer") from error

    @property
    def is_lost(self) -> bool:
        return bool(self._psycopg.closed)

    @property
    def is_busy(self) -> bool:
        """Whether a transaction is open."""
        return self._psycopg.info.transaction_status not in (
            psycopg.pq.TransactionStatus.IDLE,
            psycopg.pq.TransactionStatus.UNKNOWN,
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """An exception inside rolls everything back."""
        self.run("BEGIN", ())
        with on_failure(self.roll_back):
            yield
            self.run("COMMIT", ())

    def roll_back(self) -> None:
        """End the transaction, if one is open."""
        with suppress(psycopg.OperationalError):  # a lost connection has rolled back
            if not self.is_lost and self.is_busy:
                self.run("ROLLBACK", ())

    def run(self, sql: str, bindings: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._psycopg.execute(translated(sql), _bound(bindings))
        return cursor.fetchall() if cursor.description else []

    def run_all(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Carry out statements without waiting for each answer; after an error none of them. Returns what each gave."""
        with self._psycopg.pipeline() if psycopg.Pipeline.is_supported() else nullcontext():
            cursors = [self._started(one) for one in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def _started(self, statement: Statement) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = self._psycopg.cursor()
        if statement.is_many:
            cursor.executemany(translated(statement.sql), [_bound(row) for row in statement.bindings])
        else:
            cursor.execute(translated(statement.sql), _bound(statement.bindings))
        return cursor

    def run_script(self, script: str) -> None:
        self._psycopg.execute(script.encode())

    def close(self) -> None:
        self._psycopg.close()


def where(url: str) -> str:
    """The database as a person names it, without the password. Raises ConfigError for a URL that is none."""
    try:
        # libpq's own words would show the unreadable text, and so perhaps a password.
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ConfigError(
            "This is not the address of a PostgreSQL database",
            advice="It is like postgresql://user@host:5432/database; write special characters as %40 and so on.",
        ) from None
    host = str(parts.get("host") or os.environ.get("PGHOST", "") or "this machine")
    port = f":{parts['port']}" if parts.get("port") else ""
    name = str(parts.get("dbname") or os.environ.get("PGDATABASE", "") or parts.get("user") or "")
    return f"the PostgreSQL database {name} at {host}{port}" if name else f"PostgreSQL at {host}{port}"


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """With `$1` in place of `?` and `?1`."""
    number = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f"${match[1] or number}"

    return _PARAMETER.sub(numbered, sql)


def _bound(bindings: Sequence[Any]) -> list[Any]:
    """A value that PostgreSQL can hold. Raises OverflowError for a larger integer than SQLite has.

    Its texts hold no NUL. JSON has it as an escape; elsewhere it is not a character that a person typed.
    """
    bound = []
    for value in bindings:
        if isinstance(value, int) and not -_INTEGERS <= value < _INTEGERS:
            raise OverflowError(f"{value} is too large")
        bound.append(value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value)
    return bound
