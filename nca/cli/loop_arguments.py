"""The words behind `nca loop`, read without Typer: to import it takes as long as all that the first prompt needs.

Whatever is not plain here (help, a mistake, an unusual way of writing) is Typer's to read, to explain or to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.cli.chat import ChatWords

SWITCHES = {
    "--continue": "continue_",
    "-c": "continue_",
    "--resume": "resume",
    "-r": "resume",
    "--disable-compaction": "disable_compaction",
    "--trust": "trust",
    "--plain": "plain",
}
VALUES = {
    "--model": "model",
    "-m": "model",
    "--compact-threshold": "compact_threshold",
    "--context-window": "context_window",
    "--max-output-tokens": "max_output_tokens",
    "--permission": "permission",
    "--max-cost": "max_cost",
    "--profile": "profile",
    "--config": "config",
}
"""The flags of nca.cli.loop and its parameters; a test holds the two together."""


def read_words(words: Sequence[str]) -> ChatWords | None:
    """What they say; None where Typer has to read them."""
    found: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        flag, has_value, value = word.partition("=")
        if word in SWITCHES:
            found[SWITCHES[word]] = True
        elif flag in VALUES and has_value and flag.startswith("--"):
            found[VALUES[flag]] = value
        elif word in VALUES and waiting and not waiting[0].startswith("-"):
            found[VALUES[word]] = waiting.pop(0)
        elif not word.startswith("-") and "session" not in found:
            found["session"] = word
        else:
            return None
    if "config" in found:
        found["config"] = Path(found["config"])
    from nca.cli.chat import ChatWords

    return ChatWords(**found)
