"""A ledger as the pieces of a record: each line with its section, its kind and its forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from itertools import chain, islice

from nca.context.record.allocation import Kind, Piece, Queue, from_both_ends, line_tokens
from nca.context.record.changes import COUNTED
from nca.context.record.ledger import (
    ANSWERS,
    DECISIONS,
    FAILING,
    FILES,
    FIXED,
    NAMES,
    OUTCOMES,
    READ,
    RULES,
    STEPS,
    URLS,
    WORDS,
    parted,
)
from nca.context.record.statements import single_rules
from nca.context.tokens import text_tokens


class Section(IntEnum):
    """The sections of a record, in their order."""

    RULES = 0
    WORDS = 1
    DECISIONS = 2
    FILES = 3
    STATE = 4
    ANSWERS = 5
    STEPS = 6
    PLACES = 7
    LATEST = 8
    LEFT_OUT = 9


HEADINGS = {
    Section.RULES: "### Rules and corrections",
    Section.WORDS: "### What the user said",
    Section.DECISIONS: "### Decisions and findings",
    Section.FILES: "### Files changed",
    Section.STATE: "### State of the work",
    Section.ANSWERS: "### Answers so far",
    Section.STEPS: "### Steps of the newest turn, when this was written",
    Section.PLACES: "### Where things are",
    Section.LATEST: "### The latest answer",
    Section.LEFT_OUT: "### Left out for length",
}
CATEGORIES = {
    Section.RULES: RULES,
    Section.WORDS: WORDS,
    Section.DECISIONS: DECISIONS,
    Section.ANSWERS: ANSWERS,
    Section.STEPS: STEPS,
    Section.LATEST: ANSWERS,
}
"""Where what a section says is of one category of the ledger."""
LISTS = {"Read": READ, "URLs": URLS, "Names": NAMES}
"""The lists of the section PLACES, by the word that begins each of their lines."""
LEFT_OUT_TOKENS = 40
"""Raw tokens of the lines on what is left out, beside the headings that are not needed then."""
FAILS, MENDED, LAST, BETWEEN = "still fails: ", "fixed: ", ", last: ", "; "
SHORT_CHARS = 320
"""A message of the person up to this length has one form; a longer one is cut in its middle at first."""
ENDS_CHARS = 130
ERROR_CHARS = 96
"""An error that was fixed has a shorter form: where it was and what it was."""
STEP_CHARS = 40
"""The short form of a step."""
OUTCOME_PLACE = 10_000
"""How commands ended stands in front of what still fails; the outcome of each has its line's place behind this."""
NEWEST_ANSWERS, SHORT_ANSWER_CHARS = 6, 100
"""So many answers have a place before what one call brings back, and each a short form."""
PASSING = ("/tmp/", "/var/tmp/")  # noqa: S108 (nothing is written there)
LISTED = 8
"""Files, addresses and names stand several on a line."""

Lines = Mapping[str, Sequence[str]]


