"""Find what a session holds that must not be lost, by rules of our own: nothing here comes from nca.

The engine is judged by these, so it must not share a pattern with them: a fact that nca does not know would not count.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.peers.side import calls_of, text_of

Row = dict[str, Any]

ERRORS_OF_A_RESULT = 3
"""Of a result with many lines of errors, the first ones: they name the cause."""
ERROR_CHARS = 80
"""So much of a line of an error must be readable."""
_ERROR = re.compile(
    r"""(?x)
    ^(?: E\ {2,}\S.*                                              # pytest
       | FAILED\ \S.* | FAIL:?\ \S.* | npm\ ERR!.*
       | (?:fatal|error|Error|ERROR|panic)(?:\[\w+\])?:\ .*       # git, cargo, compilers
       | (?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*)?(?:Error|Exception):\ .*      # the last line of a traceback
       | \S+:\d+(?::\d+)?:\ (?:fatal\ )?error:?\ .*               # gcc, mypy
       | \S+\(\d+,\d+\):\ error\ .* | .*\berror\ TS\d+:\ .*       # tsc
       | (?:\S+:\ ){1,3}(?:command\ not\ found|No\ such\ file\ or\ directory|Permission\ denied).*
    )$"""
)
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_RULE = re.compile(r"(?i)\b(?:always|never|do not|don't|must not|from now on|please use)\b")
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")
_CHANGES = re.compile(r"write|edit|create|replace|patch|insert", re.I)
_PATHS = ("path", "file_path", "filename", "file", "target_file")


def facts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By kind, each once, in the order in which they were said.

    Rules are those that the session's maker marked (`_rules`); where nobody did, sentences with words of a rule.
    """
    words = [text_of(row) for row in rows if is_of_person(row)]
    changed, read, errors = dict[str, None](), dict[str, None](), dict[str, None]()
    seen: Counter[str] = Counter()
    for row in rows:
        for name, arguments in _calls(row):
            path = next((str(arguments[key]) for key in _PATHS if arguments.get(key)), "")
            if path:
                (changed if _CHANGES.search(name) else read)[path] = None
        if row["role"] == "tool":
            errors.update(dict.fromkeys(error_lines(text_of(row), is_marked=bool(row.get("_error")))))
        seen.update(set(_HASH.findall(text_of(row))))
    rules = [str(rule) for row in rows for rule in row.get("_rules", ())]
    if not rules:
        rules = [sentence.strip() for word in words for sentence in sentences(word[:20_000]) if _is_rule(sentence)]
    return {
        "paths touched": list(changed),
        "files read": list(read),
        "error lines": list(errors),
        "hashes": [name for name, count in seen.items() if count > 1],
        "user turns": words,
        "rules of the user": list(dict.fromkeys(rules)),
    }


def is_of_person(row: Row) -> bool:
    """Whether a person wrote it: programs say things in the user's role too."""
    return bool(row["role"] == "user" and row.get("_source") != "nca")


def sentences(text: str) -> list[str]:
    """A text in its sentences and lines."""
    return [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]


def error_lines(text: str, *, is_marked: bool = False) -> list[str]:
    """The lines of a result that say what failed; of one that is marked as failed and has none, the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if _ERROR.match(line)][:ERRORS_OF_A_RESULT]
    return found or (lines[:1] if is_marked else [])


def readable(wanted: Iterable[str], text: str, *, most_chars: int = 0) -> tuple[int, int]:
    """How many can be read in the text, of how many; blanks count as one. `most_chars` of each are enough; 0: all."""
    shown = " ".join(text.split())
    found = [" ".join(fact.split()) for fact in wanted]
    return sum((fact[:most_chars] if most_chars else fact) in shown for fact in found), len(found)


def _is_rule(sentence: str) -> bool:
    return len(sentence) <= 300 and bool(_RULE.search(sentence))


def _calls(row: Row) -> Iterable[tuple[str, Row]]:
    for call in calls_of(row):
        function = call["function"]
        try:
            arguments = json.loads(function["arguments"])
        except ValueError:
            continue
        if isinstance(arguments, dict):
            yield str(function["name"]), arguments
