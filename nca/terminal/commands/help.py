"""/help: list the commands and keys, and explain one command with examples."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import (
    GROUPS,
    App,
    Command,
    Suggestion,
    advice_for,
    all_commands,
    beginning_with,
    nearest,
)
from nca.terminal.render.layout import Parted, new_table
from nca.terminal.render.sanitize import one_line

COLUMN_CELLS, NAME_CELLS, MOST_COLUMNS = 40, 13, 3
"""Cells of a column of the grid, and those of a name in it; and how many columns there are at most."""
_LEAST_ABOUT = 36
"""Cells that a text beside a command needs."""
_AROUND_ROWS = 6
"""Rows of the screen for the last line, the prompt, the toolbar and what was typed."""
_Groups = Sequence[tuple[str, Sequence[Text]]]
"""Headings, and the lines below each."""


class HelpCommand(Command):
    name = "help"
    aliases = ("?", "h")
    usage = "/help\n/help COMMAND\n/help keys\n/help ideas"
    about = "Show what you can type; COMMAND in detail"

    async def run(self, app: App, argument: str) -> None:
        match argument.lstrip("/").lower():
            case "":
                app.output.show(self._overview(*shutil.get_terminal_size()))
            case "keys":
                app.output.show(_rows(KEYS))
            case "ideas":
                app.output.show(Group(*_ideas()))
            case name:
                app.output.show(self._one(name))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        known = [(other.name, other.about) for other in all_commands() if other is not self] + list(TOPICS.items())
        return beginning_with(argument, known)

    def _overview(self, width: int, rows: int) -> Group:
        """Groups of commands, and typing, in columns of the same grid; 22 rows in a window of 80 columns."""
        known = {command.name: command for command in all_commands()}
        groups = [(title, [line for name in names for line in _lines(known[name])]) for title, names in GROUPS.items()]
        groups.append(("Typing", [_line(*row) for row in TYPING]))
        across = max(1, min(MOST_COLUMNS, width // COLUMN_CELLS))
        columns = _split(groups, across)
        height = max(map(_height, columns))
        more = Parted("/help COMMAND has examples · /help keys · /help ideas: log, undo, gauge", style="quiet")
        is_roomy = height + len(columns[0]) <= rows - _AROUND_ROWS
        table = new_table(*[Column(ratio=1, no_wrap=True, overflow="ellipsis") for _ in columns], gap=1)
        table.width = width
        table.add_row(*(_column(column, is_roomy=is_roomy) for column in columns))
        return Group(table, *([Text()] if is_roomy else []), more)

    def _one(self, name: str) -> Group:
        for other in all_commands():
            if name in (other.name, *other.aliases):
                return Group(*_detail(other))
        topic = nearest(name, TOPICS)
        advice = f"Did you mean /help {topic}?" if topic else advice_for(name)
        raise UsageError(f"There is no command /{one_line(name, 40)}.", advice=advice)


def _lines(command: Command) -> Iterator[Text]:
    """Its name, and the first clause of its description, or the text in `SHORT`."""
    for place, about in enumerate(in_short(command.name, command.about)):
        yield _line("" if place else f"/{command.name}", about)


def _line(left: str, right: str) -> Text:
    return Text.assemble((f"{left:<{NAME_CELLS}}", "accent"), right)


def _height(column: _Groups) -> int:
    return sum(1 + len(lines) for _, lines in column)


def _split(groups: _Groups, across: int) -> list[_Groups]:
    """The groups in order, in columns whose largest height is as small as possible."""
    cuts = combinations(range(1, len(groups)), min(across, len(groups)) - 1)
    splits: Iterator[list[_Groups]]
    splits = ([groups[start:end] for start, end in pairwise((0, *cut, len(groups)))] for cut in cuts)
    return min(splits, key=lambda columns: max(map(_height, columns)))


def _column(groups: _Groups, *, is_roomy: bool) -> Text:
    blocks = (Text("\n").join([Text(title, style="bold"), *lines]) for title, lines in groups)
    return Text("\n\n" if is_roomy else "\n").join(blocks)


def _detail(command: Command) -> Iterator[RenderableType]:
    yield Text(command.about + ".\n")
    usage = [line.partition("  (") for line in command.usage.split("\n")]
    yield _rows((line, about.removesuffix(")")) for line, _, about in usage)
    if command.aliases:
        yield Text("\nAlso: " + ", ".join(f"/{alias}" for alias in command.aliases), style="quiet")
    if command.name in EXAMPLES:
        yield Text("\nExamples", style="bold")
        yield _rows(EXAMPLES[command.name])


def _ideas() -> Iterator[Text]:
    for title, text in IDEAS:
        yield Text.assemble((title, "bold"), f"  {text}")


def _rows(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Two columns; in a narrow window the right one stands below the left one."""
    rows = list(rows)
    if max(len(left) for left, _ in rows) + _LEAST_ABOUT > shutil.get_terminal_size().columns:
        shown = ((Text(left, style="accent"), Padding(Text(right), (0, 0, 0, 4))) for left, right in rows)
        return Group(*(line for pair in shown for line in pair if isinstance(line, Text) or line.renderable))
    table = new_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for left, right in rows:
        table.add_row(Text(left, style="accent"), Text(right))
    return table


TYPING = (
    ("Alt-Enter", "A new line; or Ctrl-J"),
    ("@path", "Add a file or an image"),
    ("!command", "Run it, share its output"),
    ("Type on", "While it works: it joins"),
    ("Esc", "Stop; Ctrl-C twice: leave"),
    ("Paste", "Folded, and sent whole"),
)
"""Keys that a new person should find without help."""

