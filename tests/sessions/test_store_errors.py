"""Every error of SQLite and of the system becomes one clear line."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw
import pytest

from nca.errors import StoreDamaged, StoreError
from nca.sessions import store_errors as faults


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (apsw.FullError("full"), StoreError, "Disk full: .* bytes free on /.*; cannot write"),
        (apsw.CorruptError("malformed"), StoreDamaged, r"is damaged \(malformed\)"),
        (apsw.CorruptError("schema (CREATE\n TABLE)"), StoreDamaged, r"is damaged \(schema \(CREATE TABLE\)\)"),
        (apsw.NotADBError("not a db"), StoreDamaged, "is damaged"),
        (apsw.SQLError("invalid fts5 file format (found 0, expected 4 or 5)"), StoreDamaged, "is damaged"),
        (apsw.SQLError("fts5: syntax error"), StoreError, "refused the change"),
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


def test_other_exceptions_pass() -> None:
    with pytest.raises(ZeroDivisionError), faults.explained(None):
        raise ZeroDivisionError
