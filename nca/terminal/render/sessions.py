"""Stored sessions as text: short ids, titles, a table, and the lines for a resumed one.

Titles and names are untrusted text and are made safe here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nca.humanize import counted, local_time
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nca.agent.conversation import Conversation
    from nca.sessions.results import Hit, SessionHit
    from nca.sessions.session import SessionInfo
    from nca.sessions.sql import Whose
    from nca.terminal.render.output import Output
    from nca.transcripts.outgoing.conversation import Written

_NAMESAKES = 3
_FOUND_INDENT = 4
TITLE_CHARS = 200
_ID_CHARS = 12
_PLACE_CHARS = 30
"""Of a directory in a table."""


def short_id(session_id: str) -> str:
    """The start of an id, as much as fits on a line. Ids made by nca are shorter than the limit."""
    return one_line(session_id, _ID_CHARS)


def title(info: SessionInfo, limit: int = TITLE_CHARS) -> str:
    """The session's name, or else its first message. One whose messages were all taken back has neither."""
    return one_line(info.name or info.title, limit) or ("(no title)" if info.messages else "(empty)")


def namesakes_line(info: SessionInfo, others: Sequence[str]) -> str:
    """What to say of a name that these other sessions have too; "" if none has."""
    if not others:
        return ""
    if len(others) == 1:
        has, reached = f"Session {others[0]} also has this name, so the name alone reaches neither", "the other"
    else:
        has, reached = f"{len(others)} other sessions have this name, so the name alone reaches none", "the others"
    some = ", ".join(others[:_NAMESAKES]) + (" …" if len(others) > _NAMESAKES else "")
    return f"{has}: {info.id} reaches this one, {some} {reached}."


def place(path: str, directory: Path | None = None) -> str:
    """A path with the home directory shortened to `~`, as in a shell; one below `directory` as it is called there."""
    home = str(Path("~").expanduser())
    if directory is not None and path.startswith(f"{directory}/"):
        return one_line(f".{path[len(str(directory)) :]}")
    is_inside = path == home or path.startswith(f"{home}/")
    return one_line(f"~{path[len(home) :]}" if is_inside and len(home) > 1 else path)


def begun_by(whose: Whose | None) -> str:
    """Who began a session, and on which machine; "" if the store is one person's on one machine."""
    return one_line(f"{whose.owner}@{whose.machine}", TITLE_CHARS) if whose else ""


def session_table(
    infos: Iterable[SessionInfo], current: str = "", whose: Mapping[str, Whose] | None = None
) -> RenderableType:
    """Sessions as a table, for output where nobody can pick one with the keys. After the id comes "(this)" for
    `current`, and "*" for those that are never archived automatically; before the title "(run)" for one of nca run."""
    from rich.text import Text

    from nca.terminal.render.layout import fitting_table

    listed = list(infos)
    places = [place(info.directory) for info in listed]
    columns = {
        "id": [Text(f"{short_id(info.id)}{_marks(info, current)}", style="accent") for info in listed],
        "last used": [Text(local_time(info.updated_at)) for info in listed],
        "messages": [Text(f"{info.messages:,}") for info in listed],
        **({"begun by": [Text(begun_by(whose.get(info.id))) for info in listed]} if whose else {}),
        **({"directory": [Text(end_of(one, _PLACE_CHARS)) for one in places]} if len(set(places)) > 1 else {}),
        "title": [Text(f"{'(run) ' if info.kind == 'run' else ''}{title(info)}") for info in listed],
    }
    drops = [head for head in ("messages", "directory", "last used", "begun by") if head in columns]
    return fitting_table(columns, numbers=("messages",), gives_way="title", drops=drops)


def found_lines(info: SessionInfo, hit: SessionHit, current: str, whose: Whose | None) -> Iterator[RenderableType]:
    """A session that a search found, and below it the message that was found best."""
    from rich.text import Text

    from nca.terminal.render.layout import BehindMark

    best, name = hit.hits[0], f"{short_id(info.id)}{_marks(info, current)}"
    about = "  ".join(filter(None, (local_time(info.updated_at), begun_by(whose), title(info))))
    yield BehindMark(Text.assemble((name, "accent"), f"  {about}"), _FOUND_INDENT)
    yield BehindMark(Text(f"{' ' * _FOUND_INDENT}{hit_line(best, str(best.seq))}", "quiet"), _FOUND_INDENT)


def _marks(info: SessionInfo, current: str) -> str:
    return (" *" if info.is_pinned else "") + (" (this)" if info.id == current else "")


def end_of(path: str, chars: int) -> str:
    """The end of a path, which says more than its start."""
    return path if len(path) <= chars else f"…{path[1 - chars :]}"


def show_resumed(
    conversation: Conversation,
    output: Output,
    *,
    forked_from: str = "",
    is_freed: bool = False,
    is_in_prompt: bool = False,
) -> None:
    """Show a resumed session: the last exchange, its title, the tools' directory, and the card.

    forked_from   the id of the session that it was copied from just now
    is_freed      another process had it open until just now
    is_in_prompt  its last message, which has no answer, is in the prompt
    """
    info = conversation.session.info
    exchange = conversation.context.last_exchange()
    output.exchange(exchange)
    doing = "Reading" if conversation.session.is_read_only else "Resuming"
    # What was taken back, or asked beside it, is in the log and not in the conversation.
    aside = sum(last - first + 1 for first, last in conversation.context.view.aside)
    less = f", {aside:,} of them not in the conversation" if aside else ""
    output.notice(f"{doing} “{title(info)}” ({counted(info.messages, 'message')}{less}).")
    if is_freed:
        output.notice("The other nca has left: this session is open for writing.")
    if forked_from:
        output.notice(f"Forked {short_id(forked_from)}: this copy is {short_id(info.id)}.")
    if conversation.session.is_read_only:
        output.notice(
            "It is read-only, because another nca has it open: nothing can be sent. It stays as it is now;"
            f" /resume {short_id(info.id)} opens it again, for writing once the other nca has left."
        )
    elif exchange.asked and not exchange.answer.strip():
        again = "It is in the prompt: Enter sends it again." if is_in_prompt else "Send it again to get one."
        output.notice(f"Your last message has no answer yet. {again}")
    if info.directory != str(conversation.directory):
        output.notice(f"It began in {place(info.directory)}. Tools work in {place(str(conversation.directory))}.")
    output.card(conversation.context.where_we_were(is_answer_shown=True))


def hit_line(hit: Hit, number: str, said: str = "") -> str:
    """What a search found, behind the number or id that the commands take for it. `said`: in place of its snippet."""
    beside = " (beside a hit)" if hit.is_beside else ""
    return f"{one_line(number, 40)}  {one_line(hit.role, 20)}{beside}: {one_line(said or hit.snippet)}"


def written_lines(written: Written) -> list[str]:
    """Lines about a session that was written for another agent, without the command that resumes it."""
    lines = [f"Wrote {counted(written.messages, 'message')} as a session of {written.agent}: {written.file}"]
    if written.left_out:
        named = ", ".join(counted(number, what) for what, number in written.left_out.items())
        lines.append(f"Not written: {named}, because {written.agent} has no place for that.")
    if written.cut:
        lines.append(f"Shortened, as the model saw them here: {counted(written.cut, 'message')}.")
    if written.file != written.place and written.file.name not in written.command:
        lines.append(f"{written.agent} finds it once it is at {written.place}")
    return [one_line(line) for line in lines]
