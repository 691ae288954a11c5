"""/copy: copy an answer, or a code block of it, to the clipboard."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from nca.agent.turn import GOES_ON
from nca.errors import UsageError
from nca.messages import Entry
from nca.terminal.commands.command import App, Command, Suggestion
from nca.terminal.render.markdown_blocks import BlockSplitter
from nca.terminal.render.sanitize import one_line, to_terminal

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


SUGGESTED = 9
_ABOUT_CHARS = 60


class CopyCommand(Command):
    name = "copy"
    usage = "/copy [N]\n/copy code [N]"
    about = "Copy the last answer as Markdown, the Nth latest one, or its last code block"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a program"

    async def run(self, app: App, argument: str) -> None:
        words = argument.lower().split()
        is_code = words[:1] == ["code"]
        number = _number(words[1:] if is_code else words, argument)
        answers = answers_backwards(app.conversation.context.backwards())
        if is_code:
            blocks = [block for answer in answers for block in reversed(code_blocks(answer))]
            text, what = _pick(blocks, number, "block of code")
        else:
            text, what = _pick(list(islice(answers, number)), number, "answer")
        # What is pasted elsewhere is as safe as what is shown here: a terminal may take pasted controls for keys.
        text = to_terminal(text)
        copied = await asyncio.to_thread(copy_text, text, app.output.send_codes, os.environ)
        size = f"{len(text):,} characters"
        if not copied.is_done:
            raise UsageError(f"Not copied: {copied.how}.", advice="/export writes the session to a file.")
        app.output.show(f"Copied {what} ({size}) {copied.how}.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        if "code".startswith(argument.lower()):
            yield Suggestion("code", "the last block of code")
        for number, answer in enumerate(islice(answers_backwards(app.conversation.context.backwards()), SUGGESTED), 1):
            if str(number).startswith(argument):
                yield Suggestion(str(number), one_line(answer, _ABOUT_CHARS))


def answers_backwards(entries: Iterable[Entry]) -> Iterable[str]:
    """What the model said to the person, the last first, of a conversation that is given newest first.

    An answer that was asked to go on is one with what followed.
    """
    later, goes_on = "", False
    for message in (entry.message for entry in entries):
        if message.source == "nca" and message.text in GOES_ON:
            goes_on = True
        elif message.role == "assistant" and message.text.strip():
            if later and not goes_on:
                yield later.strip()
            later, goes_on = message.text + later if goes_on else message.text, False
    if later:
        yield later.strip()


def code_blocks(markdown: str) -> list[str]:
    """The blocks of code of an answer, in order, each with a newline at its end."""
    splitter = BlockSplitter()
    found: dict[int, list[str]] = {}
    for block in [*splitter.feed(markdown), *splitter.finish()]:
        if block.kind == "code":
            found.setdefault(block.fence, []).append(block.text)
    return ["\n".join(pieces) + "\n" for pieces in found.values()]


def _number(words: Sequence[str], argument: str) -> int:
    if not words:
        return 1
    if len(words) == 1 and words[0].isdecimal() and 0 < len(words[0]) < 9 and int(words[0]) > 0:
        return int(words[0])
    raise UsageError(
        f"/copy {one_line(argument, 40)} is not known.", advice="Valid: code, or a number (1 is the last)."
    )


def _pick(texts: Sequence[str], number: int, what: str) -> tuple[str, str]:
    if len(texts) < number:
        few = f"{number:,} is too large: 1 is the last {what}, {len(texts):,} the first."
        raise UsageError(few if texts else f"There is no {what} yet.")
    return texts[number - 1], f"the last {what}" if number == 1 else f"{what} {number} from the end"