class Forms(dict[tuple[str, bool], tuple[tuple[str, ...], tuple[int, ...]]]):
    """By a line of what was said, and whether its rules stand elsewhere, its forms and what each costs.

    They are made when they are first asked for: a record is laid out several times while its room is given out.
    """

    def __missing__(self, key: tuple[str, bool]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        line, has_rules_elsewhere = key
        forms = _forms(*parted(line), has_rules_elsewhere=has_rules_elsewhere)
        made = self[key] = forms, tuple(map(line_tokens, forms))
        return made


@cache
def latest_heading_tokens() -> int:
    return text_tokens(HEADINGS[Section.LATEST]) + 2


@cache
def headings_tokens() -> int:
    """Set aside for the headings, but for that of the latest answer: it is rare, and one line pays for it."""
    return sum(text_tokens(heading) + 2 for heading in HEADINGS.values()) + LEFT_OUT_TOKENS - latest_heading_tokens()


def pieces_of(
    ledger: Lines, *, latest: Sequence[str] = (), error_tokens: int = 0, forms: Forms | None = None
) -> dict[Kind, Queue]:
    """Of each kind the most worth first: the newest and the oldest of what was said, the newest of everything else.

    latest        the line of the answer that the newest message answers, where it is not shown, and longer forms of it
    error_tokens  raw tokens of errors that were fixed and yet come before narrative
    """
    known = Forms() if forms is None else forms
    files = ledger.get(FILES, ())
    failing, state = list(_failing(ledger.get(FAILING, ()))), list(outcomes(ledger))
    errors = _errors(ledger.get(FIXED, ()), error_tokens)
    steps = ledger.get(STEPS, ())
    answers = [line for line in ledger.get(ANSWERS, ()) if line not in latest[:1]]
    told = tuple(_numbered(*parted(line)) for line in latest)
    newest = Piece(
        Kind.LATEST, Section.LATEST, 0, told, tuple(line_tokens(text) + latest_heading_tokens() for text in told)
    )
    return {
        Kind.RULE: _said(ledger, Kind.RULE, Section.RULES, known),
        Kind.LATEST: Queue(1, (newest,)) if latest else Queue(),
        Kind.FILES: Queue(len(files), _files(files)),
        Kind.WORDS: _said(ledger, Kind.WORDS, Section.WORDS, known),
        Kind.DECISION: _said(ledger, Kind.DECISION, Section.DECISIONS, known),
        Kind.STEPS: Queue(len(steps), _steps(steps)),
        Kind.FAILING: Queue(len(failing), failing),
        Kind.STATE: Queue(len(state), state),
        Kind.ERRORS: Queue(len(errors), errors),
        Kind.ANSWERS: Queue(len(answers[-NEWEST_ANSWERS:]), _newest_answers(answers)),
        Kind.NARRATIVE: Queue(len(answers[:-NEWEST_ANSWERS]), _older_answers(answers)),
        Kind.CONTENTS: _contents(ledger, len(errors)),
    }


def _said(ledger: Lines, kind: Kind, section: Section, known: Forms) -> Queue:
    lines = ledger.get(CATEGORIES[section], ())
    ruled = {parted(line)[0] for line in ledger.get(RULES, ())} if section is Section.WORDS else frozenset()

    def pieces() -> Iterator[Piece]:
        for place in from_both_ends(len(lines)):
            line = lines[place]
            yield Piece(kind, section, place, *known[line, parted(line)[0] in ruled])

    return Queue(len(lines), pieces())


def _forms(seq: int, text: str, *, has_rules_elsewhere: bool) -> tuple[str, ...]:
    """The text as it was said; where it is long, first its rules alone, a few more with each form, or its two ends."""
    where = f"- ({seq}) " if seq else "- "
    whole = text.replace("\n", "\n  ")
    if len(text) <= SHORT_CHARS or len(flat := " ".join(text.split())) <= SHORT_CHARS:
        return (f"{where}{whole}",)
    rest = f"[… recall expand={seq} …]" if seq else "[… left out …]"
    rules = [" ".join(rule.split()) for rule in single_rules(text)]
    if rules == [flat] or has_rules_elsewhere:
        shorter = [f"{flat[:ENDS_CHARS]} {rest} {flat[-ENDS_CHARS:]}"]
    else:
        shorter = [" ".join(f"{rule} {rest}" for rule in some) for some in _more_and_more(rules)]
    return (*(f"{where}{short}" for short in shorter if len(short) < len(flat)), f"{where}{whole}")


def _more_and_more(rules: Sequence[str]) -> Iterator[Sequence[str]]:
    """The first of these rules, then some more each time, until they are all of them."""
    chars = 0
    for count, rule in enumerate(rules, 1):
        chars += len(rule)
        if chars >= SHORT_CHARS or count == len(rules):
            yield rules[:count]
            chars = 0


def _newest_answers(lines: Sequence[str]) -> Iterator[Piece]:
    """The newest answers, the newest first; a short form says what each begins with."""
    for place, seq, text in islice(_reversed(lines), NEWEST_ANSWERS):
        yield Piece(Kind.ANSWERS, Section.ANSWERS, place, _shorter(seq, text, SHORT_ANSWER_CHARS))


def _older_answers(lines: Sequence[str]) -> Iterator[Piece]:
    """The others, the newest first."""
    for place, seq, text in islice(_reversed(lines), NEWEST_ANSWERS, None):
        yield Piece(Kind.NARRATIVE, Section.ANSWERS, place, (_numbered(seq, text),))


def _shorter(seq: int, text: str, chars: int) -> tuple[str, ...]:
    """A line, and before it a short form where that saves anything."""
    full = _numbered(seq, text)
    return (f"{_numbered(seq, text[:chars].rstrip())} …", full) if len(text) > chars + 20 else (full,)


def _steps(lines: Sequence[str]) -> Iterator[Piece]:
    """Steps, the newest first; a short form says what was called."""
    for place, seq, text in _reversed(lines):
        yield Piece(Kind.STEPS, Section.STEPS, place, _shorter(seq, text, STEP_CHARS))


def _numbered(seq: int, text: str) -> str:
    return f"- ({seq}) {text}" if seq else f"- {text}"


def _failing(lines: Sequence[str]) -> Iterator[Piece]:
    """What still fails, the newest first."""
    for place, _, line in _reversed(lines):
        _, what, errors = (*line.split("\t", 2), "", "")[:3]
        rows = [row for row in errors.split("\n") if row]
        first = f"- {FAILS}`{what}`" + (f": {rows[0]}" if rows else "")
        full = "\n  ".join((first, *rows[1:]))
        yield Piece(Kind.FAILING, Section.STATE, 20_000 + place, (first, full) if rows[1:] else (first,))


def outcomes(ledger: Lines) -> Iterator[Piece]:
    """The last outcome of each kind of command that does not fail, the newest first."""
    # What git did to many files, as a commit, stands among the files.
    told = (*ledger.get(FAILING, ()), *ledger.get(FILES, ()))
    done = (parted(line)[1].partition("\t")[0] for line in told)
    kinds = {" ".join(kind.split()[:2]) if kind.startswith("git ") else kind for kind in done}
    for place, _, line in _reversed(ledger.get(OUTCOMES, ())):
        kind, _, rest = line.partition("\t")
        command, _, outcome = rest.rpartition("\t")[0].rpartition(" → ")
        if kind not in kinds:
            yield Piece(Kind.STATE, Section.STATE, OUTCOME_PLACE + place, (f"- `{command}` → {outcome}",))


def _files(lines: Sequence[str]) -> Iterator[Piece]:
    """Changed files, the newest first; those in the system's folder for passing things come last."""
    for place, _, line in sorted(_reversed(lines), key=lambda row: row[2].startswith(PASSING)):
        path, count, verb, hint = (*line.split("\t", 3), "", "", "")[:4]
        short = f"- {path}: {verb or 'changed'}"
        if verb in COUNTED:
            short += f" {count}×" if count not in ("", "0", "1") else ""
        is_said = bool(hint) and verb in COUNTED
        yield Piece(Kind.FILES, Section.FILES, place, (short, f"{short}{LAST}{hint}") if is_said else (short,))


def _contents(ledger: Lines, errors: int) -> Queue:
    """Lists, several to a line: each line is one piece; then the errors that were fixed behind the newest `errors`."""
    lists = [(category, range(0, len(ledger.get(category, ())), LISTED)) for category in LISTS.values()]
    fixed = ledger.get(FIXED, ())
    older = fixed[: len(fixed) - errors]
    count = sum(len(starts) for _, starts in lists) + len(older)
    listed = chain.from_iterable(_listed(ledger, row, label) for row, label in enumerate(LISTS))
    return Queue(count, chain(listed, (_error(Kind.CONTENTS, *one) for one in _reversed(older))))


def _listed(ledger: Lines, row: int, label: str) -> Iterator[Piece]:
    category = LISTS[label]
    lines = ledger.get(category, ())
    for start in range(0, len(lines), LISTED):
        values = [parted(line)[1] for line in lines[start : start + LISTED]]
        listed = BETWEEN.join(map(_named, values) if category == NAMES else values)
        yield Piece(Kind.CONTENTS, Section.PLACES, 1_000 * row + start, (f"- {label}: {listed}",))


def _errors(fixed: Sequence[str], tokens: int) -> list[Piece]:
    """Errors that were fixed, the newest first, as far as `tokens` reach."""
    found: list[Piece] = []
    for one in _reversed(fixed):
        piece = _error(Kind.ERRORS, *one)
        tokens -= line_tokens(piece.forms[0])
        if tokens < 0:
            break
        found.append(piece)
    return found


def _error(kind: Kind, place: int, seq: int, text: str) -> Piece:
    line = f"- {MENDED}({seq}) {text}" if seq else f"- {MENDED}{text}"
    forms = (f"{line[:ERROR_CHARS]}…", line) if len(line) > ERROR_CHARS + 20 else (line,)
    return Piece(kind, Section.PLACES, 10_000 + place, forms)


def _named(text: str) -> str:
    name, _, around = text.partition("\t")
    return f"{name} ({around})" if around else name


def _reversed(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """The place of each line, the message that it comes from, and its text; the newest first."""
    return ((place, *parted(lines[place])) for place in range(len(lines) - 1, -1, -1))
