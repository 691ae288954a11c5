"""Available memory and free disk space of this machine, in bytes; None if unknown."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_ram_bytes() -> int | None:
    """Memory available without swapping: the kernel's figure, or what a container's limit leaves."""
    found = [value for value in (_kernel_says(), _container_leaves()) if value is not None]
    return min(found) if found else None


def free_disk_bytes(directory: Path) -> int | None:
    """Free space on the disk of `directory`, which need not exist."""
    for folder in (directory, *directory.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def _kernel_says() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    # Other systems only tell the total; assume that half is free.
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_leaves() -> int | None:
    """What the control group v2 limit leaves; None without a limit."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None
