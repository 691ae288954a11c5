"""Whether a screen reader runs on this machine, so that the chat can offer plain lines.

A reader on another machine, as through ssh or outside of WSL, cannot be seen from here.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_READERS = frozenset({"orca", "brltty", "espeakup", "fenrir", "speechd-up", "yasr"})
_MAC_READER = "VoiceOver"
_PGREP = "/usr/bin/pgrep"
_SECONDS = 2.0


def running_screen_reader() -> str:
    """Its name; "" if none is found. It looks at the names of all processes: call it in a thread."""
    if sys.platform == "darwin":
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [_PGREP, "-x", _MAC_READER]
            found = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  fixed words
            return _MAC_READER if found.returncode == 0 else ""
        return ""
    for file in Path("/proc").glob("[0-9]*/comm"):
        # A process may have ended meanwhile.
        with suppress(OSError):
            if (name := file.read_text("utf-8", "replace").strip()) in _READERS:
                return name
    return ""


def plain_offer(reader: str) -> str:
    return (
        f"{reader} is running: nca loop --plain writes plain lines for screen readers. "
        "nca config set terminal.plain true keeps it, false ends this notice."
    )
