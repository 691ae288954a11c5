"""Writing a summary: two tries with a model, then by code, so that it always ends with one.

The engine calls no model. `write` is a generator that yields what to ask and takes what came back; whoever drives it
(the library, the agent) may ask synchronously or not, and decides how long to wait.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from functools import cache

import msgspec

from nca.context.extract import extract_text
from nca.context.prompts import prompt
from nca.context.tokens import message_tokens, text_tokens
from nca.messages import Message, clean_text
from nca.wire import content_text

HEADER = "## Conversation Summary (Earlier Context)"
"""Seeds 1 and 2."""
FOREIGN_HEADERS = (
    HEADER,
    "[Summary of earlier conversation]",
    "# Context Checkpoint",
    "[Previous conversation summary]",
)
"""How this and other tools begin a summary (seeds 1, 2, 4): text that begins so is never summarised as talk."""
MESSAGE_CHARS = (10_000, 2_500, 600)
"""How much of each message a summarizer is shown; the first that fits its window."""
ECHO_CHARS = 40
"""A sentence of an instruction that is at least so long does not come by chance."""
WORDS_PER_TOKEN = 0.7
MINIMUM_CHARS = 40
"""A summary of more than a few messages that is shorter than this says nothing."""
MODEL_TRIES = 2
NO_SUMMARIZER = "no summarizer"
SMALLEST_SUMMARY_TOKENS = 48
"""With less room than this no model is asked: it could not say anything."""
PROMPT_OF_FORM = {"sections": "detailed", "bullets": "bullets"}
"""The first question of each context.summarize.form; the second is always the short list."""

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STILL_THINKING = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""A template may write the opening tag itself, so that a reply holds only the closing one."""
_REFUSAL = re.compile(
    r"(?i)^\W*((?:i['’]?m|i am) (?:sorry|unable|not able)|sorry|i (?:can(?:no|['’])?t|won['’]?t)"
    r"|unfortunately,? i|as an ai)\b"
)
_FRAME = re.compile(r"<(/?(?:transcript|existing_summary))>")


class SummaryRequest(msgspec.Struct, frozen=True):
    """One question to the summarizer.

    messages   what to send where the summarizer reads a flattened transcript: one user message
    live       the covered messages as the chat's model last saw them, for a model that keeps its evaluated prefix:
               send them unchanged, then `instruction` as the last user message. Empty where that is not possible.
               Its instruction is short and speaks of "the conversation above": such models are small.
    """

    instruction: str
    messages: tuple[Message, ...]
    live: tuple[Message, ...]
    max_tokens: int


class SummaryReply(msgspec.Struct, frozen=True):
    text: str
    made_by: str = ""
    has_tool_calls: bool = False


class SummaryFailure(msgspec.Struct, frozen=True):
    """No answer: `reason` in a few words. `is_final`: do not ask again (no model, or the deadline is over)."""

    reason: str
    is_final: bool = False


class Written(msgspec.Struct, frozen=True):
    """`made_by` is "extract" where code wrote it; `failures` says why the model did not."""

    prose: str
    made_by: str
    failures: tuple[str, ...] = ()


Asking = Generator[SummaryRequest, "SummaryReply | SummaryFailure", Written]


