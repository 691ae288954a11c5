"""The first start: a model to talk to, and a few lines that say which one, why, and how to change it."""

from __future__ import annotations

import os
import sys
from importlib import util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.models.catalog import ModelFacts
    from nca.models.choose import Choice

_RUNTIME = "xllamacpp"
_QUESTION = """\
No key, no local server and no model is here yet. What should nca talk to?
  1  {recommended}  ({recommended_size}, recommended)
  2  {small}  ({small_size})
  3  I have a key"""
_KEY_HELP = """\
Set the key in the environment and start again:
  export OPENAI_API_KEY=…      (or ANTHROPIC_API_KEY, GEMINI_API_KEY, MISTRAL_API_KEY, OPENROUTER_API_KEY, …)
nca loop --model NAME picks a model; `nca doctor` shows what was found."""


def with_weights(choice: Choice) -> Choice | None:
    """The choice with its weights on the disk; None where the person would rather bring a key.

    Only an embedded model needs any. A terminal is asked once; without one the small model is taken, unless the
    environment names another. Raises ModelUnavailable, NcaError.
    """
    if not choice.is_embedded:
        return choice
    from nca.cli.fetching import fetch_weights
    from nca.models.embedded import weights

    if weights.path_of(choice.model) is not None:
        return choice
    _require_runtime()
    name = _wanted(choice)
    if name is None:
        print(_KEY_HELP)
        return None
    from dataclasses import replace

    print(f"Fetching {weights.known(name).title} once, into {weights.models_dir()}.", file=sys.stderr)
    fetch_weights(name)
    return replace(choice, model=f"embedded/{name}", why="no key, no endpoint and no local server was found")


def banner(choice: Choice, facts: ModelFacts, *, is_first: bool) -> list[str]:
    """Five lines at the first start: which model, why, how to have another, what to type, how to leave. Later one, or
    two where the model has something to be known of it."""
    is_assumed = facts.window_is_assumed or (bool(choice.api_base) and facts.is_window_usual)
    window = f"{facts.window_tokens:,} tokens" + (" (assumed)" if is_assumed else "")
    first = f"nca · {choice.model} · window {window}"
    if not is_first:
        return [f"{first} · /help", *([facts.note] if facts.note else [])]
    others = f" Also here: {', '.join(choice.alternatives[:3])}." if choice.alternatives else ""
    return [
        first,
        f"Why this model: {choice.why}. {facts.note}".rstrip() + others,
        "Another one: /model NAME. To keep it: /config model.name NAME --save.",
        "Type what you want done, with @path to bring a file in. /help shows all that can be typed.",
        "Ctrl-C stops an answer. Ctrl-D or /exit leaves; nca loop --continue goes on where you were.",
    ]


def _require_runtime() -> None:
    from nca.errors import ModelUnavailable

    if util.find_spec(_RUNTIME) is None:
        raise ModelUnavailable(
            "No key, no local server was found, and the embedded model's runtime is not installed.",
            advice="Set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …), or: pip install 'nca[local]'",
        )


def _wanted(choice: Choice) -> str | None:
    """The name of the model to fetch, None for a key."""
    from nca.cli.fetching import size
    from nca.models.embedded import weights

    named = choice.model.removeprefix("embedded/")
    is_configured = bool(os.environ.get(weights.VARIABLE)) or choice.why.startswith("configured")
    if is_configured:
        return named
    small = list(weights.KNOWN)[-1]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return small
    recommended = weights.recommended()
    print(
        _QUESTION.format(
            recommended=weights.known(recommended).title,
            recommended_size=size(weights.known(recommended).size_bytes),
            small=weights.known(small).title,
            small_size=size(weights.known(small).size_bytes),
        )
    )
    while True:
        try:
            answer = input("1, 2 or 3 [1]: ").strip()
        except EOFError:
            return None
        if answer in ("", "1", "2", "3"):
            return {"2": small, "3": None}.get(answer, recommended)
        print("Type 1, 2 or 3, or Enter for 1. Ctrl-C leaves, and nothing is fetched.")
