"""Short commands of the chat itself: /btw, /editor, /memory, /todo, /cost, /clear and /exit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from nca.context.todo import marked, steps_of
from nca.errors import UsageError
from nca.humanize import counted, local_time, percent
from nca.models.catalog import money
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, number_to_remove
from nca.terminal.input.editor import edited_words
from nca.terminal.interrupts import Leave
from nca.terminal.render.layout import WHOLE, BehindMark, Parted, fitting_table
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place
from nca.words import part_of, text_of

if TYPE_CHECKING:
    from nca.agent.spending import Spent
    from nca.messages import Usage

_MOST_STEP_CHARS = 2_000
_SYMBOLS, _WORDS = ("✓", "›", "·"), ("done:", "now:", "open:")


class BtwCommand(Command):
    name = "btw"

    async def run(self, app: App, argument: str) -> None:
        await app.conversation.beside.ask(app.argument)
        app.output.notice("The context is unchanged; the question and answer are in the log.")


class EditorCommand(Command):
    name = "editor"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a program"

    async def run(self, app: App, argument: str) -> None:
        said = await edited_words(app.argument, app.reader.lend_terminal())
        text = text_of(said).rstrip("\n")
        if not text.strip():
            raise UsageError("The editor left no text; nothing was sent.")
        # Not sent by itself: to close an editor is not to send.
        app.put_in_prompt(part_of(said, 0, len(text)), is_new=True)


MAX_SHOWN_CHARS = 300
"""Of one note; one on a whole session is longer."""


class MemoryCommand(Command):
    name = "memory"
    shows = "alone"

    def needs_person(self, app: App, argument: str) -> str:
        return "changes the notes that later sessions follow" if argument else ""

    async def run(self, app: App, argument: str) -> None:
        memory = app.conversation.memory
        notes, file = memory.notes(), place(str(memory.file))
        verb, rest = _verb_and_rest(argument)
        if verb == "remove":
            gone = notes[number_to_remove(self.name, rest, len(notes)) - 1]
            memory.forget(gone)
            app.output.show(f"Removed from {file}: {one_line(gone.text, MAX_SHOWN_CHARS)}")
        elif rest:
            count = len(memory.note(rest))
            noted = f"Noted in {file} ({count} in all): {one_line(rest, MAX_SHOWN_CHARS)}"
            app.output.show(f"{noted}\nThe model sees it in sessions that begin from now on, not in this one.")
        elif verb:
            raise UsageError(f"/memory {verb} needs a text.", advice="/memory add TEXT, or /memory TEXT, notes it.")
        elif not notes:
            app.output.show("No notes yet; /memory TEXT adds one.")
        else:
            lines = (
                f"{number}  {local_time(note.at)}  {one_line(note.text, MAX_SHOWN_CHARS)}"
                for number, note in enumerate(notes, 1)
            )
            app.output.show(Text("\n".join(lines)))
            app.output.show(Text(f"In {file}; /memory remove N removes one.", "quiet"))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        known = app.conversation.memory.notes()
        word, blank, rest = argument.partition(" ")
        if not blank:
            verbs = [("add", "add a note"), *([("remove", "remove a note, by its number")] if known else ())]
            return beginning_with(word, verbs)
        if word.lower() != "remove":
            return ()
        notes = enumerate(known, 1)
        return beginning_with(rest, ((str(number), one_line(note.text, 60)) for number, note in notes))


_REMOVES = ("rm", "delete", "del", "forget")
"""Other programs' words for it: with a number, they are no note."""


def _verb_and_rest(argument: str) -> tuple[str, str]:
    """What is to be done, "" if it is not said; and with what. The verb is no part of the note.

    Of several words, "remove" may begin a note. Raises UsageError.
    """
    word, _, rest = argument.partition(" ")
    verb, rest = word.lower(), rest.strip()
    if verb in _REMOVES and (rest.isdecimal() or not rest):
        meant = f"Did you mean /memory remove {rest or 'N'}?"
        raise UsageError(f"/memory {one_line(argument, 40)} notes nothing.", advice=meant)
    is_verb = verb == "add" or (verb == "remove" and len(rest.split()) < 2)
    return (verb, rest) if is_verb else ("", argument)


