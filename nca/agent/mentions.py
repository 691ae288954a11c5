"""Attach what a person names with `@path`: the text of a file, the listing of a directory, or an image.

Texts and listings share the budget for files. If something cannot be attached, one line says why and nothing is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any, NamedTuple

from nca.context.admission import FILE_CUT, PREVIEW_BYTES, Admitted, fit_files
from nca.context.tokens import frame_tokens, part_tokens
from nca.errors import UsageError
from nca.humanize import UsualNotice, check_kind, counted
from nca.images import MAX_IMAGE_BYTES, image_kind, image_part, image_problem
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, clean_text, user_message
from nca.tools.files.read import listing
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace, open_own, shown
from nca.tools.tool import ToolError
from nca.words import Source, Words, source_at

_MENTION = re.compile(r"(?:(?<=\s)|^)@(?:\"([^\"\n]+)\"|((?:\\ |[^\s\"'`()<>{}|;,])+))")
_LINES = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$")
"""The form in which programs and people add lines to a file's name: `:12`, `:12:5`, `:3-5`, `#L3-L5`."""
_PATTERN = re.compile(r"[*?\[]")
_LOOKS_LIKE_A_FILE = re.compile(r"^[~./]|/[^/]*\.\w{1,5}$|\.(?:go|lock|log|md|rs|sql|toml|tsx?|ya?ml)$")
"""A place, or an extension that Python's table of types lacks. `@team` and `@pytest.fixture` are text."""
_TYPES = MimeTypes(filenames=())
"""Python's own table, whatever this machine adds."""
_CODE = re.compile(r"\(|[ \t]*\n(?:[ \t]*@.*\n)*[ \t]*(?:async )?(?:def|class) +\w+[\[(:{]")
"""What follows a decorator in code: its arguments, or a line that begins what it decorates."""
_READ_LIMIT_BYTES = PREVIEW_BYTES + 1
MOST_CHECKED = 50
HOOK = "a hook"
"""The name under which a hook's words go along with a message."""
MOST_NAMED = 4
"""Attached files that have a line each."""
REST_TOKENS = 16
"""Raw tokens of the words that say how the rest of a cut file is read."""


class Beside(NamedTuple):
    """A text that goes along with a message as a file of this name would.

    source  where it came from. "attached" can be attached again, so it is cut like a file; nothing else is
    """

    name: str
    text: str
    source: Source


def check_beside(texts: Any) -> None:
    """Raise UsageError for what a program passes as texts that go along and is none."""
    wanted = "a list of nca.agent.mentions.Beside(name, text, source)"
    check_kind(texts, list | tuple, "beside", wanted)
    for one in texts:
        check_kind(one, Beside, "beside", wanted)


class Mention(NamedTuple):
    """An existing file or directory, and the place of `@name` in the text."""

    name: str
    path: Path
    start: int
    end: int


def mentions(said: Words, source: Source = "typed") -> Iterator[re.Match[str]]:
    """The places where the person typed an `@`, with the name after it, which may be pasted. Other text names nothing.

    source  "pasted": where they pasted one, which names nothing until they say so
    """
    own = "".join(part.text if part.source in ("typed", "pasted") else "\n" * len(part.text) for part in said)
    return (match for match in _MENTION.finditer(own) if source_at(said, match.start()) == source)


def existing(said: Words, directory: Path, source: Source) -> Iterator[Mention]:
    """Those of the first MOST_CHECKED mentions with an existing file. Looks at the disk for each."""
    for match in islice(mentions(said, source), MOST_CHECKED):
        for name in _names(match):
            if (path := _existing(name, directory)) is not None:
                yield Mention(name, path, *match.span())
                break


def _names(match: re.Match[str]) -> tuple[str, ...]:
    """The names that may be meant: a sentence may end after one without quotes, and lines may follow any."""
    whole = match[1] or match[2].replace("\\ ", " ")
    name = whole if match[1] else whole.rstrip(".:!?") or whole
    return whole, name, _LINES.sub("", name) or name


def mentioned(said: Words, directory: Path, servers: Collection[str] = ()) -> list[Path]:
    """The files and directories that the person names with `@`, each once. Raises UsageError for a missing file.

    servers  MCP servers: `@NAME:…` is a resource of that server
    """
    found: list[Path] = []
    for match in mentions(said):
        *written, name = _names(match)
        if written[-1].partition(":")[0] in servers and ":" in written[-1]:
            continue
        path = next((path for one in (*written, name) if (path := _existing(one, directory)) is not None), None)
        if path is None and not _CODE.match(match.string, match.end()):
            if longer := _with_spaces(match, directory):
                advice = f'Write @"{shown(longer)}…" with quotes. Nothing was sent.'
                raise UsageError(f"@{shown(longer)}: a name with spaces needs quotes.", advice=advice)
            is_file = _LOOKS_LIKE_A_FILE.search(name) or any(_TYPES.guess_type(name))
            if is_file and _PATTERN.search(name):
                raise UsageError(
                    f"@{name} is not a file, and @ takes no pattern.", advice="Name each. Nothing was sent."
                )
            if is_file:
                where = "" if name.startswith(("/", "~")) else f" in {directory}"
                advice = "Nothing was sent. To send it as text, put it in `backticks`."
                raise UsageError(f"@{name}: there is no such file{where}.", advice=advice)
        elif path is not None and path not in found:
            found.append(path)
    return found


