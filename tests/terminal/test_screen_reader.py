"""A screen reader on the machine is found, and the chat offers plain lines for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.terminal.open_terminal import running_screen_reader
from tests.terminal.tty import chat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a program's name makes no VoiceOver of it")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[str]:
    program = tmp_path / "fenrir"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        # It gets its name a moment after it was started.
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "fenrir":
            time.sleep(0.01)
        yield "fenrir"
        process.kill()


def test_the_chat_offers_plain_lines_once(reader: str) -> None:
    found = running_screen_reader()
    assert found
    with chat("One.", looks_for_reader=True) as tty:
        tty.sees(f"{found} is running: nca loop --plain")
        tty.line("/new")
        tty.settle()
        assert tty.text().count("is running: nca loop --plain") == 1
    with chat("One.", settings={"terminal.plain": False}) as tty:
        tty.line("hello")
        tty.sees("One.")
        tty.settle()
        assert "is running" not in tty.text()
