"""The lines of a text that are least like the others: the one warning among a hundred lines that say the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MOST_LINES = 2
LEAST_WORDS = 3
"""A line of fewer words says too little to stand alone."""
SCANNED_LINES = 5_000
_WORD = re.compile(r"[^\W\d_]{2,}")


def unusual_lines(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """At most so many lines, in their order: those whose words the fewest other lines have."""
    words = [frozenset(_WORD.findall(line.lower())) for line in lines[:SCANNED_LINES]]
    lines_with = Counter(word for one in words for word in one)
    shared = [
        (sum(lines_with[word] for word in one) / len(one), place)
        for place, one in enumerate(words)
        if len(one) >= LEAST_WORDS
    ]
    return [lines[place].strip() for _, place in sorted(sorted(shared)[:most], key=lambda found: found[1])]