def write(
    messages: Sequence[Message],
    *,
    existing: Sequence[str],
    live: Sequence[Message],
    focus: str,
    max_tokens: int,
    input_tokens: int,
    form: str = "sections",
    has_summarizer: bool = True,
) -> Asking:
    """Summarize `messages`; `existing` are earlier summaries to merge. Token counts are raw.

    `input_tokens` is what the summarizer's window leaves for its input; `form` is context.summarize.form.
    """
    failures: list[str] = []
    asked_raw = sum(map(message_tokens, messages)) + sum(map(text_tokens, existing))
    if not has_summarizer:
        return Written(extract_text(messages, existing, max_tokens), "extract", (NO_SUMMARIZER,))
    tries = MODEL_TRIES if max_tokens >= SMALLEST_SUMMARY_TOKENS else 0
    for attempt, name in enumerate((PROMPT_OF_FORM[form], "bullets")[:tries]):
        cap = max_tokens if attempt == 0 else max(64, max_tokens // 2)
        instruction = _instruction(name, cap, focus)
        shown = _flatten(messages, existing, input_tokens - text_tokens(instruction))
        request = SummaryRequest(
            instruction=_instruction("live", cap, focus),
            messages=(Message("user", f"{instruction}\n\n{shown}\n\nNow write the record."),),
            live=tuple(live),
            max_tokens=cap,
        )
        reply = yield request
        if isinstance(reply, SummaryReply):
            prose, problem = accept(
                reply, request.messages[0].text, existing=existing, max_tokens=cap, input_raw=asked_raw
            )
            if not problem:
                return Written(prose, reply.made_by or "summarizer", tuple(failures))
            failures.append(problem)
        else:
            failures.append(reply.reason)
            if reply.is_final:
                break
    return Written(extract_text(messages, existing, max_tokens), "extract", tuple(failures))


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
        return "", "the summary was longer than what it stands for"
    if _is_echo(prose, asked, existing):
        return "", "the summarizer repeated its input"
    if any(sentence in prose for sentence in _sentences_of_prompts()):
        return "", "the summarizer repeated its instruction"
    return cut_text(prose, max_tokens), ""


@cache
def _sentences_of_prompts() -> tuple[str, ...]:
    """What a summary never says by itself: the sentences that asked for one."""
    text = " ".join(prompt(name) for name in ("detailed", "bullets", "live"))
    sentences = (sentence.strip() for sentence in re.split(r"[.:\n]", text))
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
    for header in FOREIGN_HEADERS:
        if text.startswith(header):
            text = text[len(header) :].strip()
    return text


def cut_text(text: str, max_tokens: int) -> str:
    """At most `max_tokens` raw tokens of text, cut at a paragraph's or line's end where one is near, visibly."""
    if text_tokens(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_tokens(text[:middle]) + 2 <= max_tokens:
            low = middle
        else:
            high = middle - 1
    cut = text[:low]
    for end in ("\n\n", "\n", ". ", " "):
        place = cut.rfind(end, int(low * 0.8))
        if place > 0:
            cut = cut[:place]
            break
    return cut.rstrip() + " […]"


def is_summary(message: Message) -> bool:
    """Whether a message is a summary of this or another tool."""
    return message.role in ("user", "system") and message.text.lstrip().startswith(FOREIGN_HEADERS)


def _instruction(name: str, max_tokens: int, focus: str) -> str:
    text = prompt(name).format(max_words=int(max_tokens * WORDS_PER_TOKEN)).strip()
    return f"{text}\n\nThe user asks to keep above all: {focus}" if focus else text


def _flatten(messages: Sequence[Message], existing: Sequence[str], max_tokens: int) -> str:
    """Delimited text that marks data as data; earlier summaries first, to be merged."""
    existing = [_as_data(text) for text in existing]
    body = ""
    for limit in MESSAGE_CHARS:
        body = "\n".join(_flat(message, limit) for message in messages)
        text = _framed(existing, body)
        if text_tokens(text) <= max_tokens:
            return text
    half = max_tokens * 2 // (len(existing) + 1)
    while True:
        # Wide characters cost more than a token each, so the share is found by counting.
        half = max(half * 3 // 4, 100)
        text = _framed([_ends(text, half) for text in existing], _ends(body, half))
        if half == 100 or text_tokens(text) <= max_tokens:
            return text


def _framed(existing: Sequence[str], body: str) -> str:
    before = "".join(f"<existing_summary>\n{text}\n</existing_summary>\n" for text in existing)
    return f"{before}<transcript>\n{body}\n</transcript>"


def _ends(text: str, half: int) -> str:
    """A text's first and last characters; all of it where it is short."""
    return text if len(text) <= 2 * half else f"{text[:half]}\n[… left out for length …]\n{text[-half:]}"


def _as_data(text: str) -> str:
    """Text in which none of the frames begins or ends."""
    return _FRAME.sub(lambda found: f"‹{found[1]}›", text)


def _flat(message: Message, limit: int) -> str:
    text = content_text(message.content)
    if len(text) > limit:
        text = f"{text[: limit * 2 // 3]}\n[…]\n{text[-limit // 3 :]}"
    calls = "".join(f"\n(called {call.name} with {call.arguments[:limit]})" for call in message.tool_calls)
    kind = f"result of {message.name or 'a tool'}" if message.role == "tool" else message.role
    mark = " (failed)" if message.is_error else ""
    return _as_data(f"[{kind}{mark}]\n{text}{calls}")
