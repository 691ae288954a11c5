"""Files that an agent compressed with Zstandard, read without unpacking them to disk."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any, BinaryIO

from nca.errors import InvalidMessages

MAGIC = b"\x28\xb5\x2f\xfd"


def uncompressed(file: BinaryIO, place: str) -> BinaryIO:
    """The content of a file that may be compressed. Raises InvalidMessages if it is and cannot be read here."""
    start = file.read(len(MAGIC))
    file.seek(0)
    if start != MAGIC:
        return file
    try:
        zstandard = import_module("zstandard")
    except ImportError as error:
        file.close()
        raise InvalidMessages(
            f"{place}: is compressed with Zstandard, which this Python cannot read.",
            advice="Run `pip install zstandard`, or unpack it with `zstd -d`.",
        ) from error
    unpacker = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return io.BufferedReader(_Unpacked(unpacker, zstandard.ZstdError))


class _Unpacked(io.RawIOBase):
    """A stream whose faults are those of a file."""

    def __init__(self, unpacker: Any, fault: type[Exception]) -> None:
        self._unpacker = unpacker
        self._fault = fault

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._unpacker.read(len(buffer))
        except self._fault as error:
            raise OSError(f"damaged: {error}") from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._unpacker.close()
        super().close()
