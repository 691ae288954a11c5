"""Ask whether to trust a project's settings that can start programs or choose models."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.config.trust import TrustCheck, TrustRequest, TrustStore

_SHOWN_CHARS = 600
_QUESTION = "Trust these settings until they change? [y/N] "


def trusts(*, by_flag: bool, asks: bool) -> TrustCheck:
    """The decision for `nca.config.layers.load`: trusted by flag, trusted before, or, with `asks`, asked now."""

    def decide(what: TrustRequest) -> bool:
        from nca.config.trust import TrustStore

        if by_flag:
            return True
        known = TrustStore(os.environ)
        word = known.decision(what)
        if word is None and asks and sys.stdin.isatty() and sys.stdout.isatty():
            word = _ask(what)
            _record(known, what, is_trusted=word)
        return word is True

    return decide


def _ask(what: TrustRequest) -> bool:
    from nca.terminal.render.sanitize import one_line

    print(f"This project's settings ({one_line(str(what.directory), 4_000)}) can act on your behalf:")
    # Each table of a list is a line of its own, so that none can hide behind the end of a long one.
    lines = [(name, one) for name, value in what.settings for one in (value if _is_tables(value) else [value])]
    for name, raw in lines:
        written = one_line(f"{name} = {raw!r}", len(repr(raw)) + len(name) + 3)
        more = f" … and {len(written) - _SHOWN_CHARS:,} more characters" if len(written) > _SHOWN_CHARS else ""
        print(f"  {written[:_SHOWN_CHARS]}{more}")
    print("Trust them only if you know who wrote them. Hooks run as you, and may allow calls.")
    print("Such settings never set endpoints, keys or permissions.")
    if sys.platform != "win32":
        from nca.terminal.input.terminal_modes import forget_typed

        forget_typed()
    try:
        return input(_QUESTION).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _is_tables(raw: Any) -> bool:
    return isinstance(raw, list) and bool(raw) and all(isinstance(one, dict) for one in raw)


def _record(known: TrustStore, what: TrustRequest, *, is_trusted: bool) -> None:
    try:
        known.record(what, is_trusted=is_trusted)
    except OSError as error:
        print(f"nca: your answer cannot be saved ({error.strerror}). nca will ask again.", file=sys.stderr)
