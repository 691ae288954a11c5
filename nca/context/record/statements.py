"""What one message states, whatever stands around it: rules, words, decisions, findings, addresses; and its names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from nca.context.record.languages import marks, orders, says_nothing, sentences
from nca.context.record.unusual import unusual_lines
from nca.messages import Message
from nca.words import Span, Words, text_of

SCANNED_CHARS = 20_000
MAX_RULE_CHARS = 400
WHOLE_CHARS = 3_200
"""A message with rules up to this length stays whole where there is room; else its rules alone."""
MAX_DECISION_CHARS = 280
MOST_DECISIONS = 3
"""Of one answer: one that weighs many things settles few."""
LEAST_DECISION_WORDS = 5
"""In fewer words nobody says what was decided: it is a heading or a label."""
ANSWER_CHARS = 240
LEAST_ANSWER_CHARS = 60
"""Whole sentences that are shorter together say less than the beginning of the next one."""
LONGER_ANSWER_CHARS = (480, 960, 1_920)
"""Of the answer that the newest message answers, where there is room: a plan has its steps after its first sentences.
"""
READ_PART = 4
"""An answer is read up to so many times the length that is wanted of it."""
LEAST_REMARK_CHARS = 80
"""What a model says beside its calls is often all that it says of a finding; "Let me look." is shorter."""
BULK_CHARS = 1_600
"""A longer message in the person's name may be a log, a file or a program's output."""
BULK_LINE_SHARE = 0.5
"""It is, where so many of its lines are no sentences."""
BULK_ENDS_CHARS = 300
SEEN_CHARS = 40
"""Of a line, by which it is known again."""
BULK_WORDS_CHARS = 1_500
"""Of the person's own sentences before the paste, behind it, and of what stands between."""
FIRST_SENTENCES = 4
"""A task begins with what it is about, often behind a greeting or a heading."""
MOST_BULK_RULES = 12
"""With more of them, what looks like rules is a part of the paste: a demonstration, a manual."""
_URL = re.compile(r"https?://[^\s<>\"'`)\]}]+")
_NAME = re.compile(
    r"[^\w/.+~](?=[#0-9a-fA-Z\x80-\U0010ffff][0-9a-fA-Z\x80-\U0010ffff][0-9a-fA-Z\x80-\U0010ffff-])"
    r"(#[1-9]\d+|[0-9a-f]{7,40}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?|[A-Z][A-Z0-9]{1,9}(?:-[A-Z][A-Z0-9]{1,9})*-\d+"
    r"|[A-Z0-9]{6,8}|\d{4,})(?![\w/])"
)
"""Hashes, ticket numbers, codes and numbers: whatever has no meaning of its own but is referred to.

It is searched for in a text with a space before it: an expression that begins with what stands before a name, and looks
ahead, skips quickly what cannot match.
"""
_DIGIT = re.compile(r"\d")
"""In every name: letters alone are none."""
LONGEST_NAME_CHARS = 41
"""With what stands before it."""
_PLAIN = re.compile(r"[a-f]+|[A-Z]+|0+|(?:19|20)\d\d")
"""Words, zeros, and years: they are in every date, and no date is found by its year."""
_POINTS_BACK = re.compile(
    r"(?i)\A(?:please )?(?:(?:always |never )?(?:remember|forget|do|don't forget) (?:this|that|it)|don't forget)\b"
)
"""A rule that says nothing without the sentence before it."""
_SENTENCE = re.compile(r"[.!?…。！？:]\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+[^\W\d_]\w*(?: \S+){2}.*[;,]\s*\Z")
"""A line of a list that goes on in the next one: as much a sentence as a line that ends in a point."""
_WRITTEN = re.compile(r"(?:(?:[-*•]|\d{1,2}[.)]) )?[^\W\d_]")
"""How a line begins that a person wrote: not indented, with no number of a line of code."""
_FENCE = ("```", "~~~")
_FENCED = re.compile(r"(?ms)^ *```[^\n]*\n.*?(?:^ *```[^\n]*$|\Z)")
_QUOTED = re.compile(r"(?ms)^[ ]*(```|~~~).*?(?:^[ ]*\1|\Z)|^[ ]*(?:>|[\w.]+(?:Error|Exception): |error: )[^\n]*")
"""In a message of the person what others said: code between fences, quoted lines, errors of a program."""
_NO_PROSE = ("#", "|", "//", "/*", "<", '"', "{", "`" * 3)
"""How headings, tables and code begin."""
AROUND_WORDS = 3
MOST_NAMES = 200
"""Of one message; a listing of ten thousand hashes is no talk about any of them."""


class Stated(NamedTuple):
    """What a message says, by kind.

    rules   sentences, or the whole of a short message with one
    words   what a person said besides, at most one text
    answer  how an answer begins, at most one text
    """

    rules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


Names = tuple[tuple[str, str], ...]
"""Each name with the words around it."""
NOTHING_STATED = Stated()


