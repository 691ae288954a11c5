"""Decode a text file and encode it again with the same encoding, byte-order mark and line endings."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from nca.tools.tool import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PROBED_BYTES = 8192


def is_binary(raw: bytes) -> bool:
    return b"\0" in raw[:_PROBED_BYTES] and not raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


@dataclass(frozen=True, slots=True)
class TextFile:
    """`text` keeps the line endings, and bytes that are not UTF-8 as lone surrogates."""

    text: str
    mark: bytes = b""
    codec: str = "utf-8"

    @classmethod
    def of(cls, raw: bytes, name: str) -> TextFile:
        """Decode a file. Raises ToolError for a binary file."""
        mark, codec = next(((mark, codec) for mark, codec in _MARKS if raw.startswith(mark)), (b"", "utf-8"))
        body = raw[len(mark) :]
        try:
            text = body.decode(codec, "surrogateescape" if codec == "utf-8" else "strict")
        except UnicodeDecodeError:
            raise ToolError(f"{name} is not valid {codec}; it cannot be edited as text") from None
        if "\0" in text:
            raise ToolError(f"{name} is a binary file ({len(raw):,} bytes); it cannot be edited as text")
        return cls(text, mark, codec)

    @property
    def line_end(self) -> str:
        """The line ending of most lines."""
        windows = self.text.count("\r\n")
        return "\r\n" if 2 * windows > self.text.count("\n") else "\n"

    def encode(self, text: str) -> bytes:
        """Encode a new text for this file."""
        return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")

    def with_own_line_ends(self, text: str) -> str:
        """Convert the line endings of a text to those of this file; a text that has `\\r\\n` is left alone."""
        if "\r\n" in text or self.line_end == "\n":
            return text
        return text.replace("\n", "\r\n")
