"""Read files as an editor has them, and save them through it.

An editor holds text without byte-order mark and often with its own line ends. Where its text says the same as the file
on the disk, the file's bytes count.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from nca.messages import clean_text
from nca.tools.editor import EditorFiles
from nca.tools.files.read_files import MAX_CHANGED_BYTES
from nca.tools.files.text_file import TextFile
from nca.tools.tool import ToolError

_BYTE_ORDER_MARK = "\ufeff"


def as_in_editor(file: BinaryIO, path: Path, open_files: EditorFiles) -> BinaryIO:
    """The file; or, in its place, what the editor has of it and has not saved. Blocks."""
    if os.fstat(file.fileno()).st_size > MAX_CHANGED_BYTES:
        return file
    saved = _text_of(file.read(MAX_CHANGED_BYTES + 1))
    file.seek(0)
    text = open_files.read(path) if saved is not None else None
    if saved is None or text is None or says_the_same(saved.text, text):
        return file
    text = clean_text(text).removeprefix(_BYTE_ORDER_MARK)
    # A file without a name: whoever reads it may ask for its size, as for any other.
    unsaved: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    unsaved.write(saved.encode(saved.with_own_line_ends(text)))
    unsaved.seek(0)
    file.close()
    return unsaved


def is_unsaved(facts: os.stat_result) -> bool:
    """Whether a file that `as_in_editor` gave is the editor's text and not the one on the disk."""
    return facts.st_nlink == 0


def can_save(before: TextFile | None, after: str) -> bool:
    """Whether an editor can hold the text and give back the same bytes, as far as is known."""
    try:
        after.encode()
    except UnicodeEncodeError:
        return False
    return before is None or (before.codec == "utf-8" and not before.mark)


def says_the_same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but their line ends and a byte-order mark."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")


def _text_of(raw: bytes) -> TextFile | None:
    try:
        return TextFile.of(raw, "")
    except ToolError:
        return None
