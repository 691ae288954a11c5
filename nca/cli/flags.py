"""Options and arguments that several commands share, each declared once.

An option that was not given is None and overrides no setting (see nca.cli.startup.settings_of). Numbers arrive as
text: the setting parses them and explains what is valid.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nca.cli.early_questions import wrapped
from nca.cli.printing import echo
from nca.cli.startup import load_settings, open_session_store, store_place
from nca.errors import NcaError, SessionNotFound, UsageError, system_reason
from nca.humanize import UsualNotice
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import title

if TYPE_CHECKING:
    from nca.sessions.transfer import SessionCopy
    from nca.transcripts.formats.source import Source

_MOST_SESSIONS = 50
_ABOUT_CHARS = 60

Words = list[tuple[str, str]]
"""Words, each with what it means; bash shows the words alone."""


def settings(incomplete: str) -> Words:
    """Names of settings: by their beginning, or that of their last part."""
    from nca.config.schema import KEYS

    typed = incomplete.lower()
    whole = [(key.name, key.about) for key in KEYS.values() if key.name.startswith(typed)]
    return whole or [
        (key.name.rpartition(".")[2], f"{key.name}: {key.about}")
        for key in KEYS.values()
        if key.name.rpartition(".")[2].startswith(typed)
    ]


def setting_values(ctx: typer.Context, incomplete: str) -> Words:
    """The valid values of the setting that was named before, if they can be listed."""
    from nca.config.overrides import key_meant

    key = key_meant(str(ctx.params.get("key") or ""))
    return _choices(key, incomplete) if key else []


def _choices_of(key: str) -> Callable[[str], Words]:
    """Completes the values of one setting."""
    return lambda incomplete: _choices(key, incomplete)


def sessions(incomplete: str) -> Words:
    """Ids and names of the newest sessions that begin so."""
    from rich.markup import escape

    from nca.sessions.store import Store

    try:
        path, url = store_place()
        with Store.open(path, read_only=True, url=url) as store:
            infos = store.list(None if incomplete else _MOST_SESSIONS)
    except NcaError:
        return []
    begun = [info for info in infos if info.id.startswith(incomplete)][:_MOST_SESSIONS]
    names = [(info.name, info.id) for info in infos if incomplete and info.name.startswith(incomplete)]
    return [*((info.id, escape(title(info, _ABOUT_CHARS))) for info in begun), *names[:_MOST_SESSIONS]]


def sessions_to_resume(incomplete: str) -> Words:
    """Sessions, and the agents whose sessions nca finds on this machine."""
    from nca.transcripts.formats.records import Format
    from nca.transcripts.formats.registry import formats

    found = (one for one in formats() if one.places.own_folder or type(one).files is not Format.files)
    agents = ((one.name, f"a session of {one.title}") for one in found)
    return [*sessions(incomplete), *_beginning(incomplete, agents if incomplete else ())]


def models(incomplete: str) -> Words:
    """Models that answered before, embedded ones, and those of the providers whose keys are known."""
    from nca.models import keys
    from nca.models.embedded.known import KNOWN
    from nca.models.lookup import known

    try:
        keys.use(os.environ)
        settings = load_settings({}, None).settings.model
        with open_session_store(read_only=True) as store:
            names = list(store.models_that_answered(_MOST_SESSIONS))
    except NcaError:
        return []
    # A provider has hundreds: they are offered once a part of the name is typed.
    names += [f"embedded/{name}" for name in KNOWN]
    names += [offer.name for offer in known(settings, os.environ)] if incomplete else []
    return _beginning(incomplete, ((name, "") for name in dict.fromkeys(names)))


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], Words]:
    """Completes one of some names, which are looked up when a shell asks."""
    return lambda incomplete: _beginning(incomplete, ((name, "") for name in names()))


def _agents_written() -> Iterable[str]:
    from nca.transcripts.outgoing.conversation import AGENTS

    return AGENTS


def _formats_written() -> Iterable[str]:
    from nca.transcripts.export_formats import FORMATS

    return FORMATS


def allowed_tools(incomplete: str) -> Words:
    """Tools that ask before they run, as a rule of --allow begins."""
    from nca.config.rule_line import ASKING

    return _beginning(incomplete, ASKING.items())


def _choices(key: str, incomplete: str) -> Words:
    from nca.config.schema import KEYS

    return _beginning(incomplete, ((choice, "") for choice in KEYS[key].value_type.choices))


def _beginning(incomplete: str, words: Iterable[tuple[str, str]]) -> Words:
    return [(word, about) for word, about in words if word.startswith(incomplete)]


Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="The model, by its litellm name; NAME:high sets how much it reasons.",
        autocompletion=models,
    ),
]
CountedModel = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="The model whose window and prices count. Default: the session's.",
        autocompletion=models,
    ),
]
AsAgent = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="Write a session that this agent resumes: claude, codex, gemini or pi.",
        autocompletion=one_of(_agents_written),
    ),
]
ExportFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="markdown, json, jsonl or html. Default: by FILE's extension.",
        autocompletion=one_of(_formats_written),
    ),
]
_TEXTS = "The first message, in quotes; with --resume, after the ID or TITLE. With piped input: see nca run."
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=_TEXTS, autocompletion=sessions_to_resume)]
Resume = Annotated[
    bool, typer.Option("--resume", "--session", "-r", help="Resume the session of an ID or TITLE, or pick one.")
]
Continue = Annotated[
    bool,
    typer.Option(
        "--continue",
        "-c",
        help="Continue this directory's last chat (nca run: its last run), or begin a session.",
    ),
]
CompactThreshold = Annotated[str | None, typer.Option(help="Compact from this usage on: 0.8, 80 or 80%.")]
DisableCompaction = Annotated[bool, typer.Option("--disable-compaction", help="Never compact.")]
ContextWindow = Annotated[str | None, typer.Option(help="The context window in tokens.")]
MaxOutputTokens = Annotated[str | None, typer.Option(help="Tokens to reserve for the answer.")]
Fit = Annotated[
    str | None,
    typer.Option(
        help="If the newest message is larger than the window: cut, or refuse (the default).",
        autocompletion=_choices_of("context.fit"),
    ),
]
Permission = Annotated[
    str | None,
    typer.Option(
        help="Permission mode: ask, accept-edits, plan or auto.", autocompletion=_choices_of("agent.permission")
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="Let this run: TOOL, 'shell COMMAND' or 'edit_file DIR/**'. May be given several times.",
        autocompletion=allowed_tools,
    ),
]
MaxCost = Annotated[
    str | None, typer.Option(help="Send nothing more once the session has cost this much, in US dollars.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Trust this project's settings for this run.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines without colours or animation, for screen readers.")]
Profile = Annotated[
    str | None,
    typer.Option(help="A named set of compaction settings, such as nexora.", autocompletion=_choices_of("profile")),
]
Config = Annotated[Path | None, typer.Option(help="A settings file to use instead of the project's.")]
OfTeam = Annotated[bool, typer.Option("--team", help="From your whole team, in a shared store.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Summarizer = Annotated[str | None, typer.Option(help="The model that writes summaries, or none.")]
_CONVERSATION_FILE = "A transcript or another agent's session, an id or name, or standard input."
ConversationFile = Annotated[str, typer.Argument(metavar="FILE|ID|-", help=_CONVERSATION_FILE)]
SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="A session's id, the start of its id, or its name.", autocompletion=sessions)
]


def say(line: str, hang: int = 0, mark: str = "") -> None:
    """Print a line: whole in a pipe; on a terminal in rows broken between words.

    hang  cells by which the further rows are indented
    mark  the line's first word in colours, which take no room
    """
    if not sys.stdout.isatty():
        echo(line)
        return
    shown = wrapped(line, hang)
    echo(shown[len(line.split(" ", 1)[0]) :] if mark else shown, mark=mark)


def say_notes(notes: Sequence[str]) -> None:
    """The notes about the settings; those that only say what was loaded to a person."""
    for note in notes:
        if sys.stderr.isatty() or not isinstance(note, UsualNotice):
            echo(one_line(note), err=True)


def stored_session(file: str) -> SessionCopy | None:
    """The session with this id or name; None for standard input, a file and "". Raises UsageError, StoreError."""
    if file in ("-", "") or os.path.exists(file) or os.path.isfile(Path(file.rpartition("#")[0])):
        return None
    try:
        with open_session_store(read_only=True) as store:
            return store.copy_of(file)
    except SessionNotFound as error:
        if "could be any" in error.message:
            raise
        raise UsageError(
            f"{file}: there is no such file, and no session with that id or name.",
            advice="`nca sessions list` lists sessions.",
        ) from error


def open_source(file: str) -> tuple[Source, str]:
    """The file as a source, and for FILE#KEY the key of a session in it. Raises UsageError if it cannot be read."""
    from nca.transcripts.formats.source import Source

    if not file:
        raise UsageError("The name of the file or session is empty.", advice="- reads standard input.")
    if file == "-":
        return Source("standard input", raw=sys.stdin.buffer.read()), ""
    name, key = Path(file), ""
    before, mark, after = file.rpartition("#")
    if mark and not os.path.exists(name) and os.path.exists(before):
        name, key = Path(before), after
    if os.path.isfile(name) or os.path.isdir(name):
        return Source.of_file(name), key
    try:
        return Source(str(name), raw=name.read_bytes()), key
    except OSError as error:
        raise UsageError(f"{name}: cannot be read ({system_reason(error)}).") from error


def print_notes(notes: Sequence[str]) -> None:
    """Report the unreadable parts of a file on standard error."""
    for note in notes:
        echo(f"nca: {one_line(note)}", err=True)
