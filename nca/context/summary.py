"""Summary requests and replies, and the checks that a reply must pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from nca.config.schema import ContextSettings
from nca.context.tokens import text_tokens
from nca.humanize import natural
from nca.messages import Message, clean_text
from nca.vocabulary import fitting_start, within

HEADER = "## Conversation Summary (Earlier Context)"
"""NeuroLink's header, and that of nca's first design."""
FOREIGN_HEADERS = (
    HEADER,
    "Previous conversation summary:",
    "[Summary of earlier conversation]",
    "[System: Previous conversation summary",
    "[Earlier conversation compacted for context management. Continuing from summary.]",
    "[Session history compacted due to context limits. Please refer to recent context below.]",
    "# Context Checkpoint",
    "[Previous conversation summary]",
)
"""The beginnings of summaries, or of lines that replace one, in nca, NeuroLink (its documentation and its code),
Neuron, CowAgent, Nexora and others: such a text is never summarized as talk."""
_HEADER = re.compile(rf"(?:{'|'.join(map(re.escape, FOREIGN_HEADERS))})(?: — [^\]\n]*\])?")
"""A header with the rest of its line: CowAgent's says how many turns it covers."""
_TALK_FOLLOWS = "The recent conversation continues below.\n\n---"
"""CowAgent writes its summary into the person's next message; this comes before the person's text."""
ECHO_CHARS = 40
"""A sentence of an instruction that is at least so long does not come by chance."""
MINIMUM_CHARS = 40
"""A summary of more than a few messages that is shorter than this says nothing."""
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STILL_THINKING = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""A template may write the opening tag itself, so that a reply holds only the closing one."""
_REFUSAL = re.compile(
    r"(?i)^\W*((?:i['’]?m|i am) (?:sorry|unable|not able)|sorry|i (?:can(?:no|['’])?t|won['’]?t)"
    r"|unfortunately,? i|as an ai)\b"
)


_SECTION, _OF_ITS_MOMENT = "\n### ", ("Pending and next step", "Current work")
"""Two of the headings that `prompts/detailed.md` asks for."""
_KEEP = re.compile(r"(?im)^[^\w\n]*keep[^\w\n]+(\d+(?:[^\w\n]+\d+)*)[^\w\n(]*(?:\([^()\n]*\)[^\w\n]*)?$")
"""The line in which a model names the messages to keep, as the prompts ask for it; a remark in brackets may follow."""


def named_by(prose: str, head: int) -> frozenset[int]:
    """The numbers of messages that prose names as ones to keep; those that there are."""
    digits = ("".join(char if char.isdecimal() else " " for char in line) for line in _KEEP.findall(prose))
    numbers = {natural(word) for line in digits for word in line.split()}
    return frozenset(number for number in numbers if number is not None and 1 <= number <= head)


def without_named(prose: str) -> str:
    """Prose as it is shown: the line of numbers is for the code alone."""
    return _KEEP.sub("", prose).strip()


def without_pending(prose: str) -> str:
    """Prose without what it says of its own moment, for a reader to whom later messages are told beside it."""
    first, *sections = f"\n{prose}".split(_SECTION)
    left = [one for one in sections if one.partition("\n")[0].strip() not in _OF_ITS_MOMENT]
    return _SECTION.join([first, *left]).strip()


@cache
def prompt(name: str) -> str:
    """The text of `prompts/NAME.md`, which asks for a summary; read once."""
    # It imports much, and most compactions ask no model.
    from importlib.resources import files

    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


class SummaryRequest(msgspec.Struct, frozen=True):
    """One question to the summarizer.

    messages   to send if the summarizer reads a flattened transcript: one user message
    live       all covered messages as the chat's model last saw them, for a model that keeps its evaluated prefix:
               send them unchanged, then `instruction` as the last user message. Empty if that is not possible.
               Its instruction is short and speaks of "the conversation above": such models are small.
    """

    instruction: str
    messages: tuple[Message, ...]
    live: tuple[Message, ...]
    max_tokens: int


class SummaryReply(msgspec.Struct, frozen=True):
    """`is_of_live`: it was asked after the live messages, so it covers all of them and not one chunk.

    `is_cut`: the model ended it because it had no room left.
    """

    text: str
    made_by: str = ""
    has_tool_calls: bool = False
    is_of_live: bool = False
    is_cut: bool = False


class SummaryFailure(msgspec.Struct, frozen=True):
    """No answer: `reason` in a few words. `is_final`: do not ask again (no model, or the deadline is over)."""

    reason: str
    is_final: bool = False


class Written(msgspec.Struct, frozen=True):
    """`made_by` is "extract" if code wrote it, and ends so if code continued; `failures` say why no model did."""

    prose: str
    made_by: str
    failures: tuple[str, ...] = ()


def accept(
    reply: SummaryReply, asked: str, *, existing: Sequence[str] = (), max_tokens: int, input_raw: int
) -> tuple[str, str]:
    """The usable prose of a reply and "", or "" and why it cannot be used. `asked` is all that it was asked with."""
    if reply.has_tool_calls:
        return "", "the summarizer called a tool"
    prose = clean_prose(reply.text)
    if not prose:
        return "", "the summary was empty"
    if _REFUSAL.search(prose) and len(prose) < 600:
        return "", "the summarizer refused"
    if len(prose) < MINIMUM_CHARS and input_raw > 400:
        return "", "the summary was too short to say anything"
    if text_tokens(prose) > max(input_raw, 32):
        return "", "the summary was longer than the messages that it replaces"
    if _is_echo(prose, asked, existing):
        return "", "the summarizer repeated its input"
    if any(sentence in prose for sentence in _sentences_of_prompts()):
        return "", "the summarizer repeated its instruction"
    if reply.is_cut and "\n" in prose:
        # The last line ended in the middle of a word or a thought.
        prose = prose[: prose.rindex("\n")].rstrip() + "\n[…]"
    return cut_text(prose, max_tokens), ""


@cache
def _sentences_of_prompts() -> tuple[str, ...]:
    """The sentences that ask for a summary, which a summary never says by itself."""
    text = " ".join(prompt(name) for name in ("detailed", "bullets", "live", "merge"))
    sentences = map(str.strip, text.replace(":", ".").replace("\n", ".").split("."))
    return tuple(sentence for sentence in sentences if len(sentence) >= ECHO_CHARS and "{" not in sentence)


def _is_echo(prose: str, asked: str, existing: Sequence[str]) -> bool:
    """Whether a reply begins as what was asked; a merge may well begin as the summary that it continues."""
    if len(prose) <= 400:
        return False
    for text in existing:
        if prose in text:
            return True
        asked = asked.replace(text, "")
    return prose[:300] in asked


def clean_prose(text: str) -> str:
    """Without thinking, echoed headers and fences around the whole."""
    text = _STILL_THINKING.sub("", _THINKING.sub("", clean_text(text))).strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.strip("`").partition("\n")[2].strip()
    if header := _HEADER.match(text):
        text = text[header.end() :].partition(_TALK_FOLLOWS)[0].strip()
    return text


CUT = " […]"
"""The end of a text that was cut."""


def cut_text(text: str, max_tokens: int, rest: str = "") -> str:
    """At most `max_tokens` raw tokens of text, cut at a paragraph's or line's end if one is near, visibly.

    rest  how to get the rest, such as `recall expand=57`
    """
    if text_tokens(text) <= max_tokens:
        return text
    end_mark = f" [… {rest} …]" if rest else CUT

    def cut(room: int) -> str:
        kept = fitting_start(text, room)
        for end in ("\n\n", "\n", ". ", " "):
            place = kept.rfind(end, int(len(kept) * 0.8))
            if place > 0:
                return kept[:place].rstrip() + end_mark
        return kept.rstrip() + end_mark

    return within(max_tokens, max_tokens - text_tokens(end_mark), cut)


def is_summary(message: Message) -> bool:
    """Whether a message is a summary of this or another tool, and nothing but that."""
    if message.role not in ("user", "system") or not message.text.lstrip().startswith(FOREIGN_HEADERS):
        return False
    return not message.text.partition(_TALK_FOLLOWS)[2].strip()


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """One compaction's orders.

    focus          the subject that a summary should keep above all
    input_tokens   raw tokens that the summarizer's window leaves for its input
    has_recall     the record's reader can look up left-out messages: it has numbers and says how
    changed_files  what the record of files knows: the message before a change, the path, and what it is now
    """

    settings: ContextSettings
    budget_tokens: int
    focus: str
    input_tokens: int
    has_summarizer: bool = True
    has_recall: bool = True
    changed_files: Sequence[tuple[int, str, str]] = ()