def _with_spaces(match: re.Match[str], directory: Path) -> str:
    """The longer name of a file or folder that continues after a space; "" if there is none."""
    if not match[2] or not (rest := match.string[match.end() :]).startswith(" "):
        return ""
    written = _names(match)[0]
    above, _, begins = written.rpartition("/")
    folder = _existing(above or ("/" if written.startswith("/") else "."), directory)
    try:
        names = [one.name for one in folder.iterdir()] if folder is not None else []
    except OSError:
        return ""
    found = max((name for name in names if f"{begins}{rest}".startswith(name) and " " in name), key=len, default="")
    return f"{written.removesuffix(begins)}{found}" if len(found) > len(begins) else ""


def _existing(name: str, directory: Path) -> Path | None:
    try:
        written = Path(name) if name.startswith("./") else Path(name).expanduser()
        path = (directory / written).resolve()
        return path if os.path.exists(path) else None
    except (OSError, RuntimeError, ValueError):
        # No file: a name that is too long, a loop of links, or an unknown user's home.
        return None


def real_path(path: Path) -> Path:
    """With its links followed. Whoever opens it is told of a loop, or that no file can have this name."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


def with_attachments(
    said: Words,
    paths: Sequence[Path],
    directory: Path,
    budget_raw_tokens: int,
    *,
    shared: Sequence[Beside] = (),
    can_see: bool = False,
    files_read: FilesRead | None = None,
) -> Message:
    """The person's message with its files, cut to fit the budget; images are attached whole. Raises UsageError.

    Other texts that nobody can attach again are whole, such as a command's output: the log is to have all of it.

    shared   texts that are attached like files
    can_see  the model takes images
    files_read  learns which files came along, and which of them in whole: those may be changed without a read
    """
    if not paths and not shared:
        return user_message(said)
    read = [_read(path, name_in(path, directory), can_see=can_see) for path in paths]
    files = [one for one in read if isinstance(one, _Text)]
    whole = [AttachmentPart(*one[:2], _size(one.text), source=one.source) for one in shared if one.source != "attached"]
    files += [_Text(one.name, one.text, _size(one.text), of=one.source) for one in shared if one.source == "attached"]
    images = [one for one in read if isinstance(one, _Image)]
    # Half is for the files in any case: what is whole can still be cut in the view.
    room = max(budget_raw_tokens // 2, budget_raw_tokens - sum(map(part_tokens, whole)))
    room -= sum(part_tokens(one.part) for one in images)
    if images and room < 0:
        raise UsageError("There is no room for so many images.", advice="Nothing was sent; /compact makes room.")
    room -= sum(frame_tokens(file.name) + REST_TOKENS * (file.source is not None) for file in files)
    fitted = fit_files([(file.name, file.text) for file in files], max(0, room), sizes=[file.size for file in files])
    for file, admitted in zip(files, fitted, strict=True):
        if admitted.is_cut and not admitted.text:
            said_so = f"There is no room for the {file.size:,} bytes of {shown(file.name)}."
            raise UsageError(said_so, advice="Nothing was sent; /compact makes room.")
    attached = (
        AttachmentPart(file.name, _continued(file, admitted), admitted.original_bytes, admitted.is_cut, file.of)
        for file, admitted in zip(files, fitted, strict=True)
    )
    for file, admitted in zip(files, fitted, strict=True):
        if files_read is not None and file.source is not None:
            files_read.attached.add(file.source[0])
            if not admitted.is_cut:
                files_read.note(*file.source)
    # The name comes first, because the request has no other place for it.
    shown_images = (part for one in images for part in (TextPart(f"[image {one.name}]", source="nca"), one.part))
    return user_message(said, (*attached, *whole, *shown_images))


def went_along(message: Message) -> list[Beside]:
    """The texts that waited for this message. A hook is asked about each message anew."""
    parts = (part for part in message.attachments if part.source != "attached" and part.path != HOOK and part.text)
    return [Beside(part.path, part.text, part.source) for part in parts]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _continued(file: _Text, admitted: Admitted) -> str:
    """The text as it fits; of a file that is cut, with the line from which read_file shows the rest."""
    if file.source is None or not admitted.is_cut or not admitted.text:
        return admitted.text
    kept, _, notice = admitted.text.rpartition("\n")
    return f"{kept}\n{notice.removesuffix(']')}; read_file with offset={kept.count(chr(10)) + 1} shows the rest]"


@dataclass(frozen=True, slots=True)
class _Text:
    """The part read of a file of `size` bytes, or a directory's listing.

    source  the file and its bytes
    of      who said it
    """

    name: str
    text: str
    size: int
    source: tuple[Path, bytes] | None = None
    of: Source = "attached"


@dataclass(frozen=True, slots=True)
class _Image:
    name: str
    part: MediaPart


def _read(path: Path, name: str, *, can_see: bool) -> _Text | _Image:
    try:
        if os.path.isdir(path):
            text = clean_text(listing(Workspace(path), path, name).text)
            return _Text(f"{name.rstrip('/')}/", text, len(text.encode()))
        with open_own(path, name) as file:
            size = os.fstat(file.fileno()).st_size
            raw = file.read(_READ_LIMIT_BYTES)
    except (ToolError, OSError) as error:
        raise UsageError(f"@{shown(name)}: {error}.", advice="Nothing was sent.") from error
    if kind := image_kind(raw):
        return _image(raw, kind, shown(name), size, can_see=can_see)
    if b"\0" in raw[:8192]:
        raise UsageError(f"@{shown(name)} is not a text file.", advice="Nothing was sent.")
    return _Text(name, clean_text(raw.decode("utf-8", "replace")), size, (path, raw))


def _image(raw: bytes, kind: str, name: str, size: int, *, can_see: bool) -> _Image:
    if not can_see:
        said = f"@{name} is an image ({kind}), and the model takes none, as far as is known."
        raise UsageError(
            said, advice="Nothing was sent. If it does: /config model.images yes. /model switches to another."
        )
    if size > MAX_IMAGE_BYTES:
        said = f"@{name} is an image of {size:,} bytes; the most is {MAX_IMAGE_BYTES:,}."
        raise UsageError(said, advice="Nothing was sent.")
    if problem := image_problem(raw):
        raise UsageError(f"@{name}: the image {problem}.", advice="Nothing was sent.")
    return _Image(name, image_part(raw, kind))


def name_in(path: Path, directory: Path) -> str:
    """A file's name for a person who works in the directory."""
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)


