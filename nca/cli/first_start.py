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
    """At most five lines; the first start says more than later ones."""
    window = f"{facts.window_tokens:,} tokens" + (" (assumed)" if facts.window_is_assumed else "")
    first = f"nca · {choice.model} · window {window}"
    lines = [first if is_first else f"{first} · /help"]
    if facts.note:
        lines.append(facts.note)
    if is_first:
        others = f" Also here: {', '.join(choice.alternatives[:3])}." if choice.alternatives else ""
        lines.append(f"Why this model: {choice.why}.{others}")
        lines.append("Another one: /model NAME, or for good: /config model.name NAME --save.")
        lines.append("/help shows what can be typed, Ctrl-C stops an answer, Ctrl-D leaves.")
    return lines


def _require_runtime() -> None:
    from nca.errors import ModelUnavailable

    if util.find_spec(_RUNTIME) is None:
        raise ModelUnavailable(
            "No key, no local server was found, and the embedded model's runtime is not installed.",
            advice="Set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …), or: pip install 'nca[local]'",
        )


def _wanted(choice: Choice) -> str | None:
    """The name of the model to fetch, None for a key."""
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
            recommended_size=_size(weights.known(recommended).size_bytes),
            small=weights.known(small).title,
            small_size=_size(weights.known(small).size_bytes),
        )
    )
    while True:
        try:
            answer = input("1, 2 or 3 [1]: ").strip()
        except EOFError:
            return None
        if answer in ("", "1", "2", "3"):
            return {"2": small, "3": None}.get(answer, recommended)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
