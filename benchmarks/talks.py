"""Generate conversations of two people over many days, with questions about what one of them said.

Written for this benchmark. In most the question has other words than the answer, in some the answer only makes sense
after what the other one said right before; a name tells which of many similar conversations is meant.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from pathlib import Path

from benchmarks.questions import Question
from nca.messages import Message

_TEXTS = Path(__file__).with_name("talks.txt")
"""Facts, one a line: what the other says before (or nothing) | the answer | the question. After a blank line, chatter.

NAME is in a question who answered, in what is said who listens.
"""
LANGUAGES = Path(__file__).with_name("talks_languages.toml")
_NAME_LIST = """
Anna Ben Carla David Elena Felix Grace Hugo Irene Jonas Karin Liam Maya Noah Olga Paul Rosa Simon Tara Victor
"""
_NAMES = _NAME_LIST.split()
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def talks(count: int = 10, seed: int = 5) -> tuple[list[list[Message]], list[Question]]:
    """`count` pairs of people, each over several sessions; and the questions, places counted from the first session."""
    chance = random.Random(seed)
    above, _, below = _TEXTS.read_text(encoding="utf-8").partition("\n\n")
    facts, chatter = [line.split("|") for line in above.splitlines()], below.splitlines()
    sessions: list[list[Message]] = []
    questions: list[Question] = []
    for pair in range(count):
        names = (_NAMES[2 * pair % len(_NAMES)], _NAMES[(2 * pair + 1) % len(_NAMES)])
        chosen = chance.sample(facts, 24)
        for first in range(0, len(chosen), 4):
            said, asked = _session(names, chosen[first : first + 4], chatter, chance)
            for seq, text, family in asked:
                questions.append(Question("talk", text, frozenset({(len(sessions), seq)}), family))
            sessions.append(said)
    return sessions, questions


def talks_in_languages(messages: int = 160, seed: int = 7) -> tuple[list[list[Message]], list[Question]]:
    """A chat in each language of `talks_languages.toml`, its statements spread over `messages` others; the questions.

    A question's `kind` is its language.
    """
    chance = random.Random(seed)
    sessions: list[list[Message]] = []
    questions: list[Question] = []
    for language, part in tomllib.loads(LANGUAGES.read_text(encoding="utf-8")).items():
        filler = part["filler"].strip().splitlines()
        facts = [*part["facts"], *part["crossed"]]
        chance.shuffle(facts)
        texts = [" ".join(chance.sample(filler, chance.randint(1, 3))) for _ in range(messages)]
        for place, (said, asked) in zip(sorted(chance.sample(range(messages), len(facts))), facts, strict=True):
            texts[place] = said
            questions.append(Question(language, asked, frozenset({(len(sessions), place + 1)})))
        sessions.append([Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)])
    return sessions, questions


def _session(
    names: tuple[str, str], facts: Sequence[Sequence[str]], chatter: Sequence[str], chance: random.Random
) -> tuple[list[Message], list[tuple[int, str, str]]]:
    day = f"[{chance.randint(1, 28)} {chance.choice(_MONTHS)} {chance.randint(2021, 2024)}]"
    messages: list[Message] = []
    asked: list[tuple[int, str, str]] = []

    def say(speaker: int, text: str) -> None:
        role = "user" if speaker == 0 else "assistant"
        messages.append(Message(role, f"{day} {names[speaker]}: {text.replace('NAME', names[1 - speaker])}"))

    for before, answer, question in facts:
        speaker = chance.randrange(2)
        for step in range(chance.randint(2, 6)):
            say(step % 2, chance.choice(chatter))
        if before:
            say(1 - speaker, before)
        say(speaker, answer)
        asked.append((len(messages), question.replace("NAME", names[speaker]), question))
        say(1 - speaker, chance.choice(chatter))
    return messages, asked
