"""What this machine has room for: memory that can be had, disk that is free. In bytes; None where it cannot be told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_ram_bytes() -> int | None:
    """Memory to be had without swapping: what the kernel says, or what a container's limit leaves of it."""
    found = [value for value in (_kernel_says(), _container_leaves()) if value is not None]
    return min(found) if found else None


def free_disk_bytes(directory: Path) -> int | None:
    """Free space where `directory` is or would be."""
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
    # Elsewhere only the whole is told; half of it is a fair guess at what is free.
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_leaves() -> int | None:
    """What the limit of control group v2 leaves; None where there is none."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None
