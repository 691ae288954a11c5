"""Decode a text file, encode it again with the same encoding, byte-order mark and line endings, and write it.

An editor holds text without byte-order mark and often with its own line ends. Where its text says the same as the file
on the disk, the file's bytes count.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nca.messages import clean_text
from nca.safe_files import Folder
from nca.tools.files.reading_rules import MAX_CHANGED_BYTES
from nca.tools.tool import EditorFiles, ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PROBED_BYTES = 8192
_BYTE_ORDER_MARK = "\ufeff"


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

    def would_mix(self, text: str) -> bool:
        """Whether a new text would put UTF-8 beside bytes of another encoding, of which this file has nothing else."""
        return _has_other_bytes(text) and _has_letters(text) and not _has_letters(self.text)

    def with_own_line_ends(self, text: str) -> str:
        """Convert the line endings of a text to those of this file; a text that has `\\r\\n` is left alone."""
        if "\r\n" in text or self.line_end == "\n":
            return text
        return text.replace("\n", "\r\n")


def as_in_editor(file: BinaryIO, path: Path, open_files: EditorFiles) -> BinaryIO:
    """The file; or, in its place, the editor's unsaved text. Blocks."""
    if os.fstat(file.fileno()).st_size > MAX_CHANGED_BYTES:
        return file
    raw = file.read(MAX_CHANGED_BYTES + 1)
    file.seek(0)
    try:
        saved = TextFile.of(raw, "")
    except ToolError:
        return file
    text = open_files.read(path).get(path)
    if text is None or says_the_same(saved.text, text):
        return file
    file.close()
    return _unsaved(text, saved)


def new_in_editor(path: Path, open_files: EditorFiles) -> BinaryIO | None:
    """A text that is not on the disk yet; None if the editor has none, or nothing is in it. Blocks."""
    text = open_files.read(path).get(path)
    return _unsaved(text, TextFile("")) if text else None


def _unsaved(text: str, saved: TextFile) -> BinaryIO:
    text = clean_text(text).removeprefix(_BYTE_ORDER_MARK)
    # A file without a name: whoever reads it may ask for its size, as for any other.
    unsaved: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    unsaved.write(saved.encode(saved.with_own_line_ends(text)))
    unsaved.seek(0)
    return unsaved


def is_unsaved(facts: os.stat_result) -> bool:
    """Whether an opened file is the editor's text and not the one on the disk."""
    return facts.st_nlink == 0


def unsaved_among(open_files: EditorFiles, files: Mapping[Path, Iterable[bytes]]) -> set[Path]:
    """The files of which the editor has a text that is none of these contents. Blocks."""
    return {
        path for path, text in open_files.read(*files).items() if not any(_may_be(one, text) for one in files[path])
    }


def _may_be(raw: bytes, text: str) -> bool:
    """Whether an editor may show a content so. One that is no text it shows in its own way."""
    try:
        file = TextFile.of(raw, "")
    except ToolError:
        return True
    return says_the_same(file.text, text) or not can_save(None, file.text)


def can_save(before: TextFile | None, after: str) -> bool:
    """Whether an editor can probably hold the text and give back the same bytes."""
    return not _has_other_bytes(after) and (before is None or (before.codec == "utf-8" and not before.mark))


def _has_other_bytes(text: str) -> bool:
    """Whether it holds bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _has_letters(text: str) -> bool:
    """Whether it holds characters that are neither ASCII nor such bytes."""
    return not text.encode(errors="ignore").isascii()


def says_the_same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but their line ends and a byte-order mark."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")


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
