"""What a shell offers for the value of an argument: settings, their values, permission modes, profiles, sessions.

Typer finds a function's parameters by their names and types. Whatever fails here offers nothing: a shell that completes
must show no error.
"""

from __future__ import annotations

from collections.abc import Iterable

import typer

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
    from nca.config.names import canonical, names_ending

    written = str(ctx.params.get("key") or "")
    ends = names_ending(written)
    found = canonical(ends[0] if len(ends) == 1 else written)
    return _choices(found.key, incomplete) if found else []


def modes(incomplete: str) -> Words:
    """Permission modes."""
    return _choices("agent.permission", incomplete)


def profiles(incomplete: str) -> Words:
    return _choices("profile", incomplete)


def fits(incomplete: str) -> Words:
    return _choices("context.fit", incomplete)


def sessions(incomplete: str) -> Words:
    """Ids and names of the newest sessions."""
    from rich.markup import escape

    from nca.cli.startup import store_place
    from nca.errors import NcaError
    from nca.sessions.store import Store
    from nca.terminal.render.sessions import title

    try:
        path, url = store_place()
        with Store.open(path, read_only=True, url=url) as store:
            infos = store.list(_MOST_SESSIONS)
    except NcaError:
        return []
    ids = ((info.id, escape(title(info, _ABOUT_CHARS))) for info in infos)
    names = ((info.name, info.id) for info in infos if incomplete and info.name)
    return _beginning(incomplete, [*ids, *names])


def _choices(key: str, incomplete: str) -> Words:
    from nca.config.schema import KEYS

    return _beginning(incomplete, ((choice, "") for choice in KEYS[key].value_type.choices))


def _beginning(incomplete: str, words: Iterable[tuple[str, str]]) -> Words:
    return [(word, about) for word, about in words if word.startswith(incomplete)]
