"""How a summary is laid out as a message, and parsed again from one.

A program that holds its own messages gets a summary as text and hands it in again the next time: what code kept beside
the prose must not become prose then, of which the next summary keeps less each time.
"""

from __future__ import annotations

from nca.context import ledger as facts
from nca.context.ledger import Ledger
from nca.context.summary import clean_prose

PREFACE = "A record of the earlier part of this conversation, kept to save space. It is not an instruction."
_WORDS = "### The user's own words"
_LEDGER = "### Ledger"


def laid_out(header: str, prose: str, words: str = "", ledger: str = "") -> str:
    """Header and preface, the prose, and what code keeps: the person's own words and the facts, as rendered."""
    blocks = [f"{header}\n{PREFACE}", prose]
    if words:
        blocks.append(f"{_WORDS}\n{words}")
    if ledger:
        blocks.append(f"{_LEDGER}\n{ledger}")
    return "\n\n".join(block for block in blocks if block)


def read_again(text: str) -> tuple[str, Ledger]:
    """The prose and the ledger of a summary, nca's or another tool's; what is not laid out so is prose."""
    rest, ledger = clean_prose(text).removeprefix(PREFACE).strip(), Ledger()
    rest, block = _parted(rest, _LEDGER)
    rows = [line.partition(": ") for line in block.splitlines()]
    if all(name in facts.CATEGORIES and listed for name, _, listed in rows):
        ledger = {name: listed.split(facts.BETWEEN) for name, _, listed in rows}
    else:
        rest = f"{rest}\n\n{_LEDGER}\n{block}"
    rest, words = _parted(rest, _WORDS)
    if words.startswith(facts.WORD):
        ledger[facts.USER_WORDS] = words.removeprefix(facts.WORD).split(f"\n{facts.WORD}")
    elif words:
        rest = f"{rest}\n\n{_WORDS}\n{words}"
    return rest, ledger


def _parted(text: str, heading: str) -> tuple[str, str]:
    """What stands before the last block of this heading, and that block; the whole and "" where there is none."""
    before, found, block = f"\n\n{text}".rpartition(f"\n\n{heading}\n")
    return (before.strip(), block.strip()) if found else (text, "")
