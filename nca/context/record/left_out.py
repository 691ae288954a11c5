"""What a record had no room for, counted, with the calls that list it."""

from __future__ import annotations

import re
from collections import Counter

from nca.context.record.allocation import Chosen, Kind
from nca.context.record.ledger import ANSWERS, OUTCOMES, Ledger, parted, texts
from nca.context.record.pieces import CATEGORIES, HEADINGS, OUTCOME_PLACE, Section, outcomes
from nca.context.view import how_to_recall

_SCOPES = {
    Kind.RULE: ("of the rules", "rules"),
    Kind.FILES: ("of the changed files", "files"),
    Kind.DECISION: ("of the decisions", "decisions"),
    Kind.FAILING: ("of what still fails", "errors"),
}
_BY_NUMBER = {Section.WORDS: "of what the user said", Section.STEPS: "of the steps of this turn"}
NAMED_ANSWERS = 4
_NUMBERED = re.compile(r"- \((\d+)\) ")


def left_out(ledger: Ledger, chosen: Chosen, last: int) -> str:
    """What there was no room for, a line a kind with the call that lists it; empty where nothing that matters went.

    last  the last message that the record stands for: what later ones say is shown behind it
    """
    lines = [
        f"- {chosen.left_out[kind] or 'all'} {what}: recall scope={scope}"
        for kind, (what, scope) in _SCOPES.items()
        if kind in chosen.left_out
    ]
    lines += _outcomes(ledger, chosen, last)
    for section, what in _BY_NUMBER.items():
        said = [_NUMBERED.match(text) for piece, text in chosen.lines if piece.section is section]
        # One message may say several things, each with a line of its own.
        told = Counter(seq for seq, _ in texts(ledger, CATEGORIES[section]) if seq)
        missing = told - Counter(int(match[1]) for match in said if match)
        if missing:
            lines.append(f"- {missing.total()} {what}: {how_to_recall((seq, seq) for seq in missing)}")
    lines += _answers(ledger, chosen)
    return "\n".join([HEADINGS[Section.LEFT_OUT], *lines]) if lines else ""


def _answers(ledger: Ledger, chosen: Chosen) -> list[str]:
    """Which answers a record has no room for, the newest by their numbers; without room for all words nobody looks."""
    if Kind.WORDS in chosen.left_out or not chosen.lines:
        return []
    shown = {int(match[1]) for _, text in chosen.lines if (match := _NUMBERED.match(text))}
    missing = [seq for seq, _ in texts(ledger, ANSWERS) if seq and seq not in shown]
    if not missing:
        return []
    newest = ", ".join(f"({seq})" for seq in missing[: -NAMED_ANSWERS - 1 : -1])
    return [f"- {len(missing)} answers, the newest {newest}: {how_to_recall([(missing[-1], missing[-1])])}"]


def _outcomes(ledger: Ledger, chosen: Chosen, last: int) -> list[str]:
    """Of how many commands the record does not say how they ended, with the newest; what still fails comes first."""
    if Kind.STATE not in chosen.left_out or Kind.FAILING in chosen.left_out:
        return []
    shown = {piece.place for piece, _ in chosen.lines if piece.kind is Kind.STATE}
    if OUTCOMES not in ledger:
        return ["- how the commands ended"]
    places = [piece.place - OUTCOME_PLACE for piece in outcomes(ledger) if piece.place not in shown]
    missing = [told for place in places if (told := parted(ledger[OUTCOMES][place]))[0] <= last]
    if not missing:
        return []
    seq, text = missing[0]
    kind = text.partition("\t")[0]
    count = f"{len(missing)} commands ended, the newest" if missing[1:] else "a command ended,"
    return [f"- how {count} {kind}: {how_to_recall([(seq, seq)])}"]
