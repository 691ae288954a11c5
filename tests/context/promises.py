"""The invariants of the engine in naive form: plain lists, no caches, a few lines each.

The engine is held against these. What returns a list returns what is wrong, one line each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import takewhile
from typing import Any

import msgspec

from nca.context.history import History
from nca.context.meter import Meter
from nca.context.request import repair, request_messages
from nca.context.rules.steps import steps
from nca.context.summary import HEADER
from nca.context.tokens import message_tokens
from nca.context.validate import CHECKS, validate_request
from nca.context.view import Item, Marker, Stub, Summary, Verbatim, View, ranges_of
from nca.messages import Message, Part, TextPart
from nca.wire import content_text, content_to_wire

PROVIDERS = ("", *CHECKS)
"""No provider in particular, then each whose rules are known."""
CUT = re.compile(r"\n?\[… [\d,]+ (?:lines|bytes) left out; recall expand=\d+(?: lines=\d+-\d+)? …\]\n?")
"""Stands in a cut message for its middle."""
NOTE = re.compile(r"\n?\[… cut from [\d,]+ lines?(?:; recall expand=\d+)? …\]\Z")
"""Stands behind an excerpt of a message."""
REPLACEABLE = ("\n- `", "### Where things are")
"""In a record what can be had again: how a command ended that does not fail, and where things are."""
THRESHOLD = 0.8
"""The share of the budget at which the next compaction is due, by default."""
Rows = list[dict[str, Any]]
Content = str | tuple[Part, ...] | None


def is_cut_of(text: str, whole: str) -> bool:
    """Whether a text is the beginning and the end of another, or an excerpt of it, and says what is missing."""
    if note := NOTE.search(text):
        parts = [line.strip() for line in text[: note.start()].replace("[…]", "\n").splitlines()]
        return all(part in whole for part in parts)
    head, *tails = CUT.split(text, maxsplit=1)
    return bool(tails) and whole.startswith(head.rstrip()) and whole.endswith(tails[0])


def shown(log: Sequence[Message], view: View) -> list[Message]:
    """What a view shows of a log, in order."""
    messages: list[Message] = []
    for item in view.items:
        match item:
            case Verbatim(first, last):
                messages += log[first - 1 : last]
            case Stub(seq, text):
                messages.append(msgspec.structs.replace(log[seq - 1], content=text))
            case Summary():
                messages.append(Message(item.role, item.text, source="nca"))
            case Marker(text=text):
                messages += [Message("user", text, source="nca")] if text else []
    return [*messages, *log[view.tail - 1 :]]


def counted(log: Sequence[Message], view: View, meter: Meter, call_raw: int = 0) -> int:
    """Raw tokens of the next request, every message counted anew; `call_raw` is what each call adds to its text."""
    messages = shown(log, view)
    calls = sum(len(message.tool_calls) for message in messages)
    if messages:
        messages = repair(messages, meter.provider)
    return meter.fixed_raw + sum(map(message_tokens, messages)) + call_raw * calls


def chained(before: bytes, message: Message) -> bytes:
    """A rolling hash: of a log that has only grown, the old one is found again on the way."""
    return blake2b(before + msgspec.json.encode(message), digest_size=16).digest()


def digest(log: Iterable[Message]) -> bytes:
    rolling = b""
    for message in log:
        rolling = chained(rolling, message)
    return rolling


def refused(history: History, system_prompt: str = "", providers: Sequence[str] = PROVIDERS) -> list[str]:
    """What providers would refuse. A request for no provider in particular must suit every one."""
    problems: list[str] = []
    for provider in providers:
        rows = request_messages(history, system_prompt=system_prompt, provider=provider)
        msgspec.json.encode(rows).decode("utf-8")
        for name in (provider,) if provider else CHECKS:
            problems += [f"{name}: {problem}" for problem in validate_request(rows, name)]
        problems += unpaired(rows)
    return problems


def unpaired(rows: Rows) -> Iterator[str]:
    """Calls that have not exactly one result each, directly behind them, and results without their call."""
    results = sum(row["role"] == "tool" for row in rows)
    for place, row in enumerate(rows):
        ids = [call["id"] for call in row.get("tool_calls") or ()]
        results -= len(ids)
        behind = rows[place + 1 : place + 1 + len(ids)]
        if ids and [answer.get("tool_call_id") for answer in behind] != ids:
            yield f"the calls of message {place + 1} are not answered directly behind it"
    if results:
        yield f"{results} results too many"


def homes(view: View, head: int) -> dict[int, list[Item | None]]:
    """All items that stand for each message; None is the open tail. There must be exactly one."""
    found: dict[int, list[Item | None]] = {seq: [None] if seq >= view.tail else [] for seq in range(1, head + 1)}
    for item in view.items:
        for first, last in ranges_of(item):
            for seq in range(first, last + 1):
                found.setdefault(seq, []).append(item)
    return found


def is_cleared(item: Item | None) -> bool:
    """Whether a person took it out of the context."""
    return isinstance(item, Marker) and item.id.startswith("clear")


def misplaced(log: Sequence[Message], view: View) -> list[str]:
    """Messages in no place or in two, halves of steps, summaries of nothing."""
    places = homes(view, len(log))
    problems = [f"message {seq} is in {len(items)} places" for seq, items in places.items() if len(items) != 1]
    problems += [
        f"{item.id} stands for nothing" for item in view.items if isinstance(item, Summary | Marker) and not item.ranges
    ]
    return problems or list(halved(log, places))


def halved(log: Sequence[Message], places: Mapping[int, Sequence[Item | None]]) -> Iterator[str]:
    """Steps of which one part is hidden and another shown, or that two items share; a person may tear one apart."""
    for step in steps(log):
        seqs = [step.position + 1, *(place + 1 for place in step.results.values())]
        items = [places[seq][0] for seq in seqs]
        hidden = {item.id if isinstance(item, Summary | Marker) else "" for item in items}
        if len(hidden) > 1 and not any(map(is_cleared, items)):
            yield f"the step at message {seqs[0]} is torn apart: {hidden}"


def too_large(texts: Iterable[Any], used: int, target: int, budget: int, rest: int = 0) -> str:
    """Empty up to the target; above it only a record of what cannot be had again, halfway to the next compaction.

    texts  the contents of the messages that are sent
    rest   what nothing takes away: where it is more, it is the limit
    """
    ceiling = max(rest, target + max(int(THRESHOLD * budget) - target, (budget - target) // 2) // 2)
    records = [text for text in map(str, texts) if HEADER in text]
    is_allowed = records and used <= ceiling and not any(title in text for text in records for title in REPLACEABLE)
    return "" if used <= target or is_allowed else f"{used} tokens are too many (target {target}, ceiling {ceiling})"


def system_texts(rows: Rows) -> list[str]:
    """The leading system messages; one that stands later is a problem that the validators find."""
    return [str(row["content"]) for row in takewhile(lambda row: row["role"] == "system", rows)]


def newest(log: Sequence[Message]) -> int:
    """The seq of the newest message of a person; 0 where there is none."""
    mine = [seq for seq, message in enumerate(log, 1) if message.role == "user" and not message.is_synthetic]
    return mine[-1] if mine else 0


def without_blanks(message: Message) -> Content:
    """What a message says as it is sent: a provider would refuse an empty part."""
    if not isinstance(message.content, tuple):
        return message.content
    return tuple(part for part in message.content if not isinstance(part, TextPart) or part.text.strip())


def newest_problem(log: Sequence[Message], view: View, rows: Rows) -> str:
    """Empty where the newest user message is sent byte-identical, or cut where one sees it."""
    seq = newest(log)
    content = without_blanks(log[seq - 1]) if seq else None
    item = homes(view, len(log))[seq][0] if seq else None
    if not content or not content_text(content).strip() or is_cleared(item):
        return ""
    sent = [row["content"] for row in rows if row["role"] == "user"]
    if isinstance(item, Stub):
        whole = content_text(log[seq - 1].content)
        is_visible = is_cut_of(item.text, whole)
        return "" if is_visible and item.text in sent else f"message {seq} is cut where nobody sees it"
    is_whole = isinstance(item, Verbatim | None) and content_to_wire(content) in sent
    return "" if is_whole else f"message {seq}, the newest, is not sent whole"
