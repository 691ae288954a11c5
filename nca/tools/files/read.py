"""The tools read_file and list_directory. Both read no more from disk than they show."""

from __future__ import annotations

import asyncio
import codecs
import io
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from nca.context.admission import Limits
from nca.context.tokens import text_tokens
from nca.errors import system_reason
from nca.humanize import counted
from nca.images import MAX_IMAGE_BYTES, image_kind, image_part, image_problem, image_size
from nca.safe_files import Folder
from nca.tools.files.reading_rules import MAX_CHANGED_BYTES, FilesRead
from nca.tools.files.text_file import is_binary, is_unsaved
from nca.tools.files.workspace import IsDirectory, Workspace, shown
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_LINES = 2_000
MAX_BYTES = 256 * 1024
"""The most that read_file returns at once. It bounds the memory; admission cuts further for the view."""
MAX_SKIPPED_BYTES = 1 << 30
MAX_COUNTED_BYTES = 8 << 20
"""A file up to this size is read to its end to count its lines."""
MAX_UTF16_BYTES = 8 << 20
MAX_ENTRIES = 500
MAX_LISTED = 100_000
_PIECE_BYTES = 64 * 1024
_NOTES_BYTES, _NOTES_LINES, _NOTES_TOKENS = 400, 2, 120
_LEAST_ROOM_BYTES = 200
"""Room for the notes above and below a page."""


@dataclass(eq=False)
class ReadFile(TypedTool):
    """All but the workspace are asked at each call.

    files_read  records reads
    can_see     whether the model takes images
    limits      of a result: a page ends with the last line that fits, so that it is never cut in its middle
    """

    name: ClassVar[str] = "read_file"
    permission: ClassVar[Permission] = "read"
    workspace: Workspace
    files_read: FilesRead = field(default_factory=FilesRead)
    can_see: Callable[[], bool] = lambda: False
    limits: Callable[[], Limits] = Limits

    async def call(
        self,
        path: Annotated[str, "The file, relative to the working directory."],
        offset: Annotated[int, "First line, from 1."] = 1,
        limit: Annotated[int, "Lines, at most 2000."] = MAX_LINES,
    ) -> ToolOutcome:
        """Read a text file, or a range of its lines, or an image."""
        try:
            return await asyncio.to_thread(self._read, path, max(1, offset), min(max(1, limit), MAX_LINES))
        except IsDirectory:
            # Small models call read_file again and again, whatever an error says.
            return await asyncio.to_thread(lambda: listing(self.workspace, self.workspace.resolve(path), path))

    def summarize(self, arguments: dict[str, Any]) -> str:
        line = f"read {shown(str(arguments.get('path', '')))}"
        first = max(1, int(arguments.get("offset") or 1))
        return f"{line} from line {first:,}" if first > 1 else line

    def _read(self, name: str, offset: int, limit: int) -> ToolOutcome:
        path = self.workspace.resolve_to_read(name)
        with self.workspace.open(path, name) as file:
            size = (facts := os.fstat(file.fileno())).st_size
            is_new = is_unsaved(facts) and not os.path.lexists(path)
            head = file.read(8192)
            file.seek(0)
            if kind := image_kind(head):
                return self._image(file, kind, shown(name))
            source: BinaryIO = file
            raw: bytes | None = None
            if size <= MAX_CHANGED_BYTES:
                # The shown and the recorded bytes must be the same, even if somebody writes meanwhile.
                raw = file.read(MAX_CHANGED_BYTES + 1)
                source = io.BytesIO(raw)
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                source = io.BytesIO(source.read(MAX_UTF16_BYTES).decode("utf-16", "replace").encode())
            elif is_binary(head):
                raise ToolError(f"{shown(name)} is a binary file ({size:,} bytes)")
            limits = self.limits()
            room = max(_LEAST_ROOM_BYTES, min(MAX_BYTES, limits.max_bytes) - _NOTES_BYTES)
            most_lines = max(1, min(limit, limits.max_lines - _NOTES_LINES))
            page = _page(source, offset, most_lines, room, count=size <= MAX_COUNTED_BYTES)
            while (smaller := _room_within(page, limits.max_tokens)) < room:
                source.seek(0)
                room = smaller
                page = _page(source, offset, most_lines, room, count=size <= MAX_COUNTED_BYTES)
        if page.last < offset and page.total is None:
            raise ToolError(f"line {offset:,} of {shown(name)} is too far into the file to be read")
        if page.last < offset and offset > 1:
            raise ToolError(f"{shown(name)} has {counted(page.reached, 'line')}; line {offset:,} is past its end")
        if raw is not None:
            # A line that is longer than can be shown counts: no other read shows more of it.
            self.files_read.note_page(path, raw, page.reached, page.first, page.last)
        return _answer(self.workspace.relative(path), page, asked_last=offset + limit - 1, is_new=is_new)

    def _image(self, file: BinaryIO, kind: str, name: str) -> ToolOutcome:
        size = os.fstat(file.fileno()).st_size
        if not self.can_see():
            unseen = "and the model takes none, as far as is known (model.images)"
            raise ToolError(f"{name} is an image ({kind}, {size:,} bytes), {unseen}")
        raw = file.read(MAX_IMAGE_BYTES + 1)
        if len(raw) > MAX_IMAGE_BYTES:
            raise ToolError(f"{name} is an image of {size:,} bytes; the most is {MAX_IMAGE_BYTES:,}")
        if problem := image_problem(raw):
            raise ToolError(f"the image {name} {problem}")
        width, height = image_size(raw)
        said = f"{kind}, {width} by {height}, {len(raw):,} bytes"
        return ToolOutcome(f"[{name}: {said}; shown beside]", summary=said, media=(image_part(raw, kind),))


