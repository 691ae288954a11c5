"""Parse the arguments of `nca loop` without Typer, which takes as long to import as the first prompt needs in all.

Anything unusual (help, a mistake, a rare spelling) is left to Typer to parse, explain or refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nca.cli import flags


class LoopArguments(NamedTuple):
    """The arguments of `nca loop`, from which the command takes its parameters; None if not given."""

    texts: flags.Texts = None
    model: flags.Model = None
    continue_: flags.Continue = False
    resume: flags.Resume = False
    compact_threshold: flags.CompactThreshold = None
    disable_compaction: flags.DisableCompaction = False
    context_window: flags.ContextWindow = None
    max_output_tokens: flags.MaxOutputTokens = None
    permission: flags.Permission = None
    allow: flags.Allow = None
    max_cost: flags.MaxCost = None
    trust: flags.Trust = False
    profile: flags.Profile = None
    plain: flags.Plain = False
    config: flags.Config = None


_FLAGS = {f"--{name.rstrip('_').replace('_', '-')}": name for name in LoopArguments._fields if name != "texts"} | {
    f"-{name[0]}": name for name in ("continue_", "resume", "model")
}
_FLAGS["--session"] = "resume"  # as nca run calls it
SWITCHES = {flag: name for flag, name in _FLAGS.items() if LoopArguments._field_defaults[name] is False}
VALUES = {flag: name for flag, name in _FLAGS.items() if LoopArguments._field_defaults[name] is None}
"""The flags without and with a value, and their parameters. A test compares them with the command."""
_SEVERAL = ("texts", "allow")


def parse(arguments: Sequence[str]) -> LoopArguments | None:
    """The parsed arguments; None if Typer has to parse them."""
    found: dict[str, Any] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        flag, has_value, value = word.partition("=")
        if word in SWITCHES:
            found[SWITCHES[word]] = True
            continue
        if flag in VALUES and has_value and flag.startswith("--"):
            name = VALUES[flag]
        elif word in VALUES and waiting and not waiting[0].startswith("-"):
            name, value = VALUES[word], waiting.pop(0)
        elif not word.startswith("-"):
            name, value = "texts", word
        else:
            return None
        if not value and name != "texts":
            return None
        if name in _SEVERAL:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    if "config" in found:
        found["config"] = Path(found["config"])
    return LoopArguments(**found)
