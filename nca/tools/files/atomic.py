"""Writing a file so that it is the old one or the new one, whatever happens meanwhile (reliability F5)."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from nca.tools.files.safe_open import Folder


def write_file(folder: Folder, name: str, data: bytes, before: os.stat_result | None) -> None:
    """Put `data` in the file `name`, durable on return; mode and owner stay. Raises OSError.

    before  the facts of the file that it replaces; None: there is none, and FileExistsError if one appears meanwhile.
    """
    # Beside the file: only within one file system can a file take another's place in one go.
    temporary = f".nca-{secrets.token_hex(8)}.tmp"
    handle = folder.create(temporary, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None and hasattr(os, "fchmod"):
                _keep_facts(handle, before)
            os.fsync(handle)
        if before is None:
            _put_new(folder, temporary, name)
        else:
            os.replace(folder.at(temporary), folder.at(name), src_dir_fd=folder.handle, dst_dir_fd=folder.handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(folder.at(temporary), dir_fd=folder.handle)
        raise
    folder.sync()


def _keep_facts(handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only an administrator may give files away; another's file that we may write becomes ours.
        with contextlib.suppress(PermissionError):
            os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _put_new(folder: Folder, temporary: str, name: str) -> None:
    """Under its name, unless there is something of that name by now."""
    try:
        os.link(
            folder.at(temporary),
            folder.at(name),
            src_dir_fd=folder.handle,
            dst_dir_fd=folder.handle,
            follow_symlinks=False,
        )
    except FileExistsError:
        raise
    except OSError:
        # No links on this file system.
        with contextlib.suppress(FileNotFoundError):
            folder.stat(name)
            raise FileExistsError(17, "it exists by now", name) from None
        os.replace(folder.at(temporary), folder.at(name), src_dir_fd=folder.handle, dst_dir_fd=folder.handle)
        return
    os.unlink(folder.at(temporary), dir_fd=folder.handle)
