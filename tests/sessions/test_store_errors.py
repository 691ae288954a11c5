"""Every error of SQLite and of the system becomes one clear line."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from nca.errors import StoreDamaged, StoreError
from nca.sessions import Store
from nca.sessions import store_errors as faults


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (apsw.FullError("full"), StoreError, "Disk full: .* bytes free on /.*; cannot write"),
        (apsw.CorruptError("malformed"), StoreDamaged, r"is damaged \(malformed\)"),
        (apsw.CorruptError("schema (CREATE\n TABLE)"), StoreDamaged, r"is damaged \(schema \(CREATE TABLE\)\)"),
        (apsw.NotADBError("not a db"), StoreDamaged, "is damaged"),
        (apsw.SQLError("invalid fts5 file format (found 0, expected 4 or 5)"), StoreDamaged, "is damaged"),
        (apsw.SQLError("fts5: syntax error"), StoreError, "did not do as asked: fts5: syntax error"),
        (apsw.ConnectionClosedError("The connection has been closed"), StoreError, "has been closed"),
        (apsw.BusyError("locked"), StoreError, "Another process keeps .* busy"),
        (apsw.CantOpenError("no"), StoreError, "Cannot open"),
        (apsw.ReadOnlyError("no"), StoreError, "Cannot write"),
        (apsw.IOError("disk I/O"), StoreError, "Cannot read or write"),
        (apsw.ConstraintError("foreign key"), StoreError, "refused the change: foreign key"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), StoreError, "Disk full"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), StoreError, "Cannot write .*: permission denied"),
        (OSError("odd"), StoreError, "Cannot write .*: odd"),
    ],
)
@pytest.mark.parametrize("folder", ["", "not/there"])
def test_each_error_has_its_line(tmp_path: Path, folder: str, error: Exception, kind: type, says: str) -> None:
    path = tmp_path / folder / "sessions.db"
    with pytest.raises(StoreError, match=says) as caught, faults.explained(path):
        raise error
    assert type(caught.value) is kind
    assert str(path) in caught.value.message
    assert "\n" not in str(caught.value)
    assert caught.value.advice
    assert caught.value.__cause__ is error


def test_what_could_not_be_done_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Cannot read"), faults.explained(tmp_path, "read"):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_the_advice_names_what_decided_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "nca"))
    (tmp_path / "file").write_text("")
    given = tmp_path / "file" / "x.db"
    with pytest.raises(StoreError, match=r"Cannot write .*x\.db") as caught:
        Store.open(given)
    assert caught.value.advice == "Name a file in a directory that can be written."
    (tmp_path / "nca").write_text("")
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path / "nca" / "data" / "sessions.db")
    assert "NCA_HOME" in caught.value.advice


def test_a_closed_store_says_so_whatever_it_is_asked(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.db")
    store.close()
    asked: tuple[Callable[[], object], ...] = (store.list, store.latest, lambda: store.find("a"))
    for ask in asked:
        with pytest.raises(StoreError, match=r"has been closed"):
            ask()


def test_other_exceptions_pass() -> None:
    with pytest.raises(ZeroDivisionError), faults.explained(None):
        raise ZeroDivisionError