@dataclass(frozen=True, slots=True)
class _Page:
    """Lines `first` to `last` of a file, which was read up to line `reached`.

    total   the number of lines, or None if they were not counted
    is_cut  the last line is not whole
    """

    raw: bytes
    first: int
    last: int
    reached: int
    total: int | None
    is_cut: bool


def _room_within(page: _Page, max_tokens: int | None) -> int:
    """Bytes for a page of at most this many tokens, estimated from this page; at least its size if it fits."""
    if max_tokens is None:
        return MAX_BYTES
    most, tokens = max_tokens - _NOTES_TOKENS, text_tokens(page.raw.decode("utf-8", "replace"))
    return MAX_BYTES if tokens <= most else max(_LEAST_ROOM_BYTES, int(0.95 * len(page.raw) * most / tokens))


def _page(file: BinaryIO, offset: int, limit: int, room: int, *, count: bool) -> _Page:
    """Read a page of at most `room` bytes in pieces, so lines may have any length.

    With `count`, read on to the end to count the lines.
    """
    kept: list[bytes] = []
    read_bytes = 0
    line, last, is_cut, is_new_line = 0, offset - 1, False, True
    while piece := file.readline(_PIECE_BYTES):
        read_bytes += len(piece)
        line += is_new_line
        is_new_line = piece.endswith(b"\n")
        is_beyond = False
        if offset <= line < offset + limit and room:
            kept.append(piece[:room])
            room -= len(kept[-1])
            last, is_cut = line, len(kept[-1]) < len(piece)
        elif kept and line == last:
            is_cut = True
        else:
            is_beyond = line > offset or read_bytes > MAX_SKIPPED_BYTES
        if not count and (is_beyond or is_cut):
            return _whole_lines(_Page(b"".join(kept), offset, last, line, None, is_cut))
    return _whole_lines(_Page(b"".join(kept), offset, last, line, line, is_cut))


def _whole_lines(page: _Page) -> _Page:
    """The page without a last line that is not whole, unless that is its only one."""
    if not page.is_cut or page.last == page.first:
        return page
    return replace(page, raw=page.raw[: page.raw.rfind(b"\n") + 1], last=page.last - 1, is_cut=False)


def _answer(name: str, page: _Page, *, asked_last: int, is_new: bool) -> ToolOutcome:
    # Leave out the byte-order mark, and a character that was cut at the end.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if page.first == 1 else "utf-8")("replace")
    text = decoder.decode(page.raw, final=not page.is_cut)
    lines = page.last - page.first + 1
    if not text:
        return ToolOutcome(f"[{name} is empty]", summary="empty")
    notes = ["in the person's editor, not on the disk yet"] if is_new else []
    if page.first > 1 or page.last != page.total:
        of = f" of {page.total:,}" if page.total is not None else ""
        notes.append(f"lines {page.first}-{page.last}{of}")
    if page.is_cut:
        notes.append(f"line {page.last} is longer than shown; the rest of it was left out")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in page.raw:
        notes.append("not UTF-8: what could not be decoded is shown as \ufffd")
    header = f"[{name}: {'; '.join(notes)}]\n" if notes else ""
    if page.last != page.total:
        text += "" if text.endswith("\n") else "\n"
        why = "no more fit; " if page.last < asked_last else ""
        text += f"[{why}continue with offset={page.last + 1}]"
    is_part = page.total is not None and lines < page.total
    which = f"line {page.first:,}" if lines == 1 else f"lines {page.first:,}–{page.last:,}"
    return ToolOutcome(header + text, summary=f"{which} of {page.total:,}" if is_part else counted(lines, "line"))


class ListDirectory(TypedTool):
    name: ClassVar[str] = "list_directory"
    permission: ClassVar[Permission] = "read"

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def call(self, path: Annotated[str, "Relative to the working directory."] = ".") -> ToolOutcome:
        """List a directory: directories with a slash, files with their size."""
        return await asyncio.to_thread(lambda: listing(self._workspace, self._workspace.resolve(path), path))

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"list {shown(str(arguments.get('path') or '.'))}"


def listing(workspace: Workspace, path: Path, name: str) -> ToolOutcome:
    """List a directory under the workspace's root, one line an entry. Raises ToolError, which mentions `name`."""
    try:
        with workspace.folder(path) as folder, folder.entries() as scan:
            entries = sorted(islice(scan, MAX_LISTED), key=lambda entry: entry.name)
            lines = [_entry(folder, entry) for entry in entries[:MAX_ENTRIES]]
    except FileNotFoundError:
        raise ToolError(f"there is no directory {shown(name)}") from None
    except NotADirectoryError:
        raise ToolError(f"{shown(name)} is a file; use read_file") from None
    except OSError as error:
        raise ToolError(f"{shown(name)} cannot be listed ({system_reason(error)})") from error
    if len(entries) > MAX_ENTRIES:
        more = "at least " if len(entries) == MAX_LISTED else ""
        lines.append(f"[{more}{len(entries) - MAX_ENTRIES:,} more entries are not shown]")
    count = f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"
    return ToolOutcome("\n".join(lines) or f"[{shown(name)} is empty]", summary=count)


def _entry(folder: Folder, entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    try:
        facts = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            return f"{name} -> {shown(os.readlink(entry.name, dir_fd=folder.handle))}"
    except OSError:
        # It vanished meanwhile, or its folder may be listed but not entered.
        return name
    if stat.S_ISDIR(facts.st_mode):
        return f"{name}/"
    return f"{name}  {facts.st_size:,} bytes" if stat.S_ISREG(facts.st_mode) else f"{name}  (special file)"
