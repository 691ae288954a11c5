"""The ledger: facts that code extracts from messages, merges, and renders within a budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nca.context.file_reads import arguments_of, file_use
from nca.context.summary import cut_text
from nca.context.tokens import text_tokens
from nca.messages import AttachmentPart, Message, ToolCall

Ledger = dict[str, list[str]]
"""Category → facts, oldest first, each once."""

CATEGORIES = (
    "Rules the user stated",
    "Decisions",
    "Files modified",
    "Errors",
    "Files read",
    "Commands",
    "Hashes",
    "URLs",
    "Identifiers",
)
RULES, DECIDED, MODIFIED, ERRORS, READ, COMMANDS, HASHES, URLS, IDENTIFIERS = CATEGORIES
USER_WORDS = "User"
"""The person's own turns, verbatim; rendered apart, in a budget of their own."""

FIRST_TAKEN = (
    (RULES, 0.4),
    (MODIFIED, 0.5),
    (READ, 0.5),
    (HASHES, 0.15),
    (ERRORS, 0.6),
    (DECIDED, 0.3),
    (IDENTIFIERS, 0.2),
    (URLS, 0.2),
    (COMMANDS, 0.5),
)
"""The order in which categories take their room, and the largest share of the whole that each may have."""
BETWEEN = "; "
"""Stands between the facts of a category as rendered, and WORD before each of the person's turns."""
WORD = "- "
MAX_FACT_CHARS = 160
MOST_DECISIONS = 2
"""Of one message; an answer that weighs many things settles few."""
COMMITMENTS = (
    "decided",
    "decision",
    "i'll go with",
    "let's go with",
    "going with",
    "settled on",
    "i chose",
    "we'll use",
)
"""How a model says what holds from then on. Plain words, not patterns: every answer is searched for them."""
FINDINGS = (
    "root cause",
    "the cause is",
    "the cause was",
    "turns out",
    "turned out",
)
"""How it says what it found out, which the work that follows makes outdated."""
DECISION_CHARS = 4_000
_RULE = re.compile(
    r"(?i)\b(always|never|must(?: not)?|do not|don't|only use|please use|prefer|make sure|from now on|remember|avoid)\b"
)
_ERROR = re.compile(r"(?i)(\b\w*(?:error|exception|traceback|fatal|panic|failed)\b.{3,})")
_URL = re.compile(r"https?://[^\s<>\"'`)\]}]+")
_NAME = re.compile(
    r"(?=[#0-9a-fA-Z\x80-\U0010ffff][0-9a-fA-Z\x80-\U0010ffff])(?<![\w/])"
    r"(?:#\d{2,}|[0-9a-f]{7,40}|[A-Z][A-Z0-9]{1,9}-\d+|[A-Z0-9]{6,8}|\d{4,})(?![\w/])"
)
"""Hashes, ticket numbers, codes and numbers: whatever has no meaning of its own but is referred to.

It looks ahead only to skip what cannot match: a compaction spends more time here than anywhere else.
"""
_WORD = re.compile(r"[a-f]+|[A-Z]+")
_EXIT = re.compile(r"(?i)exit(?:ed with)?(?: code| status)?[: ]+(\d+)")
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")
_POINTS_BACK = re.compile(
    r"(?i)\A(?:please )?(?:(?:always |never )?(?:remember|forget|do|don't forget) (?:this|that|it)|don't forget)\b"
)
"""A rule that says nothing without the sentence before it."""


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """What one message holds, whatever stands around it; found once and kept by `History.found`."""

    rules: tuple[str, ...]
    errors: tuple[str, ...]
    urls: tuple[str, ...]
    names: frozenset[str]
    """Hashes and identifiers: facts once they recur."""
    decisions: tuple[str, ...] = ()
    """What a model says that it settled on, as far as that is short."""
    is_decision: bool = False
    """Whether it says so, or what it found to be the cause."""


def find(message: Message) -> MessageFacts:
    text = message.text
    is_said = message.role == "user" and not message.is_synthetic
    rules = _rules(text) if is_said else ()
    errors = error_lines(text, is_error=message.is_error) if message.role == "tool" else ()
    # Cheap tests first: most messages have neither an address nor a digit that an identifier needs.
    urls = tuple(url.rstrip(".,;:") for url in _URL.findall(text)) if "://" in text else ()
    is_decision = message.role == "assistant" and says_decision(text)
    decisions = _decisions(text) if is_decision else ()
    return MessageFacts(rules, tuple(errors), urls, names_in(text), decisions, is_decision)


