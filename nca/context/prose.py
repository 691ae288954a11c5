"""What a model wrote of a stretch of the log: whether it is complete, and which names in it nobody said."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADINGS = ("## ", "### ", "#### ")
UNKNOWN = " (?)"
"""Stands behind a name that nothing in what a summary stands for says."""
_SPECIFIC = re.compile(
    r"(?<![\w/.-])(?:[\w.-]*/[\w./-]*\w|[\w-]+\.[a-z]{1,4}|[A-Z][A-Z0-9]{1,9}-\d+|#\d{2,}|\d{4,}"
    r"|(?=[0-9a-f]*\d)[0-9a-f]{7,40})(?![\w/])"
)
"""Paths, file names, tickets, hashes and long numbers: what a model must not make up."""


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
    headings = " ".join(line for line in prose.splitlines() if line.startswith(HEADINGS)).lower()
    return all(word in headings for word in wanted)