def stated(message: Message) -> Stated:
    text = message.text
    # A cheap test first: most messages have no address.
    urls = tuple(dict.fromkeys(url.rstrip(".,;:") for url in _URL.findall(text))) if "://" in text else ()
    if message.role == "user" and not message.is_synthetic and text.strip():
        return _by_source(message.said, urls)
    if message.role == "assistant" and text.strip():
        answer = (found,) if (found := answer_of(message)) else ()
        decisions = _decisions(text)
        if decisions or answer or urls:
            return Stated(decisions=decisions, answer=answer, urls=urls)
        return NOTHING_STATED
    if message.role == "tool" and type(message.content) is tuple:
        return _by_source(tuple(part for part in message.said if part.source == "typed"), urls)
    return Stated(urls=urls) if urls else NOTHING_STATED


def _by_source(said: Words, urls: tuple[str, ...]) -> Stated:
    """What the person said. Of what they pasted or piped the ends and the unusual lines count, and no rule.

    Where nobody knows the source, the shape of the text decides.
    """
    own = text_of(tuple(part for part in said if part.source in ("typed", "foreign")))
    found = _said(own, urls) if own.strip() else Stated(urls=urls)
    # A result beside the person's words is none of them; a server's prompt that they sent stands alone.
    other = ("typed", "foreign", "model", "tool") if own.strip() else ("model",)
    data = [_excerpt(part) for part in said if part.source not in other and part.text.strip()]
    if not data:
        return found
    return found._replace(words=(" ".join((*found.words, *data)),))


