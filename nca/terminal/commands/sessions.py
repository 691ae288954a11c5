"""/sessions: what was talked about before; choose one and go on with it, search, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.session_lines import session_table, short_id, title, when
from nca.terminal.render.wording import messages

if TYPE_CHECKING:
    from nca.sessions.store import Store

_SHOWN = 20
_FOUND = 10
_SUGGESTED = 50
_WORDS = (
    ("list", "the newest, as a table"),
    ("search", "what was said in them"),
    ("delete", "remove one for good; asks"),
)


class SessionsCommand:
    name = "sessions"
    aliases = ("session",)
    usage = "/sessions\n/sessions list\n/sessions search TEXT\n/sessions delete ID"
    about = "Earlier sessions: choose one, search them, delete one"

    async def run(self, context: CommandContext, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        match word:
            case "":
                await choose(context)
            case "list":
                _list(context)
            case "search":
                await _search(context, rest.strip())
            case "delete":
                await _delete(context, rest.strip())
            case _:
                raise UsageError(
                    f"/sessions knows no {one_line(word, 40)!r}.",
                    advice=f"/resume {one_line(word, 40)} opens one; /sessions list, search TEXT, delete ID.",
                )

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        word, blank, rest = argument.partition(" ")
        if not blank:
            return [Suggestion(one, about) for one, about in _WORDS if one.startswith(word)]
        return suggestions(context, rest) if word == "delete" else ()


async def choose(context: CommandContext) -> None:
    """Have the person pick a session and go on with it; where nobody can pick, list them."""
    if context.pick is None or context.exchange is None:
        _list(context)
        context.output.notice("/resume ID goes on with one of them.")
        return
    chosen = await context.pick()
    if chosen is not None:
        await context.exchange.resume(chosen.id)


def suggestions(context: CommandContext, argument: str) -> list[Suggestion]:
    """The newest sessions that a word means: by id, name or what was said first."""
    if context.store is None:
        return []
    word = argument.lower()
    infos = context.store.list(limit=_SUGGESTED)
    return [
        Suggestion(short_id(info.id), f"{when(info.updated_at)}  {title(info)}")
        for info in infos
        if info.id.startswith(word) or word in info.name.lower() or word in info.title.lower()
    ]


def _list(context: CommandContext) -> None:
    found = _store(context).list(limit=_SHOWN)
    if not found:
        context.output.show("No sessions yet.")
        return
    context.output.show(session_table(found, context.conversation.session.info.id))


async def _search(context: CommandContext, text: str) -> None:
    if not text:
        raise UsageError("/sessions search needs what to look for, as in /sessions search the parser bug.")
    store = _store(context)
    # On a thread: a large store takes a moment, and Ctrl-C works meanwhile.
    hits = await asyncio.to_thread(store.search_sessions, text, _FOUND)
    if not hits:
        context.output.show("Nothing found.")
        return
    context.output.show(session_table([store.find(hit.session) for hit in hits], context.conversation.session.info.id))
    for hit in hits:
        best = hit.hits[0]
        context.output.show(f"{short_id(hit.session)}  {best.role}: {one_line(best.snippet)}")
    context.output.notice("/resume ID goes on with one of them.")


async def _delete(context: CommandContext, wanted: str) -> None:
    store = _store(context)
    if not wanted:
        raise UsageError("/sessions delete needs an id or a name.", advice="/sessions list shows them.")
    info = store.find(wanted)
    if info.id == context.conversation.session.info.id:
        raise UsageError("That is the session you are in.", advice="/new begins another one, then it can be deleted.")
    if context.ask is None:
        raise UsageError("There is nobody to ask here.", advice=f"nca sessions delete {info.id} --yes does not ask.")
    question = f"Delete “{title(info)}” ({short_id(info.id)}, {messages(info.messages)}) for good?"
    if await context.ask(question, (("y", "delete it"),)) != "y":
        context.output.notice("Nothing was deleted.")
        return
    store.delete(info.id)
    context.output.notice(f"{short_id(info.id)} is deleted.")


def _store(context: CommandContext) -> Store:
    if context.store is None:
        raise UsageError("Sessions are not kept here.")
    return context.store
