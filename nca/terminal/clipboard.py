"""Copy text to the clipboard, with a program of this machine or through the terminal (OSC 52).

OSC 52 works over ssh too. tmux has its own command, which passes the text on to the terminal around it.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

OSC_52_MOST_BYTES = 74_994
"""What xterm takes, whose whole sequence may have 100,000 bytes; terminals drop a longer one without a word."""

PROGRAM_SECONDS = 5.0


class Copied(NamedTuple):
    """Whether it was copied, and how or why not, for a person."""

    is_done: bool
    how: str


def copy_text(text: str, send_codes: Callable[[str], bool], environment: Mapping[str, str]) -> Copied:
    """Put `text`, which is safe already, on the clipboard."""
    for command in _programs(environment):
        if _ran(command, text):
            return Copied(is_done=True, how=f"with {command[0]}")
    data = text.encode("utf-8", "replace")
    if len(data) > OSC_52_MOST_BYTES:
        return Copied(
            is_done=False, how=f"terminals take {OSC_52_MOST_BYTES:,} bytes at most, and this has {len(data):,}"
        )
    if send_codes(f"\x1b]52;c;{base64.b64encode(data).decode()}\x1b\\"):
        return Copied(is_done=True, how="through the terminal, if it allows that")
    return Copied(is_done=False, how="found no terminal and no program (pbcopy, wl-copy, xclip, xsel, clip)")


def _programs(environment: Mapping[str, str]) -> list[list[str]]:
    """What may be here, the one that fits best first. Over ssh a program would fill the other machine's clipboard."""
    found: list[list[str]] = []
    if environment.get("TMUX"):
        found.append(["tmux", "load-buffer", "-w", "-"])
    if not any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")):
        if sys.platform == "darwin":
            found.append(["pbcopy"])
        if environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-copy"])
        if environment.get("DISPLAY"):
            found += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
        if environment.get("WSL_DISTRO_NAME"):
            found.append(["clip.exe"])
    path = environment.get("PATH", "")
    whole = [(shutil.which(command[0], path=path), command) for command in found]
    return [[program, *command[1:]] for program, command in whole if program]


def _ran(command: list[str], text: str) -> bool:
    """Some stay in the background for as long as they hold the clipboard, so nothing of ours is left open in them."""
    encoding = "utf-16-le" if command[0].lower().endswith("clip.exe") else "utf-8"
    try:
        ran = subprocess.run(  # noqa: S603  a fixed program, found on the person's PATH
            command,
            input=text.encode(encoding, "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROGRAM_SECONDS,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