def names_in(text: str) -> frozenset[str]:
    """The hashes, ticket numbers, codes and numbers of a text."""
    return frozenset(name for name in _NAME.findall(text) if not _WORD.fullmatch(name))


def _rules(text: str) -> tuple[str, ...]:
    """The sentences that order something, each with the one before it where it only points back to that."""
    found: list[str] = []
    before = ""
    for sentence in map(str.strip, _SENTENCE.split(text[:20_000])):
        if len(sentence) <= 2 * MAX_FACT_CHARS and _RULE.search(sentence):
            is_pointing = bool(before) and len(before) <= 2 * MAX_FACT_CHARS and _POINTS_BACK.match(sentence)
            found.append(f"{before} {sentence}" if is_pointing else sentence)
        before = sentence
    return tuple(dict.fromkeys(found))


def _decisions(text: str) -> tuple[str, ...]:
    sentences = (" ".join(sentence.split()) for sentence in _SENTENCE.split(text[:DECISION_CHARS]))
    found = [one for one in sentences if len(one) <= MAX_FACT_CHARS and _says(one, COMMITMENTS)]
    return tuple(found[-MOST_DECISIONS:])


def says_decision(text: str) -> bool:
    """Whether a model says what it settled on, or what it found to be the cause."""
    return _says(text[:DECISION_CHARS], (*COMMITMENTS, *FINDINGS))


def _says(text: str, phrases: Sequence[str]) -> bool:
    lower = text.lower()
    return any(phrase in lower for phrase in phrases)


KnownFacts = dict[int, tuple[Message, MessageFacts]]
"""What was found of each message, by its identity; the message is held, so that no other can take that identity."""


def facts_in(message: Message, known: KnownFacts) -> MessageFacts:
    """What a message holds, looked for once."""
    held = known.get(id(message))
    if held is None:
        held = known[id(message)] = (message, find(message))
    return held[1]


def extract(messages: Sequence[Message], known: KnownFacts | None = None) -> Ledger:
    """The facts of these messages; `known` keeps what was found of each for the next time."""
    known = {} if known is None else known
    # Dicts as ordered sets: a session has many thousand facts, and each comes often.
    facts: dict[str, dict[str, None]] = {category: {} for category in (*CATEGORIES, USER_WORDS)}
    outcomes = {message.tool_call_id: message for message in messages if message.role == "tool"}
    recurring: Counter[str] = Counter()
    for message in messages:
        found = facts_in(message, known)
        if message.role == "user" and not message.is_synthetic and message.text.strip():
            facts[USER_WORDS][message.text.strip()] = None
        facts[RULES].update(dict.fromkeys(found.rules))
        facts[DECIDED].update(dict.fromkeys(found.decisions))
        for part in message.attachments:
            category, fact = _of_attachment(part)
            facts[category][fact] = None
        for call in message.tool_calls:
            category, fact = _of_call(call, outcomes.get(call.id))
            if fact:
                facts[category][fact] = None
        facts[ERRORS].update(dict.fromkeys(found.errors))
        facts[URLS].update(dict.fromkeys(found.urls))
        recurring.update(found.names)
    for name, count in recurring.items():
        if count > 1:
            facts[HASHES if _is_hash(name) else IDENTIFIERS][name] = None
    return {category: list(kept) for category, kept in facts.items() if kept}


def _is_hash(name: str) -> bool:
    return len(name) >= 7 and not name.isdigit() and not name.isupper() and name.isalnum()


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


def within(ledger: Ledger, words_tokens: int) -> Ledger:
    """The ledger with no more than the newest of the user's words, so that what is stored of it stays bounded."""
    kept: list[str] = []
    left = words_tokens
    for turn in reversed(ledger.get(USER_WORDS, ())):
        left -= text_tokens(turn)
        if left < 0:
            break
        kept.append(turn)
    return {**ledger, USER_WORDS: kept[::-1]} if USER_WORDS in ledger else ledger


def words_tokens(ledger: Mapping[str, Sequence[str]]) -> int:
    """What the user's words cost in full, as they are rendered."""
    return sum(text_tokens(f"{WORD}{turn}") + 1 for turn in ledger.get(USER_WORDS, ()))


