"""The embedded model's weights on this machine: which are installed, which is recommended, and how to get it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from nca.config.paths import data_dir
from nca.errors import ModelUnavailable, UsageError
from nca.humanize import byte_size
from nca.models.embedded.download import Progress, Source, fetch, needed_bytes
from nca.models.embedded.known import (
    KNOWN,
    QWEN,
    RUNTIME,
    SMOLLM,
    KnownModel,
    available_ram_bytes,
    free_disk_bytes,
    named,
    runtime_command,
)
from nca.models.providers import EMBEDDED

VARIABLE = "NCA_EMBEDDED"
"""Environment variable that selects the model; `recommended` or unset: the one that fits the machine."""
RECOMMENDED = "recommended"

ENOUGH_DISK_BYTES = 3_500_000_000
ENOUGH_RAM_BYTES = 3_000_000_000
"""Qwen needs 1.1 GB of disk and 1.5 GB of memory; the rest is for other programs."""


def known(name: str, env: Mapping[str, str] = os.environ) -> KnownModel:
    """The model of this name, with or without `embedded/`; the recommended one for "" and `recommended`.

    Raises UsageError with the valid names.
    """
    short = name.removeprefix(EMBEDDED)
    return named(recommended(env) if short in ("", RECOMMENDED) else short)


def models_dir(env: Mapping[str, str] = os.environ) -> Path:
    return data_dir(env) / "models"


def installed(env: Mapping[str, str] = os.environ) -> list[str]:
    """Names of the models with installed weights, best first."""
    return [name for name in KNOWN if path_of(name, env) is not None]


def path_of(name: str, env: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the weights; None if it is missing or has the wrong size."""
    model = known(name, env)
    path = models_dir(env) / model.filename
    try:
        return path if path.stat().st_size == model.size_bytes else None
    except OSError:
        return None


def has_runtime() -> bool:
    return importlib.util.find_spec(RUNTIME) is not None


def require(name: str, env: Mapping[str, str] = os.environ) -> Path:
    """The file of the weights. Raises ModelUnavailable if they or the runtime are missing, UsageError as `known`."""
    model = known(name, env)
    path = path_of(model.name, env)
    if path is None:
        size = byte_size(model.size_bytes)
        raise ModelUnavailable(
            f"The weights of {model.name} are not installed.",
            advice=f"Download them (nca models get {model.name}: {size}), or choose another model"
            " with --model: a provider's, with its API key in the environment (as OPENAI_API_KEY), or one of a local"
            " server.",
        )
    if not has_runtime():
        raise ModelUnavailable(
            "The embedded model's runtime is not installed.", advice=f"Install it: {runtime_command()}"
        )
    return path


def recommended(
    env: Mapping[str, str] = os.environ, *, free_disk: int | None = None, available_ram: int | None = None
) -> str:
    """The model for this machine: the capable one, or the small one if disk or memory are short.

    `free_disk` and `available_ram` are in bytes; None: look them up. NCA_EMBEDDED wins if it is set.
    Raises UsageError if it names no model.
    """
    wanted = env.get(VARIABLE, "").strip()
    if wanted and wanted != RECOMMENDED:
        try:
            return named(wanted).name
        except UsageError as error:
            raise UsageError(f"{VARIABLE}: {error.message}", advice=error.advice) from error
    return SMOLLM.name if shortage(env, free_disk=free_disk, available_ram=available_ram) else QWEN.name


def shortage(
    env: Mapping[str, str] = os.environ, *, free_disk: int | None = None, available_ram: int | None = None
) -> str:
    """What this machine lacks for the capable model, in words; "" if nothing. The arguments are as above."""
    ram = available_ram_bytes() if available_ram is None else available_ram
    if ram is not None and ram < ENOUGH_RAM_BYTES:
        return f"{byte_size(ram)} of memory are free, and it should have {byte_size(ENOUGH_RAM_BYTES)}"
    if path_of(QWEN.name, env) is not None:
        return ""
    disk = free_disk_bytes(models_dir(env)) if free_disk is None else free_disk
    if disk is None or disk >= ENOUGH_DISK_BYTES:
        return ""
    return f"{byte_size(disk)} of disk are free, and it should have {byte_size(ENOUGH_DISK_BYTES)}"


def missing_room(name: str, env: Mapping[str, str] = os.environ, *, available_ram: int | None = None) -> str:
    """What memory or disk lack for this model, in words; "" if nothing. `available_ram` is as above."""
    model, directory = known(name, env), models_dir(env)
    ram = available_ram_bytes() if available_ram is None else available_ram
    if ram is not None and ram < model.ram_bytes:
        return f"{byte_size(ram)} of memory are free, and it takes {byte_size(model.ram_bytes)}"
    free, needed = free_disk_bytes(directory), needed_bytes(model, directory / f"{model.filename}.part")
    if free is None or free >= needed or path_of(name, env) is not None:
        return ""
    return f"{byte_size(free)} of disk are free, and it needs {byte_size(needed)}"


def get(
    name: str,
    *,
    source: Source = "auto",
    progress: Callable[[Progress], None],
    env: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Path:
    """The file of the weights, downloaded and verified if missing. Resumes an interrupted download.

    Raises UsageError for an unknown name, ModelUnavailable if no source has it, NcaError for disk errors.
    """
    return fetch(known(name, env), directory or models_dir(env), source=source, progress=progress, env=env)