def _excerpt(part: Span) -> str:
    """A text that the person did not write: how it begins and ends, and its unusual lines."""
    text = part.text.strip()
    if len(text) <= BULK_ENDS_CHARS:
        return f"[{part.source}: {_without_blank_lines(text)}]"
    lines = text.splitlines()
    unusual = _shortened(unusual_lines(lines[1:-1]))
    begin, end = text[: BULK_ENDS_CHARS // 2], text[-BULK_ENDS_CHARS // 2 :]
    parts = (_without_blank_lines(one) for one in (begin, unusual, end) if one)
    return f"[{part.source}, {len(lines):,} lines: {' … '.join(parts)}]"


def answer_of(message: Message) -> str:
    """How an answer of the model begins; "" where it says nothing beside its calls."""
    text = message.text
    said = _remark(text) if message.tool_calls else text
    return _beginning(said) if said.strip() else ""


def longer_answers(message: Message) -> Iterator[str]:
    """The same with more and more sentences, up to all of it."""
    for chars in LONGER_ANSWER_CHARS:
        yield _beginning(message.text, chars)
        if len(message.text) <= chars:
            return


def is_bulk(text: str) -> bool:
    """Whether a message in the person's name is a log, a file or a program's output rather than words."""
    if len(text) <= BULK_CHARS:
        return False
    lines = [line for line in text[:SCANNED_CHARS].splitlines() if line.strip()]
    plain = sum(not (_SENTENCE.search(line) or _ITEM.match(line)) for line in lines)
    return len(lines) < 2 or plain > BULK_LINE_SHARE * len(lines)


def _said(text: str, urls: tuple[str, ...]) -> Stated:
    text = text.strip()
    if text.startswith("/") and "\n" not in text and " " not in text.split("/", 2)[1][:40].split(" ")[0]:
        return Stated(urls=urls)
    if is_bulk(text):
        prose = _prose_of(text)
        if len(rules := _rules("\n".join(prose))) > MOST_BULK_RULES:
            rules, prose = (), []
        return Stated(rules, (_words_of_bulk(text, prose),), urls=urls)
    if says_nothing(text):
        return Stated(urls=urls)
    rules = _rules(text)
    if rules and len(text) <= WHOLE_CHARS:
        # Sentences of one message explain each other, and a list without some of its items says something else.
        return Stated(rules=(_without_blank_lines(text),), urls=urls)
    rest = text
    for rule in rules:
        rest = rest.replace(rule, " ", 1)
    rest = _without_blank_lines(rest)
    return Stated(rules=rules, words=(rest,) if len(rest) > 2 else (), urls=urls)


def single_rules(text: str) -> tuple[str, ...]:
    """One by one what a text orders or corrects: its sentences; a short text is one rule."""
    return (text,) if len(text) <= MAX_RULE_CHARS else _rules(text) or (text,)


def _without_blank_lines(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _words_of_bulk(text: str, prose: Sequence[str]) -> str:
    """How it begins and ends, and what a person may have written between: a plan that comes again has its new steps.

    Where the person's own sentences stand before or behind the paste, these are its beginning or its end.
    """
    lines, own = [line for line in text.splitlines() if line.strip()], set(prose)
    head = list(takewhile(own.__contains__, lines))
    tail = list(takewhile(own.__contains__, reversed(lines[len(head) :])))[::-1]
    begin = " ".join(sentences(text[:BULK_ENDS_CHARS])[:FIRST_SENTENCES])
    begin = max(begin, _shortened(head), key=len)
    end = _shortened(tail) or " ".join(sentences(text[-BULK_ENDS_CHARS:])[-2:])
    seen = {*head, *tail}
    between = _shortened(
        [line for line in prose if not (line in seen or line[:SEEN_CHARS] in begin or line[-SEEN_CHARS:] in end)]
    )
    return (f" [… perhaps pasted: {between} …] " if between else " […] ").join((begin, end))


def _shortened(lines: Sequence[str]) -> str:
    text = " ".join(lines)
    return text if len(text) <= BULK_WORDS_CHARS else f"{text[:BULK_WORDS_CHARS].rpartition(' ')[0]} …"


def _prose_of(text: str) -> list[str]:
    """The lines of a message with pastes that a person may have written: whole sentences, outside of code."""
    found, is_fenced = list[str](), False
    for line in text[:SCANNED_CHARS].splitlines():
        if line.startswith(_FENCE):
            is_fenced = not is_fenced
        elif not is_fenced and _WRITTEN.match(line) and _SENTENCE.search(line):
            found.append(line)
    return found


def _rules(text: str) -> tuple[str, ...]:
    """The sentences that order or correct something, as they were said, each with the one that it points back to."""
    found: list[str] = []
    before = ""
    text = text[:SCANNED_CHARS]
    for sentence in sentences(_QUOTED.sub("\n", text)) if marks(text, "rules", "corrections") else ():
        if len(sentence) <= MAX_RULE_CHARS and orders(sentence):
            if before and len(before) <= MAX_RULE_CHARS and _POINTS_BACK.match(sentence) and before not in found:
                found.append(before)
            found.append(sentence)
        before = sentence
    return tuple(dict.fromkeys(found))


def _decisions(text: str) -> tuple[str, ...]:
    text = text[:SCANNED_CHARS]
    if not marks(text, "decisions", "findings"):
        return ()
    found = [
        " ".join(one.split())
        for one in sentences(text)
        if len(one) <= MAX_DECISION_CHARS and _says_something(one) and marks(one, "decisions", "findings")
    ]
    return tuple(found[-MOST_DECISIONS:])


def _says_something(sentence: str) -> bool:
    """Whether it is no heading, row of a table, line of code or label."""
    is_short = sentence.isascii() and len(sentence.split()) < LEAST_DECISION_WORDS
    return not is_short and _is_prose(sentence)


def _is_prose(sentence: str) -> bool:
    return not sentence.startswith(_NO_PROSE) and not sentence.rstrip("*_ ").endswith(":")


def _remark(text: str) -> str:
    """What a model says beside its calls, without what it is about to do; "" where that is nothing."""
    text = text.strip()
    if text.endswith(":"):
        text = text[: max(text.rfind(end) for end in (". ", ".\n", "! ", "? ", "\n")) + 1].strip()
    return text if len(text) >= LEAST_REMARK_CHARS else ""


def _beginning(text: str, chars: int = ANSWER_CHARS) -> str:
    """How an answer begins: its first sentences as far as they fit whole, without headings, tables and labels.

    It ends with "…" where it is not all.
    """
    text = text.strip()
    if len(text) <= chars:
        return " ".join(text.split())
    if "```" in text:
        text = _FENCED.sub(_lines_of_code, text[:SCANNED_CHARS]).strip()
    read = READ_PART * chars
    told = sentences(text[:read])
    found = " ".join(told[0].split())
    for one in filter(_is_prose, told[1:-1] if len(text) > read else told[1:]):
        if len(found) + len(one) >= chars:
            break
        found = f"{found} {' '.join(one.split())}"
    if LEAST_ANSWER_CHARS <= len(found) <= chars:
        return f"{found} …"
    line = " ".join(text[:read].split())
    return line if len(line) <= chars else f"{line[:chars].rpartition(' ')[0]} …"


def _lines_of_code(fenced: re.Match[str]) -> str:
    return f"[{fenced[0].count(chr(10)) - 1} lines of code]"


def names_of(text: str) -> Names:
    """The hashes, ticket numbers, codes and numbers of a text, each once with the words around it."""
    found: dict[str, str] = {}
    first = _DIGIT.search(text)
    if first is None:
        return ()
    for match in _NAME.finditer(f" {text}", max(0, first.start() - LONGEST_NAME_CHARS)):
        name = match[1]
        if name in found or _PLAIN.fullmatch(name):
            continue
        # The space before the text moves each place by one.
        start = match.start(1) - 1
        before = text[max(0, start - 60) : start].split()[-AROUND_WORDS:]
        found[name] = " ".join(before)[-40:]
        if len(found) >= MOST_NAMES:
            break
    return tuple(found.items())


def names_in(text: str) -> frozenset[str]:
    """The hashes, ticket numbers, codes and numbers of a text."""
    return frozenset(name for name, _ in names_of(text))
