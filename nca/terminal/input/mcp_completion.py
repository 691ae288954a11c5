"""Completions from MCP servers: prompts after `/mcp:`, resources after `@SERVER:`.

Only what the servers have listed already: typing starts no server and waits for none. Names that cannot be typed are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completion

from nca.terminal.input.file_mentions import MAX_SUGGESTIONS
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.tools.mcp.servers import Servers

_COMMAND = "mcp"
_ABOUT_CHARS = 80
_NOT_IN_URIS = frozenset("\"'`<>")
"""Where a mention would end (nca.tools.mcp.servers)."""


def prompt_completions(servers: Servers, text: str) -> Iterator[Completion]:
    """For a line that begins with `/mcp`: each prompt with its arguments and description."""
    name = text[1:]
    if not name.lower().startswith(_COMMAND) or " " in name:
        return
    for one in servers.connections:
        for prompt in one.listing.prompts:
            full = f"{_COMMAND}:{one.server.name}:{prompt.name}"
            if not full.startswith(name) or not _can_be_typed(prompt.name):
                continue
            wanted = " ".join(
                argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments or ()
            )
            about = " · ".join(part for part in (wanted, prompt.description or prompt.title or "") if part)
            yield _suggestion(f"{full} " if wanted else full, len(name), about, shown=f"/{full}")


def resource_completions(servers: Servers, mention: str) -> Iterator[Completion]:
    """For the text after an @: the servers that have resources, and after `SERVER:` each resource.

    A resource is found by the beginning of its URI and by any part of its URI or name.
    """
    # Imported here: the first prompt does not need it.
    from nca.terminal.render.humanize import counted

    named, colon, wanted = mention.partition(":")
    for one in servers.connections:
        resources = [each for each in one.listing.resources if _can_be_typed(each.uri)]
        if resources and not colon and one.server.name.startswith(named):
            yield _suggestion(f"{one.server.name}:", len(mention), counted(len(resources), "resource"))
        if not colon or one.server.name != named:
            continue
        word = wanted.lower()
        found = [each for each in resources if word in each.uri.lower() or word in each.name.lower()]
        found.sort(key=lambda each: not each.uri.startswith(wanted))
        for each in islice(found, MAX_SUGGESTIONS):
            about = each.description or each.title or each.name
            yield _suggestion(f"{named}:{each.uri}", len(mention), about)


def _suggestion(text: str, replaced_chars: int, about: str, shown: str = "") -> Completion:
    meta = one_line(about, _ABOUT_CHARS)
    return Completion(text, -replaced_chars, display=one_line(shown or text), display_meta=meta)


def _can_be_typed(name: str) -> bool:
    return name.isprintable() and " " not in name and _NOT_IN_URIS.isdisjoint(name)
