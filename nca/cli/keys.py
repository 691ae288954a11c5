"""`nca keys`: store, list and remove API keys; and the question for one at the first start."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nca.cli import flags
from nca.cli.early_questions import can_ask, typed_answer, wrapped
from nca.cli.printing import echo
from nca.config.document import shown_path
from nca.config.paths import keys_file
from nca.errors import ConfigError, UsageError
from nca.humanize import one_line

app = typer.Typer(name="keys", help="Store API keys, list and remove them.", no_args_is_help=True)


def _providers(incomplete: str) -> flags.Words:
    from nca.models.keys import VARIABLES
    from nca.models.providers import PROVIDERS

    return [(name, PROVIDERS[name].title) for name in VARIABLES if name.startswith(incomplete.lower())]


def _stored(incomplete: str) -> flags.Words:
    from nca.models import keys

    try:
        names = {keys.PROVIDERS_BY_VARIABLE[variable] for variable in keys.stored(os.environ)}
    except ConfigError:
        return []
    return [word for word in _providers(incomplete) if word[0] in names]


_STORED = typer.Argument(metavar="PROVIDER", help="Such as openai, or OPENAI_API_KEY.", autocompletion=_stored)
_ANY = typer.Argument(
    metavar="PROVIDER", help="Such as openai; nca asks if the key does not show it.", autocompletion=_providers
)


@app.command()
def add(provider: Annotated[str | None, _ANY] = None) -> None:
    """Store an API key. nca asks for it without showing it, or reads it from a pipe."""
    if not ask_for_key(_named(provider) if provider is not None else ""):
        raise UsageError("No key was given.", advice="Nothing was stored.")


@app.command("list")
def list_keys() -> None:
    """List whose keys are stored, and their variables; not the keys."""
    from nca.models import keys

    names = ", ".join(f"{keys.PROVIDERS_BY_VARIABLE[name]} ({name})" for name in keys.stored(os.environ))
    flags.say(f"{names}, in {shown_path(keys_file(os.environ))}." if names else "No key is stored.")


@app.command()
def remove(provider: Annotated[str, _STORED]) -> None:
    """Remove a stored key."""
    from nca.models import keys

    variable = keys.VARIABLES[_named(provider)]
    was_there = keys.remove(os.environ, variable)
    flags.say(f"{variable} was removed." if was_there else f"{variable} is not stored.")


def ask_for_key(provider: str = "") -> bool:
    """Ask for a key, store it and use it. False if the person gives none. Raises ConfigError, UsageError.

    provider  one of VARIABLES; "": the one that the key says, or the person
    """
    from nca.models import keys
    from nca.models.providers import key_of

    key = _typed() if can_ask() else sys.stdin.readline().strip()
    if not key:
        return False
    if not keys.is_key(key):
        raise UsageError("That is not a key: a key is one word of at least 8 letters, digits and signs.")
    name = provider or keys.provider_by(key) or _whose()
    if not name:
        return False
    variable = keys.VARIABLES[name]
    keys.save(os.environ, variable, key)
    echo(wrapped(f"Stored as {variable} in {shown_path(keys_file(os.environ))}, which only you can read."))
    keys.use(os.environ)
    there, used = key_of(name, os.environ)
    if used != key:
        echo(wrapped(f"{there} is {'also ' if there == variable else ''}in the environment, and that one is used."))
    return True


def _typed() -> str:
    """The key that the person types or pastes, asked for until it could be one; "" for none."""
    from getpass import getpass

    from nca.models.keys import is_key

    while True:
        try:
            key = getpass("API key (not shown; Enter alone leaves): ").strip()
        except EOFError:
            return ""
        if not key or is_key(key):
            return key
        echo(wrapped("That is not a key: a key is one word of at least 8 letters, digits and signs."))


def _whose() -> str:
    """The provider that the person names; "" for none."""
    from nca.models.keys import VARIABLES
    from nca.models.providers import PROVIDERS

    usual = [name for name in VARIABLES if PROVIDERS[name].model]
    if not can_ask():
        raise UsageError("The key does not say whose it is.", advice=f"Name it: nca keys add {'|'.join(usual)}")
    others = ", ".join(name for name in VARIABLES if name not in usual)
    echo(wrapped(f"Whose key is it? {', '.join(usual)} (or {others})"))
    return typed_answer("Provider (Enter alone leaves):", ("", *VARIABLES))


def _named(provider: str) -> str:
    """One of VARIABLES, by its name or its variable. Raises UsageError."""
    from nca.models.keys import PROVIDERS_BY_VARIABLE, VARIABLES

    name = PROVIDERS_BY_VARIABLE.get(provider.upper(), provider.lower())
    if name not in VARIABLES:
        raise UsageError(
            f"There is no provider {one_line(provider, 40)!r} with a key.", advice=f"Valid: {', '.join(VARIABLES)}."
        )
    return name
