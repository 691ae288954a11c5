"""What a record had no room for, counted, with the calls that list it."""

from __future__ import annotations

import re
from collections import Counter

from nca.context.record.allocation import Chosen, Kind
from nca.context.record.ledger import Ledger, texts
from nca.context.record.pieces import CATEGORIES, HEADINGS, Section
from nca.context.view import how_to_recall

_SCOPES = {
    Kind.RULE: ("of the rules", "rules"),
    Kind.FILES: ("of the changed files", "files"),
    Kind.DECISION: ("of the decisions", "decisions"),
    Kind.STATE: ("of the state of the work", "errors"),
}
_BY_NUMBER = {Section.WORDS: "of what the user said", Section.STEPS: "of the steps of this turn"}
_NUMBERED = re.compile(r"- \((\d+)\) ")


def left_out(ledger: Ledger, chosen: Chosen) -> str:
    """What there was no room for, a line a kind with the call that lists it; empty where nothing that matters went."""
    lines = [
        f"- {chosen.left_out[kind] or 'all'} {what}: recall scope={scope}"
        for kind, (what, scope) in _SCOPES.items()
        if kind in chosen.left_out
    ]
    for section, what in _BY_NUMBER.items():
        said = [_NUMBERED.match(text) for piece, text in chosen.lines if piece.section is section]
        # One message may make several calls, each with a line of its own.
        told = Counter(seq for seq, _ in texts(ledger, CATEGORIES[section]) if seq)
        missing = told - Counter(int(match[1]) for match in said if match)
        if missing:
            # Behind a message that makes calls stands a result for each of them.
            ends = [(seq, seq + told[seq] * (section is Section.STEPS)) for seq in missing]
            lines.append(f"- {missing.total()} {what}: {how_to_recall(ends)}")
    return "\n".join([HEADINGS[Section.LEFT_OUT], *lines]) if lines else ""
