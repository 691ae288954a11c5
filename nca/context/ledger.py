"""Facts kept by code, not by prose: extracted from messages, merged by set arithmetic, rendered within a budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nca.context.file_reads import arguments_of, file_use
from nca.context.summary import cut_text
from nca.context.tokens import text_tokens
from nca.messages import Message, ToolCall

Ledger = dict[str, list[str]]
"""Category → facts, oldest first, each once."""

CATEGORIES = (
    "Rules the user stated",
    "Files modified",
    "Errors",
    "Files read",
    "Commands",
    "Hashes",
    "URLs",
    "Identifiers",
)
RULES, MODIFIED, ERRORS, READ, COMMANDS, HASHES, URLS, IDENTIFIERS = CATEGORIES
USER_WORDS = "User"
"""The person's own turns, verbatim; rendered apart, in a budget of their own."""

MAX_FACT_CHARS = 160
_RULE = re.compile(
    r"(?i)\b(always|never|must(?: not)?|do not|don't|only use|please use|prefer|make sure|from now on|remember|avoid)\b"
)
_ERROR = re.compile(r"(?i)(\b\w*(?:error|exception|traceback|fatal|panic|failed)\b.{3,})")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_URL = re.compile(r"https?://[^\s<>\"'`)\]}]+")
_IDENTIFIER = re.compile(r"(?<![\w/])(?:#\d{2,}|[A-Z][A-Z0-9]{1,9}-\d+|[A-Z0-9]{6,8}|\d{4,})(?![\w/])")
_EXIT = re.compile(r"(?i)exit(?:ed with)?(?: code| status)?[: ]+(\d+)")
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")


@dataclass(frozen=True, slots=True)
class Found:
    """What one message holds, whatever stands around it; found once and kept by `History.found`."""

    rules: tuple[str, ...]
    errors: tuple[str, ...]
    urls: tuple[str, ...]
    names: frozenset[str]
    """Hashes and identifiers: facts once they recur."""


def find(message: Message) -> Found:
    text = message.text
    rules: list[str] = []
    if message.role == "user" and not message.is_synthetic:
        sentences = (sentence.strip() for sentence in _SENTENCE.split(text[:20_000]))
        rules = [sentence for sentence in sentences if len(sentence) <= 2 * MAX_FACT_CHARS and _RULE.search(sentence)]
    errors = error_lines(text, is_error=message.is_error) if message.role == "tool" else ()
    # Cheap tests first: most messages have neither an address nor a digit that an identifier needs.
    urls = tuple(url.rstrip(".,;:") for url in _URL.findall(text)) if "://" in text else ()
    names = frozenset(_HASH.findall(text)) | frozenset(_IDENTIFIER.findall(text))
    return Found(tuple(rules), tuple(errors), urls, names)


def extract(messages: Sequence[Message], known: dict[int, Found] | None = None) -> Ledger:
    """The facts of these messages. `known` keeps what was found of each, by its identity."""
    known = {} if known is None else known
    ledger: Ledger = {}
    outcomes = {message.tool_call_id: message for message in messages if message.role == "tool"}
    recurring: Counter[str] = Counter()
    for message in messages:
        found = known.get(id(message)) or known.setdefault(id(message), find(message))
        if message.role == "user" and not message.is_synthetic and message.text.strip():
            _add(ledger, USER_WORDS, message.text.strip(), limit=100_000)
        for rule in found.rules:
            _add(ledger, RULES, rule, limit=2 * MAX_FACT_CHARS)
        for part in message.attachments:
            _add(ledger, READ, part.path)
        for call in message.tool_calls:
            _add_call(ledger, call, outcomes.get(call.id))
        for error in found.errors:
            _add(ledger, ERRORS, error)
        for url in found.urls:
            _add(ledger, URLS, url)
        recurring.update(found.names)
    for name, count in recurring.items():
        if count > 1:
            _add(ledger, HASHES if _HASH.fullmatch(name) else IDENTIFIERS, name)
    return ledger


def error_lines(text: str, *, is_error: bool) -> Iterable[str]:
    """The lines of a failed tool's output that report the error; its first line in any case."""
    if not is_error:
        return
    lines = [line.strip() for line in text[:50_000].splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if number == 0 or (len(line) <= 400 and _ERROR.search(line)):
            yield line[:MAX_FACT_CHARS]


def merge(ledgers: Iterable[Mapping[str, Sequence[str]]]) -> Ledger:
    """The union, in the order of the ledgers; a fact that comes again counts as the newer one."""
    merged: dict[str, dict[str, None]] = {}
    for ledger in ledgers:
        for category, facts in ledger.items():
            kept = merged.setdefault(category, {})
            for fact in facts:
                kept.pop(fact, None)
                kept[fact] = None
    return {category: list(facts) for category, facts in merged.items()}


def facts_of(ledger: Mapping[str, Sequence[str]]) -> list[str]:
    """All facts but the person's words."""
    return [fact for category in CATEGORIES for fact in ledger.get(category, ())]


def render(ledger: Mapping[str, Sequence[str]], max_tokens: int) -> str:
    """The ledger as text of at most `max_tokens` raw tokens; each category gives up its oldest facts in turn."""
    chosen = {category: list(ledger.get(category, ())) for category in CATEGORIES}
    text = _render(chosen)
    while text and text_tokens(text) > max_tokens:
        # The category that takes most room gives first; later categories matter less, so they count double.
        longest = max(
            CATEGORIES, key=lambda name: sum(map(len, chosen[name])) * (1 if CATEGORIES.index(name) < 4 else 2)
        )
        facts = chosen[longest]
        chosen[longest] = facts[max(1, len(facts) // 8) :]
        text = _render(chosen)
    return text


def render_user_words(words: Sequence[str], max_tokens: int) -> str:
    """The newest of the person's turns that fit, oldest of them first; a long one is cut visibly."""
    lines: list[str] = []
    left = max_tokens
    for turn in reversed(words):
        line = f"- {turn}"
        cost = text_tokens(line) + 1
        if cost > max(left, 0) or cost > max_tokens // 2:
            room = min(left, max_tokens // 4)
            if room < 24:
                continue
            line = cut_text(line, room - 1)
            cost = text_tokens(line) + 1
        left -= cost
        lines.append(line)
    return "\n".join(reversed(lines))


def _render(chosen: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(f"{category}: {'; '.join(facts)}" for category, facts in chosen.items() if facts)


def _add(ledger: Ledger, category: str, fact: str, *, limit: int = MAX_FACT_CHARS) -> None:
    facts = ledger.setdefault(category, [])
    fact = fact[:limit]
    if fact not in facts:
        facts.append(fact)


def _add_call(ledger: Ledger, call: ToolCall, result: Message | None) -> None:
    use = file_use(call)
    if use is not None:
        _add(ledger, MODIFIED if use.is_write else READ, use.path)
        return
    arguments = arguments_of(call)
    command = next((arguments[key] for key in ("command", "cmd", "script") if isinstance(arguments.get(key), str)), "")
    if command.strip():
        _add(ledger, COMMANDS, f"`{command.strip().splitlines()[0][:100]}` → {_outcome(result)}")


def _outcome(result: Message | None) -> str:
    if result is None:
        return "no result"
    match = _EXIT.search(result.text[-400:])
    if match:
        return f"exit {match[1]}"
    return "failed" if result.is_error else "ok"