SHORT = {
    "model": ("Choose the model",),
    "effort": ("How much it reasons",),
    "context": ("What fills the window", "undo · pin N · collapse N", "search TEXT · diff · all", "compact --preview"),
    "memory": ("Notes for later sessions",),
    "show": ("A tool's whole output",),
    "copy": ("Copy an answer",),
    "editor": ("$EDITOR (or Ctrl-X Ctrl-E)",),
    "rewind": ("Back to before a message",),
    "undo": ("Take back the last turn",),
    "redo": ("Bring it back",),
    "changes": ("What it changed in files",),
    "btw": ("Ask a side question",),
    "exit": ("Leave; then nca --continue",),
    "sessions": ("Find an earlier session",),
    "resume": ("Continue one of them",),
    "export": ("Write it to a file",),
    "permissions": ("accept-edits · plan · auto",),
    "jobs": ("Commands that run on",),
    "mcp": ("MCP servers",),
    "config": ("Every setting",),
    "cost": ("Tokens and money",),
}
"""Texts for commands with a first clause that is too long for half a row or says too little; a line each."""

_FIRST_CLAUSE = re.compile(r"[^;:,.(]+")


def in_short(name: str, about: str) -> Sequence[str]:
    """A command's description in lines for half a row: its text in `SHORT`, or its first clause."""
    clause = _FIRST_CLAUSE.match(about)
    return SHORT.get(name, (clause[0].strip() if clause else "",))


KEYS = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Tab", "complete a command, setting, model, session or @path"),
    ("Shift-Tab", "the next permission mode: ask, accept-edits, plan; in a menu, back"),
    ("→, Ctrl-E", "take the grey suggestion from your history"),
    ("Up, Down", "earlier messages that begin with what you typed"),
    ("Ctrl-R", "search earlier messages"),
    ("Ctrl-X Ctrl-E", "write in your editor ($EDITOR), as /editor does"),
    ("Ctrl-V", "attach the image on the clipboard"),
    ("Paste", "a long one folds to [pasted N lines] and is sent in full"),
    ("Alt-A", "attach the files that a pasted text names with @; again: detach them"),
    ("Typing while it works", "Enter sends it at the next step, Up takes the last one back; commands wait"),
    ("Esc, Ctrl-C", "stop the answer and keep what arrived"),
    ("Ctrl-C", "at the prompt: clear the line; twice: leave"),
    ("Esc Esc", "at an empty prompt: /rewind, back to before one of your messages"),
    ("Ctrl-D", "leave, after the work if nca is busy; nca -c (--continue) continues"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("//text", "send /text as it is"),
    ("/config terminal.keys vi", "vi keys instead of emacs keys"),
)

IDEAS = (
    (
        "The log and the view",
        "Every message is kept in the log, for good. What the model sees is a view of it. Compaction, collapse and"
        " clear change only the view: /context search finds everything, and the model can recall it.",
    ),
    (
        "Undo",
        "/undo takes back the last turn, with the files that it changed; /redo goes forward, /rewind to any message."
        " Every compaction can be undone: /context undo, redo, history. /context expand restores single parts,"
        " and /context pin protects them. /context compact --preview shows what would go.",
    ),
    (
        "The gauge",
        "One number everywhere: the tokens of the next request, out of the budget (the window less the room for the"
        " answer). A notice at 60% and 80%; preparation at 75%, compaction at 80%; in a"
        " small window at 90% and 95%. nca sends nothing that does not fit.",
    ),
)

TOPICS = {"keys": "all keys", "ideas": "the log and the view, undo, the gauge"}

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "context": (
        ("/context all", "everything in the window"),
        ("/context collapse 17", "message 17 in short; /context expand 17 brings it back"),
        ("/context pin last", "your last message stays through every compaction"),
        ("/context compact from 40", "message 40 and all after it to a summary"),
        ("/context search parser bug", "finds compacted messages as well"),
    ),
    "rewind": (
        ("/rewind", "choose a message; chat and files, or one of them"),
        ("/rewind 12 files", "the files as they were before message 12"),
        ("/undo", "the last turn, chat and files; /redo goes forward"),
    ),
    "changes": (("/changes src/app.py", "the whole diff of one file"),),
    "btw": (("/btw what did we decide about names?", "an answer that adds nothing to the context"),),
    "compact": (
        ("/compact the parser bug", "a summary that keeps what matters for it"),
        ("/compact before 40", "only what was said before message 40"),
    ),
    "config": (
        ("/config compact", "every setting about compaction"),
        ("/config context.compact_threshold 70%", "for this chat; --save keeps it"),
        ("/config context.compact_threshold default", "back to nca's default"),
    ),
    "model": (("/model openai/gpt-4.1", "the next answers come from it"),),
    "permissions": (
        ("/permissions plan", "it only reads"),
        ("/permissions accept-edits", "edits without asking"),
    ),
    "jobs": (("/jobs stop 1", "end a command that runs in the background"),),
    "tools": (("/tools shell", "its permission, tokens and calls"),),
    "memory": (("/memory the tests run with make test", "every later session here knows it"),),
    "sessions": (("/sessions search parser", "the sessions that mention it"),),
    "export": (("/export talk.html", "with a picture of the context"),),
    "cost": (("/config session.max_cost 2", "nothing more is sent after two dollars"),),
}
