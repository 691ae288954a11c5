"""`nca sessions`: export, import, copy, rename, pin, fork, archive, restore, delete, backup, usage and vacuum."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.early_questions import agrees, can_ask
from nca.cli.flags import AsAgent, AsJson, ExportFormat, SessionId, open_source, print_notes, say
from nca.cli.printing import echo
from nca.cli.startup import named_place, open_session_store, store_place
from nca.cli.store import disk_parts
from nca.errors import NcaError, SessionNotFound, StoreDamaged, StoreError, UsageError
from nca.humanize import byte_size, counted
from nca.safe_files import is_missing
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import namesakes_line, title, written_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nca.sessions import SessionInfo, Store
    from nca.sessions.transfer import SessionCopy


_TITLE_CHARS = 60


def rename_session(
    session_id: SessionId, name: Annotated[str, typer.Argument(help="The new name. An empty name removes it.")]
) -> None:
    """Name a session. Every command accepts the name in place of the id."""
    with open_session_store(read_only=False) as store, store.open_session(session_id) as session:
        session.rename(name)
        info = session.info
        others = session.namesakes
    echo(f"Renamed {info.id} to {one_line(info.name)!r}." if info.name else f"Removed the name of {info.id}.")
    _say_namesakes(info, others)


def pin_session(session_id: SessionId) -> None:
    """Never archive this session automatically, no matter how old it is or how many there are."""
    _set_pinned(session_id, is_pinned=True)


def unpin_session(session_id: SessionId) -> None:
    """Let a session be archived again (session.retention_days, session.max_sessions)."""
    _set_pinned(session_id, is_pinned=False)


def fork_session(
    session_id: SessionId,
    at: Annotated[int | None, typer.Option(metavar="N", help="Copy up to message N, as `show` numbers them.")] = None,
    name: Annotated[str, typer.Option(help="A name for the copy.")] = "",
) -> None:
    """Copy a session and print the copy's id."""
    with open_session_store(read_only=False) as store:
        info = store.fork(session_id, at=at, name=name)
        others = _namesakes(store, info)
    print_new_session(info)
    _say_namesakes(info, others)


def delete_session(
    session_id: SessionId, yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False
) -> None:
    """Delete a session, with its stored tool outputs. `archive` keeps it in a file instead.

    `vacuum` removes its text from free room of the databases too. What you typed stays in the prompt's history.
    """
    with open_session_store(read_only=True) as store:
        info = store.find(session_id)
    if not yes:
        if not can_ask():
            raise UsageError("Cannot ask for confirmation here.", advice="Use --yes to delete without asking.")
        count = counted(info.messages, "message")
        if not agrees(f"Permanently delete {info.id}, “{title(info, _TITLE_CHARS)}”, {count}?"):
            echo("Nothing was deleted.")
            return
    with open_session_store(read_only=False) as store:
        store.delete(info.id)
    echo(f"Deleted {info.id}.")


def back_up_sessions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
) -> None:
    """Copy the whole database to a file, and check the copy. This is safe while nca is running."""
    from nca.sessions.corruption import is_checked
    from nca.sessions.store_errors import on_failure
    from nca.transcripts.export_formats import refuse_existing

    refuse_existing(file, advice="Name another file.")
    with open_session_store(read_only=True) as store:
        count = len(store.list(None))
        if not (store.can_take_over or (store.path and not is_missing(store.path))):
            raise UsageError("There are no sessions to back up.")
        store.back_up(file)
        with on_failure(lambda: file.unlink(missing_ok=True)):
            try:
                is_checked(file, math.inf)
            except StoreDamaged as error:
                said = f"The copy is not whole, so it was deleted: {error.message}"
                raise StoreDamaged(said, advice="`nca doctor` says whether the sessions themselves are.") from error
    echo(f"Backed up {counted(count, 'session')} to {one_line(str(file))}.")


def print_new_session(info: SessionInfo) -> None:
    """Print a new session's id to standard output for scripts, and how to resume it to standard error."""
    echo(info.id)
    echo(f"{counted(info.messages, 'message')}. Resume with: nca loop --resume {info.id}", err=True)


def _namesakes(store: Store, info: SessionInfo) -> list[str]:
    if not info.name:
        return []
    with store.open_session(info.id, read_only=True) as session:
        return session.namesakes


