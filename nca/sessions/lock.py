"""Locks between processes: files in `locks/` beside the database, held with flock.

The kernel releases a lock when its process ends, however it ends. The files' contents only inform people.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import ModuleType

from nca.errors import SessionLocked, StoreError
from nca.sessions import store_errors as faults

_POLL_SECONDS = 0.02


class FileLock:
    """A held flock."""

    spool: None = None
    """As a lease it keeps nothing: a database on this machine can always be reached."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path, *, is_shared: bool = False) -> FileLock | None:
        """Try once; None if another holder, in this or any other process, has the lock.

        Raises StoreError if the lock file cannot be created, or the system has no flock.
        """
        fcntl = _fcntl()
        with faults.explained(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    return None
                except OSError:
                    os.close(descriptor)
                    raise
                if _is_current(path, descriptor):
                    return cls(path, descriptor)
                # The previous holder deleted the file between our open and our lock: lock the new one.
                os.close(descriptor)

    @classmethod
    def wait(cls, path: Path, seconds: float) -> FileLock:
        """Wait for an exclusive lock. Raises StoreError after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            lock = cls.acquire(path)
            if lock is not None:
                return lock
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"Another process has been preparing the store for {seconds:.0f} seconds ({path})",
                    advice="Try again when it is done.",
                )
            time.sleep(_POLL_SECONDS)

    def share(self) -> None:
        """Downgrade to a shared lock. Another process may get in between, so call it while holding another lock."""
        fcntl = _fcntl()
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def take_alone(self) -> bool:
        """Make a shared lock exclusive, if nobody else has it; otherwise it stays shared. See `share` for the gap."""
        fcntl = _fcntl()
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The attempt has released it.
            self.share()
            return False
        return True

    def sign(self) -> None:
        """Record the holder. A full disk is not an error."""
        owner = json.dumps({"pid": os.getpid(), "start": time.time(), "host": os.uname().nodename}).encode()
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, owner, 0)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self, *, remove: bool = False) -> None:
        """Release the lock and optionally delete its file. Safe while others wait for it: see `acquire`."""
        if self._descriptor < 0:
            return
        if remove:
            with suppress(OSError):  # a leftover file means nothing
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1


class HeldHere:
    """Locks between the threads of this process, for what no other process sees."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._shares: dict[Path, int] = {}
        """How many share a lock; 0: somebody has it alone."""

    def acquire(self, path: Path, *, is_shared: bool) -> ExitStack | None:
        """As `FileLock.acquire`."""
        with self._mutex:
            shares = self._shares.get(path)
            if shares is not None and not (is_shared and shares):
                return None
            self._shares[path] = (shares or 0) + is_shared
        held = ExitStack()
        held.callback(self._release, path)
        return held

    def _release(self, path: Path) -> None:
        with self._mutex:
            left = self._shares.pop(path) - 1
            if left > 0:
                self._shares[path] = left


def lock_session(path: Path, session_id: str) -> FileLock:
    """Lock a session for its writer. Raises SessionLocked, which names the process that has it."""
    lock = FileLock.acquire(path)
    if lock is None:
        raise SessionLocked(
            f"Session {session_id} is already open{_holder(path)}",
            advice=f"Close it there, or continue in a copy: `nca sessions fork {session_id}`.",
        )
    lock.sign()
    return lock


def _holder(path: Path) -> str:
    try:
        owner = json.loads(path.read_bytes())
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(owner["start"]))
        # On a home directory that machines share, the process number alone would mislead.
        host = str(owner.get("host", ""))
        where = f" on {host}" if host not in ("", os.uname().nodename) else ""
        return f" in process {int(owner['pid'])}{where}, since {since}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        # Nothing is recorded between taking the lock and signing it, or on a full disk.
        return " in another process"


def _fcntl() -> ModuleType:
    """Imported when a file is to be locked: Windows has no such module, and a store in memory needs none."""
    try:
        import fcntl
    except ModuleNotFoundError as error:
        raise StoreError(
            "Sessions on disk need Linux or macOS: this system cannot lock files as they need it",
            advice="On Windows, use WSL; the library works without a store.",
        ) from error
    return fcntl


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
