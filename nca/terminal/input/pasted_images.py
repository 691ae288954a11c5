"""Take an image from the clipboard, with a program of this machine; the prompt attaches the file as `@path`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

PROGRAM_SECONDS = 5.0
_APPLESCRIPT = (
    "set image to (the clipboard as \u00abclass PNGf\u00bb)",
    'set file_ to open for access POSIX file "{path}" with write permission',
    "write image to file_",
    "close access file_",
)


class PastedImages:
    """The images of one program, in a folder that goes with it: what is sent holds the image itself."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._folder: Path | None = None
        self._count = 0

    def take(self) -> Path | None:
        """The clipboard's image as a file; None where there is none, or no program that could give it. Blocks."""
        # Imported here: the first prompt does not need it.
        from nca.images import MAX_IMAGE_BYTES, image_kind

        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="nca-images-"))
        path = self._folder / f"pasted-{self._count + 1}.png"
        for command in self._programs(path):
            raw = self._output(command, path)
            if image_kind(raw) and len(raw) <= MAX_IMAGE_BYTES:
                path.write_bytes(raw)
                self._count += 1
                return path
        return None

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _programs(self, path: Path) -> list[list[str]]:
        """What may be here, the one that fits best first."""
        found: list[list[str]] = []
        if sys.platform == "darwin":
            lines = [line.format(path=path) for line in _APPLESCRIPT]
            found += [["pngpaste", "-"], ["osascript", *(word for line in lines for word in ("-e", line))]]
        if self._environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-paste", "--no-newline", "--type", "image/png"])
        if self._environment.get("DISPLAY"):
            found.append(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
        search = self._environment.get("PATH", "")
        whole = [(shutil.which(command[0], path=search), command) for command in found]
        return [[program, *command[1:]] for program, command in whole if program]

    def _output(self, command: list[str], path: Path) -> bytes:
        """What the program prints, or writes to the path; b"" where it fails."""
        try:
            ran = subprocess.run(  # noqa: S603  a fixed program, found on the person's PATH
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PROGRAM_SECONDS,
                start_new_session=True,
                check=False,
            )
            raw = ran.stdout or (path.read_bytes() if path.exists() else b"")
        except (OSError, subprocess.TimeoutExpired):
            return b""
        return raw if ran.returncode == 0 else b""
