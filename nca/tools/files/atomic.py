"""Write a file atomically: after a crash it holds either the old content or the new."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from nca.safe_open import Folder


def write_file(folder: Folder, name: str, data: bytes, before: os.stat_result | None) -> None:
    """Write `data` to the file `name`, durably; mode and owner are preserved. Raises OSError.

    before  the status of the file that is replaced. None: the file is new, and FileExistsError if it exists by now.
    """
    here = folder.handle
    # In the same folder: a rename is atomic only within one file system.
    temporary = f".nca-{secrets.token_hex(8)}.tmp"
    handle = folder.create(temporary, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _preserve_owner_and_mode(handle, before)
            os.fsync(handle)
        if before is None:
            _publish_new(folder, temporary, name)
        else:
            os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=here)
        raise
    folder.sync()


def _preserve_owner_and_mode(handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only an administrator may give files away. Another user's file that we may write becomes ours.
        with contextlib.suppress(PermissionError):
            os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _publish_new(folder: Folder, temporary: str, name: str) -> None:
    """Rename a new file to `name`. Raises FileExistsError if that name is taken by now."""
    here = folder.handle
    try:
        os.link(temporary, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no hard links.
        with contextlib.suppress(FileNotFoundError):
            folder.stat(name)
            raise FileExistsError(17, "it exists by now", name) from None
        os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    else:
        os.unlink(temporary, dir_fd=here)