def facts_of(ledger: Mapping[str, Sequence[str]]) -> list[str]:
    """All facts but the person's words."""
    return [fact for category in CATEGORIES for fact in ledger.get(category, ())]


def render(ledger: Mapping[str, Sequence[str]], max_tokens: int) -> str:
    """The ledger as text of at most `max_tokens` raw tokens; what matters most is taken first, newest facts first.

    Of rules the oldest too: what was said in the first turn holds as what was said last.
    """
    chosen: dict[str, list[str]] = {}
    left = max_tokens
    for category, share in FIRST_TAKEN:
        facts = list(ledger.get(category, ()))
        if category == READ:
            # A file that was modified stands there already.
            facts = [fact for fact in facts if fact not in ledger.get(MODIFIED, ())]
        most = min(left, int(max_tokens * share))
        taken: list[int] = []
        cost = text_tokens(f"{category}: ") + 1
        for place in _from_both_ends(len(facts)) if category == RULES else range(len(facts) - 1, -1, -1):
            cost += text_tokens(f"{facts[place]}{BETWEEN}")
            if cost > most:
                break
            taken.append(place)
        if taken:
            chosen[category] = [facts[place] for place in sorted(taken)]
            left -= sum(text_tokens(f"{fact}{BETWEEN}") for fact in chosen[category]) + text_tokens(f"{category}: ") + 1
    return "\n".join(f"{name}: {BETWEEN.join(chosen[name])}" for name in CATEGORIES if name in chosen)


def _from_both_ends(count: int) -> Iterator[int]:
    """Places from the newest and the oldest inwards: 4, 0, 3, 1, 2."""
    for step in range(count):
        yield step // 2 if step % 2 else count - 1 - step // 2


def render_user_words(words: Sequence[str], max_tokens: int) -> str:
    """The person's turns that fit, in their order: short ones with a rule, then the newest; a long one is cut visibly.

    Turns with a rule take half of the room at most, the newest and the oldest first.
    """
    lines: dict[int, str] = {}
    left = max_tokens
    for place in _from_both_ends(len(words)):
        line = f"{WORD}{words[place]}"
        cost = text_tokens(line) + 1
        if cost <= min(max_tokens // 4, left - max_tokens // 2) and _rules(words[place]):
            lines[place] = line
            left -= cost
    for place in range(len(words) - 1, -1, -1):
        line = f"{WORD}{words[place]}"
        cost = text_tokens(line) + 1
        if place in lines:
            continue
        if cost > max(left, 0) or cost > max_tokens // 2:
            room = min(left, max_tokens // 4)
            if room < 24:
                continue
            line = cut_text(line, room - 1)
            cost = text_tokens(line) + 1
        left -= cost
        lines[place] = line
    return "\n".join(lines[place] for place in sorted(lines))


def _of_call(call: ToolCall, result: Message | None) -> tuple[str, str]:
    """The category and the fact of one call; an empty fact where it has none."""
    use = file_use(call)
    if use is not None and use.is_write and result is not None and result.is_error:
        # Refused or failed: the file is as it was; what went wrong stands among the errors.
        return MODIFIED, ""
    if use is not None:
        return (MODIFIED if use.is_write else READ), use.path[:MAX_FACT_CHARS]
    arguments = arguments_of(call)
    command = next((arguments[key] for key in ("command", "cmd", "script") if isinstance(arguments.get(key), str)), "")
    if not command.strip():
        return COMMANDS, ""
    return COMMANDS, f"`{command.strip().splitlines()[0][:100]}` → {_outcome(result)}"


def _of_attachment(part: AttachmentPart) -> tuple[str, str]:
    """A file that came with a message, or a command that the person ran: `$ command` stands for its name then."""
    if not part.path.startswith("$ "):
        return READ, part.path
    match = _EXIT.search(part.text[-400:])
    return COMMANDS, f"`{part.path[2:102]}` → {f'exit {match[1]}' if match else 'ok'}"


def _outcome(result: Message | None) -> str:
    if result is None:
        return "no result"
    if result.is_error and result.text.startswith("[not run"):
        return "not run"
    match = _EXIT.search(result.text[-400:])
    if match:
        return f"exit {match[1]}"
    return "failed" if result.is_error else "ok"
