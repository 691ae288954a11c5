"""What a model wrote of a stretch of the log: what of it goes to the ledger, what is stale, and what nobody said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nca.context.record.languages import marks
from nca.context.record.ledger import DECISIONS, RULES, Ledger
from nca.context.summary import cut_text
from nca.context.tokens import text_tokens

STALE = ("pending", "next step", "current work")
"""Sections that speak of a moment: in a record that a newer one follows they no longer hold."""
_HARVESTED = ((RULES, ("constraints", "rules")), (DECISIONS, ("decisions", "findings")))
SMALLEST_KEPT_TOKENS = 48
"""Less than this of a text says nothing."""
SAME_WORDS = 0.7
"""Two statements that share so many of their words say the same."""
MAX_STATEMENT_CHARS = 400
UNKNOWN = " (?)"
_SECTION = re.compile(r"(?m)^#{2,4} .*$")
_ITEM = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s+(.+)$")
_NONE = re.compile(r"(?i)\W*(?:none|nothing|n/a|keine?|aucune?|ninguna?|nessuna?|нет|无|なし|없음)\W*")
_SPECIFIC = re.compile(
    r"(?<![\w/.-])(?:[\w.-]*/[\w./-]*\w|[\w-]+\.(?:py|js|ts|tsx|md|toml|json|yml|yaml|txt|rs|go|c|h|java|sh|cfg|ini|html|css|sql)"
    r"|[A-Z][A-Z0-9]{1,9}-\d+|#\d{2,}|\d{4,}|(?=[0-9a-f]*\d)[0-9a-f]{7,40})(?![\w/])"
)
"""Paths, file names, tickets, hashes and long numbers: what a model must not make up."""
_WORD = re.compile(r"\w+")
_CODE = re.compile(r"""\d|[_/\\`"']|\w\.\w|[a-z][A-Z]""")
"""Marks a word as no plain word."""


def sections(prose: str) -> list[tuple[str, str]]:
    """(heading, body) of each section; the heading is "" for what stands before the first."""
    found: list[tuple[str, str]] = []
    start, heading = 0, ""
    for match in _SECTION.finditer(prose):
        found.append((heading, prose[start : match.start()].strip()))
        start, heading = match.end(), match[0]
    found.append((heading, prose[start:].strip()))
    return [(heading, body) for heading, body in found if body and not _NONE.fullmatch(body)]


def joined(parts: Iterable[tuple[str, str]]) -> str:
    return "\n\n".join(f"{heading}\n{body}" if heading else body for heading, body in parts)


def harvested(prose: str, known: Ledger) -> tuple[str, Ledger]:
    """The prose without its rules and decisions, and those of them that `known` has not, as a ledger."""
    rest: list[tuple[str, str]] = []
    taken: Ledger = {}
    found = sections(prose)
    if not any(_category(heading) for heading, _ in found):
        return prose, taken
    for heading, body in found:
        category = _category(heading)
        items = [item.strip() for item in _ITEM.findall(body)] if category else []
        if not category or not items:
            rest.append((heading, body))
            continue
        said = [line.partition("\t")[2] for line in known.get(category, ())]
        for item in items:
            if not _NONE.fullmatch(item) and not any(_is_same(item, one) for one in said):
                taken.setdefault(category, []).append(f"0\t{item[:MAX_STATEMENT_CHARS]}")
                said.append(item)
    return joined(rest), taken


def without_stale(prose: str) -> str:
    """An older record's prose, without what it said of its own moment."""
    return joined(
        (heading, body) for heading, body in sections(prose) if not any(word in heading.lower() for word in STALE)
    )


def marked(prose: str, covered: str) -> str:
    """The prose with a mark behind each path, ticket, hash and long number that stands nowhere in what it covers."""
    unknown = {
        name
        for name in _SPECIFIC.findall(prose)
        # Two numbers or names with a slash between them are no path.
        if name not in covered and not all(part in covered for part in name.split("/"))
    }
    if not unknown:
        return prose
    return _SPECIFIC.sub(lambda match: match[0] + UNKNOWN if match[0] in unknown else match[0], prose)


def is_complete(prose: str, wanted: Sequence[str]) -> bool:
    """Whether a reply that ended for its length has the sections that matter."""
    headings = " ".join(heading.lower() for heading, _ in sections(prose))
    return all(word in headings for word in wanted)


def within(proses: Sequence[str], max_tokens: int) -> str:
    """The newest of these texts that fit together, in their order; of the newest alone its beginning."""
    kept: list[str] = []
    left = max_tokens
    for prose in reversed(proses):
        left -= text_tokens(prose) + 1
        if left < 0:
            break
        kept.append(prose)
    if proses and not kept and max_tokens >= SMALLEST_KEPT_TOKENS:
        return cut_text(proses[-1], max_tokens)
    return "\n\n".join(kept[::-1])


def _category(heading: str) -> str:
    lower = heading.lower()
    return next((category for category, words in _HARVESTED if any(word in lower for word in words)), "")


def _is_same(one: str, other: str) -> bool:
    """Not where one denies what the other says, or names a number or a name of its own: it revises the other."""
    words, others = (set(_WORD.findall(text.lower())) for text in (one, other))
    if not words or len(words & others) < SAME_WORDS * min(len(words), max(1, len(others))):
        return False
    return marks(one, "negations") == marks(other, "negations") and _specific(one) <= _specific(other)


def _specific(text: str) -> set[str]:
    """Numbers, names in code and words in quotes: what makes two statements with the same words differ."""
    return {word.strip(".,;:!?()").lower() for word in text.split() if _CODE.search(word)}
