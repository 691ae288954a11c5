"""The first run without a key: choose a model and download it; and the lines above the first prompt."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib import util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.models.catalog import ModelFacts
    from nca.models.choose import Choice

_RUNTIME = "xllamacpp"
_QUESTION = """\
nca found no API key, no local server and no downloaded model. Which model should it use?
  1  {recommended} (recommended)
  2  {small}
  3  I have an API key"""
_KEY_HELP = """\
Set the key in the environment and start nca again:
  export OPENAI_API_KEY=…
or ANTHROPIC_API_KEY, GEMINI_API_KEY, MISTRAL_API_KEY, OPENROUTER_API_KEY, …
To choose a model: nca loop --model NAME. To see what nca found: nca doctor."""


def ensure_weights(choice: Choice) -> Choice | None:
    """Download the embedded model of `choice` if needed; None if the person would rather set a key.

    Asks once on a terminal. Without a terminal it takes the small model, unless the environment names another.
    Raises ModelUnavailable, NcaError.
    """
    if not choice.is_embedded:
        return choice
    from nca.cli.models import download_weights
    from nca.models.embedded import weights

    if weights.path_of(choice.model) is not None:
        return choice
    _require_runtime()
    name = _wanted(choice)
    if name is None:
        print(_KEY_HELP)
        return None
    print(f"Downloading {weights.known(name).title} to {weights.models_dir()}.", file=sys.stderr)
    download_weights(name)
    return replace(choice, model=f"embedded/{name}", why="no key, no endpoint and no local server was found")


def banner(
    choice: Choice, facts: ModelFacts, *, is_first: bool, reserve_tokens: int, auto: str = "on", not_kept: str = ""
) -> list[str]:
    """The lines above the first prompt: five on the first run, one later, and one each for a note and a memory.

    reserve_tokens  what of the window is kept free for the answer
    auto            context.auto
    not_kept        why the session is not kept on disk; "": it is
    """
    is_assumed = facts.window_is_assumed or (bool(choice.api_base) and facts.is_window_usual)
    window = f"{facts.window_tokens:,} tokens" + (" (assumed)" if is_assumed else "")
    window += f", {reserve_tokens:,} for the answer (model.max_output_tokens)"
    first = f"nca · {choice.model} · window {window}" + ("" if auto == "on" else f" · auto-compaction {auto}")
    if not is_first:
        origin = f"Why this model: {choice.why}. /model default goes back to the configured one."
        return [f"{first} · /help", *([facts.note] if facts.note else []), *([origin] if choice.is_remembered else [])]
    others = f" Also available: {', '.join(choice.alternatives[:3])}." if choice.alternatives else ""
    later = f"This session is not kept: {not_kept}." if not_kept else "nca loop --continue resumes this session."
    return [
        first,
        f"Why this model: {choice.why}. {facts.note}".rstrip() + others,
        "To use another model in this directory: /model NAME. Everywhere: nca config set model.name NAME.",
        "Type what you want done. @path attaches a file. /help lists all commands and keys.",
        f"Ctrl-C stops an answer. Ctrl-D or /exit leaves. {later}",
    ]


def _require_runtime() -> None:
    from nca.errors import ModelUnavailable

    if util.find_spec(_RUNTIME) is None:
        raise ModelUnavailable(
            "No API key and no local server was found, and the embedded model's runtime is not installed.",
            advice="Set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …), or run: pip install 'nca[local]'",
        )


def _wanted(choice: Choice) -> str | None:
    """The name of the model to download; None if the person has a key."""
    from nca.humanize import byte_size
    from nca.models.embedded import weights

    if os.environ.get(weights.VARIABLE) or choice.is_named:
        return choice.model.removeprefix("embedded/")
    small, recommended = list(weights.KNOWN)[-1], weights.recommended()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return small
    titles = [f"{one.title}, {byte_size(one.size_bytes)}" for one in map(weights.known, (recommended, small))]
    print(_QUESTION.format(recommended=titles[0], small=titles[1]))
    while True:
        try:
            answer = input("1, 2 or 3 [1]: ").strip()
        except EOFError:
            return None
        if answer in ("", "1", "2", "3"):
            return {"2": small, "3": None}.get(answer, recommended)
        print("Type 1, 2 or 3, or press Enter for 1. Ctrl-C leaves without downloading.")
