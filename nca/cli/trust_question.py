"""Whether the project one stands in may act: what the person said before, a flag, or a question on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.config.trust import TrustCheck, TrustRequest, TrustStore

_SHOWN_CHARS = 600
_QUESTION = "Take them over? They count from now on, until they change. [y/N] "


def trusts(*, by_flag: bool, asks: bool) -> TrustCheck:
    """What `nca.config.layers.load` asks. `by_flag`: the person said so for this run; `asks`: a terminal is asked."""

    def decide(what: TrustRequest) -> bool:
        from nca.config.trust import TrustStore

        if by_flag:
            return True
        known = TrustStore(os.environ)
        word = known.decision(what)
        if word is None and asks and sys.stdin.isatty() and sys.stdout.isatty():
            word = _asked(what)
            _record(known, what, is_trusted=word)
        return word is True

    return decide


def _asked(what: TrustRequest) -> bool:
    from nca.terminal.render.sanitize import one_line

    print(f"The settings of this project want to act ({one_line(str(what.directory), 4_000)}/.nca/config.toml):")
    for name, raw in what.settings:
        written = one_line(f"{name} = {raw!r}", len(repr(raw)) + len(name) + 3)
        more = f" … and {len(written) - _SHOWN_CHARS:,} more characters" if len(written) > _SHOWN_CHARS else ""
        print(f"  {written[:_SHOWN_CHARS]}{more}")
    print("Do so only where you know who wrote them. Endpoints, keys and permissions it cannot set in any case.")
    if sys.platform != "win32":
        from nca.terminal.input.terminal_modes import forget_typed

        forget_typed()
    try:
        return input(_QUESTION).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _record(known: TrustStore, what: TrustRequest, *, is_trusted: bool) -> None:
    try:
        known.record(what, is_trusted=is_trusted)
    except OSError as error:
        print(f"nca: this cannot be kept ({error.strerror}) and will be asked again.", file=sys.stderr)