def _say_namesakes(info: SessionInfo, others: Sequence[str]) -> None:
    if said := namesakes_line(info, others):
        echo(said, err=True)


def _set_pinned(session_id: str, *, is_pinned: bool) -> None:
    with open_session_store(read_only=False) as store, store.open_session(session_id) as session:
        session.set_pinned(is_pinned)
        info = session.info
    echo(f"{'Pinned' if is_pinned else 'Unpinned'} {info.id}, “{title(info, _TITLE_CHARS)}”.")


def archive_session(session_id: SessionId) -> None:
    """Move a session to a compressed file, out of lists and search. `restore` brings it back."""
    from nca.transcripts.archives import archive

    with open_session_store(read_only=False) as store:
        path, info = archive(store, session_id)
    echo(f"Archived {info.id} to {one_line(str(path))}. To bring it back: nca sessions restore {info.id}")


def restore_session(
    archive: Annotated[str, typer.Argument(metavar="ID|FILE", help="An archived session, or an archive's file.")],
) -> None:
    """Bring an archived session back, with everything that it had."""
    from nca.transcripts.archives import restore

    with open_session_store(read_only=False) as store:
        info = restore(store, archive)
    print_new_session(info)


def show_usage(as_json: AsJson = False) -> None:
    """Show how much disk space each part uses, and the largest sessions. It writes nothing."""
    with open_session_store(read_only=True) as store:
        sizes = store.sizes()
        parts = disk_parts(sizes)
        largest = [(store.find(session_id), size_bytes) for session_id, size_bytes in sizes.largest]
    total = sum(part.size_bytes for part in parts)
    if as_json:
        rows = [{"id": info.id, "bytes": size_bytes} for info, size_bytes in largest]
        found = {"total_bytes": total, "parts": [part._asdict() for part in parts], "largest_sessions": rows}
        echo(json.dumps(found, indent=2))
        return
    echo(f"{byte_size(total)} in all, in {one_line(str(store_place().path.parent))}")
    for part in parts:
        say(f"  {part.name:<13} {byte_size(part.size_bytes):>10}  {one_line(part.detail)}", hang=28)
    if largest:
        echo("The largest sessions, without what the index takes for them:")
    for info, size_bytes in largest:
        echo(f"  {info.id:<13} {byte_size(size_bytes):>10}  {title(info, _TITLE_CHARS)}")


def vacuum_sessions() -> None:
    """Give the databases' free space back to the disk. Kept data does not change."""
    path, url = store_place()
    if not url and is_missing(path):
        echo("No sessions yet.")
        return
    with open_session_store(read_only=False) as store:
        before = store.sizes().total
        store.vacuum()
        after = store.sizes().total
    freed = max(0, before - after)
    echo(f"{byte_size(before)} → {byte_size(after)}: {byte_size(freed)} given back. All sessions are as they were.")


_STDOUT = "-"


def export_session(
    session_id: SessionId,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The file, or - for standard output.")] = None,
    format_name: ExportFormat = None,
    html: Annotated[bool, typer.Option("--html", help="Same as --format html.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Same as FILE.")] = None,
    agent: AsAgent = None,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Do not redact API keys.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
) -> None:
    """Write a session to a file: Markdown or HTML to read, JSON to import again, JSON lines for other programs.

    With --as, write it where another agent looks for its sessions, unless FILE is named, and print the command that
    resumes it.
    """
    from nca.transcripts.export_formats import format_of, rendered, write_private
    from nca.transcripts.session_file import redacted

    if file is not None and out is not None:
        raise UsageError("FILE and --out exclude each other.")
    if agent is not None:
        if html or as_json or format_name or force:
            raise UsageError("--as excludes --format, --html, --json and --force.")
        if _STDOUT in (file, out):
            raise UsageError(
                "--as writes a file; valid: the name of a FILE, or none to write it where the agent looks."
            )
    file = file or out or (_STDOUT if agent is None else "")
    asked = [name for name, is_asked in (("html", html), ("json", as_json)) if is_asked]
    chosen = format_of([*asked, *([format_name] if format_name else [])], file) if agent is None else ""
    with open_session_store(read_only=True) as store:
        copy = store.copy_of(session_id)
    if not no_redact:
        copy = redacted(copy)
    if agent is not None:
        _export_as(agent, copy, file)
        return
    data = rendered(copy, chosen, is_ascii=file == _STDOUT)
    if file == _STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    write_private(Path(file), data, overwrites=force)
    count = counted(len(copy.entries), "message")
    echo(f"Exported {copy.info.id} ({count}) to {one_line(file)} as {chosen}.", err=True)


