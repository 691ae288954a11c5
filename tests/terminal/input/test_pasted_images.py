"""Images from the clipboard."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from nca.terminal.input.pastes import PastedImages
from tests.terminal.tty import chats

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def a_program(folder: Path, name: str, output: bytes, code: int = 0) -> dict[str, str]:
    """An environment with a clipboard program that prints these bytes."""
    folder.mkdir(exist_ok=True)
    (folder / "output").write_bytes(output)
    program = folder / name
    program.write_text(f'#!/bin/sh\ncat "{folder}/output"\nexit {code}\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "DISPLAY": ":0"}


def test_each_image_is_a_file_of_its_own_and_private(tmp_path: Path) -> None:
    images = PastedImages(a_program(tmp_path, "xclip", PNG))
    first, second = images.take(), images.take()
    assert first is not None
    assert second is not None
    assert (first.name, second.name, first.read_bytes()) == ("pasted-1.png", "pasted-2.png", PNG)
    assert first.parent.stat().st_mode & 0o077 == 0
    images.close()
    assert not first.parent.exists()


@pytest.mark.parametrize(("output", "code"), [(b"", 0), (b"just text", 0), (PNG, 1), (PNG + b"x" * 5_000_000, 0)])
def test_what_is_no_image_is_none(tmp_path: Path, output: bytes, code: int) -> None:
    for env in (a_program(tmp_path, "xclip", output, code), {"PATH": str(tmp_path / "none"), "DISPLAY": ":0"}):
        images = PastedImages(env)
        assert images.take() is None
        images.close()


def test_ctrl_v_puts_the_image_into_the_message_and_says_where_there_is_none(tmp_path: Path) -> None:
    env = a_program(tmp_path / "bin", "xclip", PNG)
    with chats() as begin:
        tty = begin("Seen.", env=env)
        tty.send("Look at\x16")
        tty.sees("Look at @")
        tty.sees("pasted-1.png")
        (tmp_path / "bin" / "output").write_bytes(b"")
        tty.send("\x16")
        tty.sees("There is no image on the clipboard")