class ClearCommand(Command):
    name = "clear"

    async def run(self, app: App, argument: str) -> None:
        app.output.clear()
        app.output.notice("/clear empties the screen alone, not the conversation; /context clear or /new starts anew.")


class ExitCommand(Command):
    name = "exit"

    async def run(self, app: App, argument: str) -> None:
        raise Leave(0)


class CostCommand(Command):
    name = "cost"
    shows = "always"

    async def run(self, app: App, argument: str) -> None:
        conversation = app.conversation
        models, purposes = conversation.spending.by_model(), conversation.spending.by_purpose()
        if not models:
            app.output.show(
                Parted(" · ".join(filter(None, ("No request of this session has been answered yet.", _more(app)))))
            )
            return
        total = conversation.session.usage.totals()
        parts = [f"{total.prompt_tokens:,} tokens in", f"{total.completion_tokens:,} out"]
        if total.cache_read_tokens:
            parts.append(f"{_cached(total)} of the input from the provider's cache")
        if total.cache_write_tokens:
            parts.append(f"{total.cache_write_tokens:,} written to it")
        unreported = conversation.spending.unreported()
        about = "about " if unreported else ""
        parts.append(f"{about}{money(total.cost)}" if total.cost is not None else "price unknown")
        if unreported:
            parts.append(f"{counted(unreported.requests, 'interrupted answer')} counted by nca")
        app.output.show(Parted(" · ".join(parts)))
        if len(models) + len(purposes) > 2:
            _show_groups(app, models, purposes)
        if more := _more(app):
            app.output.show(Parted(more, style="quiet"))


def _show_groups(app: App, models: list[Spent], purposes: list[Spent]) -> None:
    spent = (*models, *(purposes if len(purposes) > 1 else ()))
    columns = {
        "": [Text(one_line(one.name, 60), "accent") for one in spent],
        "requests": [Text(f"{one.requests:,}") for one in spent],
        "in": [Text(f"{one.usage.prompt_tokens:,}") for one in spent],
        "cached": [Text(_cached(one.usage) if one.usage.cache_read_tokens else "") for one in spent],
        "out": [Text(f"{one.usage.completion_tokens:,}") for one in spent],
        "cost": [Text(money(one.usage.cost) if one.usage.cost is not None else "?") for one in spent],
    }
    app.output.show(fitting_table(columns, numbers=[*columns][1:], least=WHOLE))
    if len(purposes) > 1:
        app.output.show(Text("Other requests: summaries, tasks and /btw.", style="quiet"))


def _more(app: App) -> str:
    """The last turn's cost, the compactions', and the limit, if any."""
    conversation = app.conversation
    limit = conversation.loaded.settings.session.max_cost
    costs = [record.cost for record in conversation.context.history() if record.cost is not None]
    shares = [
        f"last turn {money(turn)}" if (turn := conversation.spending.of_turn) else "",
        f"compactions {money(sum(costs))}" if costs else "",
        f"limit {money(limit)} (session.max_cost)" if limit else "",
    ]
    return " · ".join(share for share in shares if share)


def _cached(usage: Usage) -> str:
    """The share of the input that came from the cache."""
    return percent(usage.cache_read_tokens / usage.prompt_tokens) if usage.prompt_tokens else "0%"


class TodoCommand(Command):
    name = "todo"
    shows = "always"

    async def run(self, app: App, argument: str) -> None:
        found = app.conversation.context.todo
        steps = marked(found.arguments, *(_SYMBOLS if app.reader.can_walk else _WORDS)) if found else []
        if not found or not steps:
            app.output.show("The model keeps no list of steps. It begins one, with its tool todo, for a longer task.")
            return
        done, left = steps_of(found.arguments)
        which = "Plan" if found.is_in_work or not left else f"Plan of message {found.seq}"
        lines = [
            BehindMark(
                Text(f"{mark} {one_line(step, _MOST_STEP_CHARS)}", "quiet" if number < len(done) else ""), len(mark) + 1
            )
            for number, (mark, step) in enumerate(steps)
        ]
        app.output.show(Group(Text(f"{which}: {len(done)} of {len(steps)} done"), *lines))
