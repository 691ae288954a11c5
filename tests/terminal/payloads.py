"""Texts that would control a terminal, and how to tell them from nca's own output.

Each sequence carries the number 1337, which nca never sends, so that it cannot pass for one of nca's.
"""

from __future__ import annotations

import re

MARK = "1337"
_FINALS = "@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstuxy{|}~"
_STRINGS = (
    *(f"0;{MARK}", f"1;{MARK}", f"2;{MARK}", f"4;1;rgb:{MARK}", f"7;file://{MARK}", f"8;;http://{MARK}.example"),
    *(f"9;{MARK}", f"9;4;1;{MARK}", f"10;{MARK}", f"11;?{MARK}", f"12;{MARK}", f"50;{MARK}", f"52;c;MTMzNw{MARK}=="),
    *(f"52;c;?{MARK}", f"99;;{MARK}", f"104;{MARK}", f"133;A;{MARK}", f"633;E;{MARK}", f"777;notify;a;{MARK}"),
    *(f"1337;SetMark{MARK}", f"1337;File=inline=1:{MARK}"),
)
_ENDS = ("\x07", "\x1b\\", "\x9c", "")

CSI = [f"{begin}{MARK}{final}" for begin in ("\x1b[", "\x9b") for final in _FINALS]
CSI += [
    f"\x1b[{part}" for part in (f"?{MARK}h", f"?{MARK};25l", f">{MARK}c", f"!{MARK}p", f"{MARK} q", f"38:2:{MARK}m")
]
CSI += [f"\x1b[{MARK}", "\x1b[", "\x1b[?", "\x9b", "\x1b[201~", "\x1b[200~", "\x1b[c", "\x1b[6n"]
OSC = [f"{begin}{string}{end}" for begin in ("\x1b]", "\x9d") for string in _STRINGS for end in _ENDS]
STRINGS = [f"{begin}{MARK}{end}" for begin in "\x90\x98\x9e\x9f" for end in _ENDS]
STRINGS += [f"\x1b{begin}{MARK}{end}" for begin in "PX^_k" for end in _ENDS]
ESCAPES = [
    f"\x1b{end}" for end in ("c", "7", "8", "=", ">", "D", "E", "H", "M", "N", "O", "Z", "n", "o", "|", "}", "~")
]
ESCAPES += ["\x1b(0", "\x1b)B", "\x1b#8", "\x1b%G", "\x1b F", "\x1b", "\x1b\x1b", "\x1b\x1b[1337m", "\x1b\x07[1337m"]
ESCAPES += ["\x1b[1337\x1b[1337m", "\x1b[13\x1b]0;1337\x0737m", "\x9b\x9b1337m", "\x1b\x00[1337m", "\x1b[\x001337m"]
CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
UNSEEN = [
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x2070), 0xFFF9, 0xFFFB, 0xE0001, 0xE0041, 0xE007F)
]
SURROGATES = ["\ud83d", "\udc41", "\udb40\udc41x", "\udcff\x1b[1337m"]

PAYLOADS = list(dict.fromkeys([*CSI, *OSC, *STRINGS, *ESCAPES, *CONTROLS, *UNSEEN, *SURROGATES]))
"""As a person or a model may have written them; lone surrogates cannot be stored or sent, and are replaced there."""

# What the screen and prompt_toolkit send: styles, moves, erasing, modes of the keyboard and the cursor.
_OWN = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\[\d{0,3}[ABCDJKGq]|\x1b\[\d{0,3};\d{0,3}[Hr]|\x1b\[[HJK]|\x1b\[\?\d{1,4}[hl]|\x1b\[0? q"
    r"|\x1b\[>?\d?[um]"
)
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_MARKED = re.compile(r"\x1b\[[0-9;:?>!]*1337")


def forbidden(written: str) -> list[str]:
    """What reached the terminal and is not nca's own, each with what stands around it."""
    marked = [found[0] for found in _MARKED.finditer(written)]
    rest = _OWN.sub("", written)
    return marked + [rest[max(found.start() - 20, 0) : found.end() + 20] for found in _FORBIDDEN.finditer(rest)]