def _export_as(name: str, copy: SessionCopy, file: str) -> None:
    from nca.transcripts.outgoing.conversation import write_for

    written = write_for(name, copy, os.environ, Path.home(), file)
    for line in written_lines(written):
        echo(line, err=True)
    echo(written.command)


def import_session(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="nca's JSON, a transcript, or another agent's session; - is stdin."),
    ],
    name: Annotated[str, typer.Option(help="A name for the session, if it is one.")] = "",
) -> None:
    """Import each file as a new session and print its id. If one is invalid, nothing is imported.

    FILE#KEY names one of several sessions in a file.
    """
    from nca.transcripts.conversation_file import read_conversation

    if name and len(files) > 1:
        raise UsageError("--name is for one session; valid: one FILE.")
    named = [open_source(file) for file in files]
    read = [read_conversation(source, directory=str(Path.cwd()), name=name, key=key) for source, key in named]
    with open_session_store(read_only=False) as store:
        for found in read:
            info = store.add(found.copy)
            print_notes(found.notes)
            print_new_session(info)
            _say_namesakes(info, _namesakes(store, info))


_PLACE = "Default: your store. Else a URL of PostgreSQL, or a file."


def copy_sessions(
    session_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Default: all sessions.")] = None,
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help=_PLACE)] = "",
    source: Annotated[str, typer.Option("--from", metavar="PLACE", help=_PLACE)] = "",
) -> int:
    """Copy sessions to another store, each exactly and under its id. Sessions that are there do not change."""
    begins = named_place("--from", source) if source else store_place()
    ends = named_place("--to", to) if to else store_place()
    if source and not begins.url and is_missing(begins.path):
        raise UsageError(f"--from {source}: there is no such file.")
    if to and not (ends.url or os.path.isdir(ends.path.parent)):
        raise UsageError(f"--to {to}: there is no folder {ends.path.parent}.")
    if begins == ends:
        raise UsageError("--from and --to are the same store.", advice="Example: --to postgresql://ada@db.example/nca")
    copied = same = 0
    problems: list[str] = []
    with (
        open_session_store(read_only=True, place=begins) as here,
        open_session_store(read_only=False, place=ends) as there,
    ):
        ids = [here.find(one).id for one in session_ids or ()] or [info.id for info in here.list(None)[::-1]]
        for session_id in ids:
            try:
                is_new = _copy(here, there, session_id)
            except NcaError as error:
                problems.append(f"{session_id}: {error}")
            else:
                copied, same = copied + is_new, same + (not is_new)
    echo(
        f"Copied {counted(copied, 'session')}."
        + (f" {same:,} {'was' if same == 1 else 'were'} already there." if same else "")
    )
    for problem in problems:
        echo(f"nca: {one_line(problem)}", err=True)
    return 1 if problems else 0


def _copy(here: Store, there: Store, session_id: str) -> bool:
    """True if it was copied, False if it was there. Raises StoreError if another session has its id, or it differs."""
    from nca.transcripts.archives import output_folders
    from nca.transcripts.session_file import to_json

    copy = here.exact_copy_of(session_id)
    try:
        known = there.find(session_id)
    except SessionNotFound:
        known = None
    if known is not None and known.id == session_id:
        if there.copy_of(session_id).entries != copy.entries:
            raise StoreError(
                "The other store has this session with other messages.", advice="`nca sessions show` shows each."
            )
        return False
    begins, ends = here.outputs_folder(session_id), there.outputs_folder(session_id)
    if begins and ends:
        for folder in filter(os.path.isdir, output_folders(begins, to_json(copy))):
            one = shutil.copy2 if folder == begins else _copy_what_is_missing
            shutil.copytree(folder, ends.with_name(folder.name), dirs_exist_ok=True, copy_function=one)
    there.add(copy, keeps_id=True)
    return True


def _copy_what_is_missing(begins: str, ends: str) -> None:
    """An output of another session, which the other store may have; a kill may have left a part of it."""
    if not os.path.exists(ends) or Path(ends).stat().st_size < Path(begins).stat().st_size:
        shutil.copy2(begins, ends)
