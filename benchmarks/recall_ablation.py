"""Measure what each part of search adds to recall: python -m benchmarks.recall_ablation [--transcripts FOLDER]

Prints one line for search as it is and one for search without each part, on every set of questions that is there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.questions import questions_of, sessions_in
from benchmarks.recall import filled, line_of, searched
from benchmarks.talks import talks, talks_in_languages
from nca.sessions import Store, query

PARTS: dict[str, dict[str, object]] = {
    "nothing": {},
    "stop words": {"stop_words": lambda words: frozenset(), "stop_phrases": lambda: re.compile(r"(?!)")},
    "word beginnings": {"FEWEST_FOR_BEGINNING": query.MAX_CHARS + 1},
    "irregular forms": {"irregular_forms": lambda word: ()},
    "near words": {"near_words": lambda word: ()},
}
"""By name of the part, what takes the place of names in `nca.sessions.query`."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_ablation", description=__doc__)
    parser.add_argument("--transcripts", type=Path)
    folder = parser.parse_args().transcripts
    sets = {"languages": talks_in_languages(), "invented talks": talks()}
    if folder is not None:
        transcripts = sessions_in(folder)
        sets["transcripts"] = transcripts, questions_of(transcripts)
    for name, (sessions, questions) in sets.items():
        with Store.open(None) as store:
            ids = filled(store, sessions)
            for part in PARTS:
                with _without(part):
                    print(f"{name}, without {part}: {line_of(questions, sessions, searched(store, ids, 'session'))}")


@contextmanager
def _without(part: str) -> Iterator[None]:
    before = {name: getattr(query, name) for name in PARTS[part]}
    try:
        for name, value in PARTS[part].items():
            setattr(query, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(query, name, value)


if __name__ == "__main__":
    main()
