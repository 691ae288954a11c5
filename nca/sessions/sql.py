"""The store's interface to a database. SQLite and PostgreSQL each implement it; the statements are written once.

And the schema of SQLite, as migrations. Their number is the newest schema version.

Statements are SQL that both understand. Parameters are `?`, or `?1`, `?2` where one is used twice. Where the databases
differ, `SessionDatabase` has a part of a statement or a method.

    sessions ─┬─ messages      the log: append-only, seq from 1 without gaps (triggers hold both)
              ├─ views         what a model sees: append-only, a tree by `parent`; sessions.head_view is current
              ├─ summaries     append-only; a view's JSON names them by row, so each is in one place
              ├─ compactions   one for each view but the first, which has number 0 and shows the whole log
              ├─ pins, usage
              └─ partials      the answer that is being streamed, or which of its calls began; overwritten in place
    program_views              the state of a `nca.ContextView` by its key; each save replaces it under a new version

A compaction is undone if its view is no ancestor of the current view; this is not stored. Times are seconds since the
epoch and only inform people. Order is by `seq`, `number` and `touched`, never by a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from nca.messages import Entry
from nca.sessions.query import Only, Phrase, WeightedTerm

Binding = None | int | float | str | bytes
Row = tuple[Any, ...]


class Result(Protocol):
    """The result of a statement in a transaction."""

    @property
    def get(self) -> Any:
        """The first row, or its value if it has only one; None if there is no row."""

    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """A write transaction."""

    def execute(self, sql: str, bindings: Sequence[Binding] = (), /) -> Result: ...
    def executemany(self, sql: str, rows: Iterable[Sequence[Binding]], /) -> Any: ...


class Spool(Protocol):
    """Keeps on this machine what a session said while its database could not be reached. Durable on return."""

    @property
    def is_empty(self) -> bool: ...

    def keep_messages(self, entries: Sequence[Entry]) -> None: ...
    def keep_usage(self, body: str) -> None:
        """Keep a report of usage, in JSON."""

    def keep_partial(self, seq: int, body: str) -> None:
        """Keep the answer that is being streamed, which will be message `seq`, in place of the one kept before."""

    def write(self, transaction: Transaction, session: int) -> None:
        """Store all that is kept, in the transaction of the session's holder. Stored rows stay unchanged."""

    def clear(self) -> None:
        """All of it is stored."""


class Lease(Protocol):
    """The right to write one session, which one process has at a time."""

    @property
    def spool(self) -> Spool | None:
        """None: nothing is kept, so that what cannot be stored raises StoreError."""

    def release(self, *, remove: bool = False) -> None: ...


class Whose(NamedTuple):
    """Who began a session of a shared database, and on which machine."""

    owner: str
    machine: str


class Matched(NamedTuple):
    """A passage that a search found: its row in the index, its words, and how often it holds each phrase."""

    row: int
    words: int
    counts: Sequence[int]


class TextIndex(Protocol):
    """The full-text index of the passages. A row of it is `message id * MAX_PASSAGES + place`."""

    def holding(self, phrases: Iterable[Phrase]) -> Mapping[Phrase, tuple[int, int]]:
        """How many passages hold each of these words or beginnings, and the row that was reached, up to COUNTED."""

    def best(
        self, terms: Sequence[WeightedTerm], sessions: Sequence[int], first: int, only: Only | None, limit: int
    ) -> tuple[list[Matched], int]:
        """The best passages that hold any of the terms, best first, and the words of an average passage.

        sessions  that the index looks up; none for all
        first     the first row that is searched
        only      the sessions and the time that each found message is looked up in; None for all
        """

    def counts(self, terms: Sequence[WeightedTerm], rows: Sequence[int]) -> list[Matched]:
        """Those of these passages that hold any of the terms."""

    def stemmer(self) -> Callable[[str], str]:
        """A function that stems a word as the index does."""


class SessionDatabase(Protocol):
    """Runs all SQL of the store. `rows`, `row` and `transaction` may be called from any thread and raise StoreError.

    said         the condition for messages that a person wrote
    todo_result  the condition for messages that are probably results of the todo tool; it misses none
    can_take_over  whether a session can be taken from a process that has it open
    path         what belongs to this machine, such as complete tool outputs, is beside this file; None: nowhere
    """

    said: str
    todo_result: str
    can_take_over: bool = False
    path: Path | None
    index: TextIndex

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
        """All rows of a query, as one consistent read."""

    def row(self, sql: str, bindings: Sequence[Binding] = ()) -> Row | None:
        """The first row."""
        return next(iter(self.rows(sql, bindings)), None)

    def value(self, sql: str, bindings: Sequence[Binding] = (), default: Any = None) -> Any:
        """The first value of the first row; `default` if there is no row, or NULL in it."""
        row = self.row(sql, bindings)
        return default if row is None or row[0] is None else row[0]

    def transaction(self, lease: Lease | None = None) -> AbstractContextManager[Transaction]:
        """A write transaction, durable on return. An exception inside rolls everything back.

        lease  must still be held, or SessionLocked is raised and nothing is written
        """

    def write(self, sql: str, bindings: Sequence[Binding] = ()) -> None:
        """One statement as a transaction."""
        with self.transaction() as transaction:
            transaction.execute(sql, bindings)

    def hold(self, session_id: str, *, takes_over: bool = False) -> Lease | None:
        """Take the lease of a session; None in memory. Raises SessionLocked, which names the process that has it.

        takes_over  from a process that has it: that one's next write raises SessionLocked
        """

    def whose(self, ids: Sequence[str]) -> dict[str, Whose]:
        """Whose these sessions are; empty if the database is one person's on one machine."""
        return {}

    def deliver(self) -> None:
        """Store what earlier processes of this machine kept while the database could not be reached."""

    def insert_messages(
        self, transaction: Transaction, session: int, entries: Sequence[Entry], bodies: Sequence[str], *, is_copy: bool
    ) -> None:
        """Add messages that follow the last one, and index them. `is_copy`: of a copied session, which has many."""

    def number_in(self, field: str) -> str:
        """A number of a stored view's body, as an expression."""

    def part_bytes(self) -> tuple[list[tuple[str, int]], int]:
        """The size of each table on the disk, and the free room there, in bytes."""

    def report(self, how: str) -> NoReturn:
        """Raise StoreDamaged for damage that the database does not see."""

    def back_up(self, target: Path) -> None:
        """Copy the whole database into a new private file. Raises StoreError."""

    def close(self) -> None: ...


APPLICATION_ID = 0x6E63610A
"""`nca` and a newline, in the four bytes that identify an application's SQLite files."""

SAID = "role = 'user' AND iif(json_valid(body), coalesce(body ->> 'source', ''), 'nca') <> 'nca'"
"""Condition for messages that a person wrote. Queries must repeat it verbatim to use its partial index."""
TODO_RESULT = """role = 'tool' AND instr(body, '"name":"todo"') > 0"""
"""Condition for messages that are probably results of the todo tool; it misses none."""


def scripts(*names: str) -> tuple[str, ...]:
    """Migrations of SQLite. Script n leads from schema n to n + 1.

    Only ever add one: released schemas are in people's files.
    """
    folder = Path(__file__).with_name("migrations")
    return tuple(folder.joinpath(f"{name}.sql").read_text(encoding="utf-8") for name in names)


MIGRATIONS = scripts(
    *("1_sessions", "2_full_text_index", "3_session_kinds", "4_long_logs", "5_kept_by_kind", "6_forks"),
    *("7_chosen_models", "8_origins", "9_sources", "10_counts", "11_program_views", "12_summaries"),
)