def attached_lines(message: Message, tokens_of: Callable[[int], int]) -> Iterator[str]:
    """The attachments of a message: a line for each file that was cut, and for the first of the others.

    tokens_of  tokens of so many raw ones, as the meter counts them
    """
    whole: list[str] = []
    by_lines = {_names(match)[-1] for match in _MENTION.finditer(message.text) if _names(match)[-1] != _names(match)[1]}
    for name, part in _attached(message):
        is_of_hook = name == HOOK
        what = "What a hook added" if is_of_hook else name
        cost = f"about {tokens_of(part_tokens(part)):,} tokens"
        if isinstance(part, MediaPart) or not part.is_cut:
            size = _lines(part)
            size = f"all {size}" if size and name in by_lines else size
            told = f"A hook added {size}" if is_of_hook else " · ".join(filter(None, (f"Attached {name}", size)))
            line = f"{told} · {cost}"
            whole.append(UsualNotice(line) if is_of_hook else line)
        else:
            kept = len((part.text.rpartition(FILE_CUT)[0] or part.text).encode())
            yield f"{what} was cut to fit: {kept:,} of {part.original_bytes:,} bytes · {cost}"
    yield from whole[:MOST_NAMED]
    if len(whole) > MOST_NAMED:
        yield f"… and {len(whole) - MOST_NAMED} more"


def said_and_attached(message: Message) -> str:
    """A message in words: what came along with it, with its lines; then its text, if that says more than the names."""
    along: list[str] = []
    for name, part in _attached(message):
        is_file = isinstance(part, AttachmentPart) and part.source == "attached"
        along.append(", ".join(filter(None, (f"@{name}" if is_file else name, _lines(part)))))
    said = message.text if _MENTION.sub("", message.text).strip() or not along else ""
    return " · ".join(filter(None, (*along, said)))


def _lines(part: AttachmentPart | MediaPart) -> str:
    return "" if isinstance(part, MediaPart) else counted(len(part.text.splitlines()), "line")


def _attached(message: Message) -> Iterator[tuple[str, AttachmentPart | MediaPart]]:
    """The parts that were attached, each with its name."""
    name = ""
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, AttachmentPart):
            yield part.path, part
        elif isinstance(part, MediaPart):
            yield name or part.kind, part
        else:
            name = part.text[1:-1] if part.source == "nca" else ""
