"""What the terminal shows of keys that come before nca is quiet."""

from __future__ import annotations

import signal

import pytest

from tests.testing.forked_tty import ForkedTty

TAKE = """
import signal, sys
from nca.terminal.input.terminal_modes import TerminalModes
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready\\nleft", end="", flush=True) if sys.argv[1] == "left" else print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
early = TerminalModes(0).take(is_alone=sys.argv[1] != "others")
print(f"| {early}")
"""
LONG = "long " * 30


@pytest.mark.parametrize(
    ("case", "typed", "left"),
    [
        ("alone", "hel", "ready\n| b'"),
        ("left", "hel", "ready\nleft| b'"),
        ("alone", "hello\rwor", "ready\n| b'"),
        ("alone", f"日本\r{'日' * 50}\rx", "ready\n| b'"),
        ("alone", f"{LONG}\r{LONG}z", "ready\n| b'"),
        # Who wrote what between them is not known, so the line stays.
        ("others", "hello\rwor", "ready\nhello\n| b'"),
        # The terminal shows ^A: more columns than keys.
        ("alone", "a\x01b", "ready\na^Ab| b'"),
    ],
)
def test_what_the_prompt_will_show_is_erased(case: str, typed: str, left: str) -> None:
    with ForkedTty(["tests.testing.dash_c", TAKE, case], columns=80) as tty:
        tty.sees("ready")
        tty.send(typed)
        tty.until(lambda: any(line.endswith(typed[-1]) for line in tty.shown()))
        tty.process.kill(signal.SIGUSR1)
        assert tty.sees("| b'").startswith(left)


LENT = """
import asyncio, signal, sys
from prompt_toolkit.input.typeahead import get_typeahead
from nca.terminal.input.keyboard import Keyboard
from nca.terminal.input.type_ahead import TypeAhead
from nca.terminal.interrupts import Interrupts
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
async def main():
    keyboard = Keyboard()
    ahead = TypeAhead(keyboard, Interrupts(), lambda: False)
    with ahead.quiet(lambda: None, is_alone=True):
        with ahead.lent(is_quiet=False, is_typed_kept=True):
            print("ready", flush=True)
            signal.sigwait([signal.SIGUSR1])
        print("| " + repr("".join(key.data for key in get_typeahead(keyboard))), flush=True)
asyncio.run(main())
"""


def test_enter_typed_while_the_terminal_is_lent_sends_the_line() -> None:
    with ForkedTty(["tests.testing.dash_c", LENT], columns=80) as tty:
        tty.sees("ready")
        tty.send("hello\rwor")
        tty.until(lambda: any(line.endswith("wor") for line in tty.shown()))
        tty.process.kill(signal.SIGUSR1)
        tty.sees("| 'hello\\rwor'")
        lent, back = tty.raw.index(b"ready"), tty.raw.index(b"| ")
        marks = [b"\x1b[?2004h", b"\x1b[?2004l"]
        for at, said_last in ((lent, 1), (back, 0)):  # a paste is marked for nca, and not for another program
            assert max(range(2), key=lambda mark: tty.raw.rfind(marks[mark], 0, at)) == said_last


ABOVE = """
import asyncio, signal
from prompt_toolkit import PromptSession
from prompt_toolkit.key_binding import KeyBindings
from nca.terminal.input.display import drawn, write_above
from nca.terminal.input.keyboard import Keyboard
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
keys = KeyBindings()
keys.add("c-j")(lambda event: event.current_buffer.insert_text("<line break>"))
def write():
    print("ready", flush=True)
    signal.sigwait([signal.SIGUSR1])
async def main():
    session = PromptSession("", input=Keyboard(), key_bindings=keys)
    reading = asyncio.create_task(session.prompt_async())
    await drawn(session.app)
    write_above(session.app, write)
    print("| " + repr(await reading), flush=True)
asyncio.run(main())
"""


def test_enter_typed_while_a_line_is_written_above_the_prompt_sends_what_was_typed() -> None:
    with ForkedTty(["tests.testing.dash_c", ABOVE], columns=80) as tty:
        tty.sees("ready")
        tty.send("hello\r")
        tty.process.kill(signal.SIGUSR1)
        tty.sees("| 'hello'")
