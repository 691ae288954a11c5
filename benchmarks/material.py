"""Generate coding sessions from a seed: OpenAI-shaped, with everything in them that a compaction can lose.

Turns of a request, steps with one or two calls, long results, repeated reads of the same files, errors that are fixed
or not, rules of the user, hashes and tickets. A message is some 400 tokens on the mean, as in the real session that is
measured beside it. Results come from a pool of texts, so that a hundred thousand messages fit into memory.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Row = dict[str, Any]

POOL = 400
"""Different result texts of each kind."""
FILES = 60
SYSTEM = (
    "You are a careful coding agent in a repository. Read before you change, keep changes small, run the tests after"
    " each change, and say plainly what you did not do. "
) * 6
RULES = (
    "Never rename public functions in {path}.",
    "Always run the tests in {path} before you call something done.",
    "Leave {path} alone, another team owns it.",
    "{path} is off limits for now.",
    "Hands off {path} until the release is out.",
    "I'd rather be asked before anything changes in {path}.",
    "Nothing goes into {path} without a test next to it.",
    "Commit messages start with {ticket} here.",
    "We have one helper for this, in {path}; a second one gets rejected in review.",
    "Keep the names in {path} as they are.",
    "Stick to the standard library in {path}.",
    "Every change in {path} needs a line in the changelog.",
    "For anything near {path}, run the whole suite, a single file won't do.",
    "Make sure {ticket} is quoted in each commit.",
    "No new dependencies, {ticket} explains why.",
    "Functions in {path} stay below 40 lines.",
    "The order of arguments in {path} is fixed, clients depend on it.",
    "If you need to touch {path}, tell me first.",
    "It matters to me that {path} keeps working on Python 3.8.",
    "What is in {path} was agreed with legal, so it stays word for word.",
    "Please avoid mocks in the tests of {path}.",
    "I don't want to see prints in {path}.",
    "Two spaces in {path}, as it has been all along.",
    "Answers should be short today, I read them on the phone; details go to {ticket}.",
)
"""As people say them, written without looking at what a program takes for a rule. `_rules` of a row has its own."""
_WORD_TEXT = """
the parser reads every token and keeps its position because callers want exact ranges in messages while a cache
holds what was seen before and the writer flushes when its buffer is full so tests that look at files after a
crash find whole lines only and retries wait longer each time until the limit of the caller is reached then give
up with one clear error that names what was asked for and what would have been valid instead of a long trace
"""
_WORDS = _WORD_TEXT.split()
_CODE = (
    "def {name}(value: int, limit: int = {number}) -> int:",
    "    if value > limit:",
    "        raise ValueError(f'{name}: {{value}} is above {{limit}}')",
    "    total = sum(item.size for item in self.{name}_items)",
    "    return self._cache.setdefault({number}, total)",
    "class {name_title}Reader:",
    "    # keep the order of {name}: callers rely on it",
)


def coding_session(length: int, seed: int = 7) -> list[Row]:
    """A session of at most `length` messages that ends behind a whole step, with a valid order of calls and results.

    `_error` marks a failed result, as in the transcripts; `_rules` is for the judge alone.
    """
    chance = random.Random(seed)
    pool = _pool(seed + 1)
    rows: list[Row] = [{"role": "system", "content": SYSTEM.strip()}]
    for step in _steps(chance, pool):
        if len(rows) + len(step) > length:
            return rows
        rows += step
    raise AssertionError("the steps never end")


class _Pool:
    """The texts of results, and the files that they are about."""

    def __init__(self, chance: random.Random) -> None:
        self.paths = [f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}_{number}.py" for number in range(FILES)]
        self.code = [_code(chance, chance.randint(20, 170)) for _ in range(POOL)]
        self.hits = [_hits(chance, self.paths) for _ in range(POOL)]
        self.passed = [_output(chance, self.paths, is_error=False) for _ in range(POOL)]
        self.failed = [_output(chance, self.paths, is_error=True) for _ in range(POOL)]


@lru_cache(maxsize=1)
def _pool(seed: int) -> _Pool:
    """Most of the time that a session takes; the pool is only read."""
    return _Pool(random.Random(seed))


def _steps(chance: random.Random, pool: _Pool) -> Iterator[list[Row]]:
    """Each a user message, a step with its results, or an answer."""
    turn = calls = 0
    while True:
        turn += 1
        ticket = f"PROJ-{chance.randint(100, 9_999)}"
        yield [_request(chance, pool, ticket)]
        for _ in range(chance.randint(3, 9)):
            batch = [_call(chance, pool, calls + place) for place in range(chance.choice((1, 1, 1, 2)))]
            calls += len(batch)
            said = _prose(chance, chance.randint(6, 25)) if chance.random() < 0.6 else None
            asking = {"role": "assistant", "content": said, "tool_calls": [call for call, _ in batch]}
            yield [asking, *(result for _, result in batch)]
        sha = f"{chance.getrandbits(40):010x}a1"
        path = chance.choice(pool.paths)
        closing = f" The cause was {path}. Committed as {sha} for {ticket}."
        yield [{"role": "assistant", "content": _prose(chance, chance.randint(40, 120)) + closing}]


def _request(chance: random.Random, pool: _Pool, ticket: str) -> Row:
    text = f"{ticket}: {_prose(chance, chance.randint(15, 60))} Look at {chance.choice(pool.paths)} first."
    if chance.random() >= 0.25:
        return {"role": "user", "content": text}
    rule = chance.choice(RULES).format(path=chance.choice(pool.paths), ticket=ticket)
    return {"role": "user", "content": f"{text} {rule}", "_rules": [rule]}


def _call(chance: random.Random, pool: _Pool, number: int) -> tuple[Row, Row]:
    kind = chance.choices(("read_file", "grep", "shell", "edit_file"), (5, 2, 3, 2))[0]
    # Some files are looked at again and again.
    path = pool.paths[min(int(chance.expovariate(0.12)), FILES - 1)]
    is_error = False
    if kind == "read_file":
        arguments: Row = {"path": path}
        text = chance.choice(pool.code)
    elif kind == "grep":
        arguments = {"pattern": chance.choice(_WORDS), "path": "src"}
        text = chance.choice(pool.hits)
    elif kind == "shell":
        is_error = chance.random() < 0.35
        arguments = {"command": f"python -m pytest tests/{chance.choice(_WORDS)} -q"}
        text = chance.choice(pool.failed if is_error else pool.passed)
    else:
        name = chance.choice(_WORDS)
        arguments = {"path": path, "old": f"return {name}", "new": f"return {name}_{number}"}
        text = f"Edited {path}: 1 replacement."
    id = f"call_{number:07d}"
    call = {"id": id, "type": "function", "function": {"name": kind, "arguments": json.dumps(arguments)}}
    result: Row = {"role": "tool", "tool_call_id": id, "name": kind, "content": text}
    return call, {**result, "_error": True} if is_error else result


def _code(chance: random.Random, lines: int) -> str:
    made = []
    for _ in range(lines):
        name = chance.choice(_WORDS)
        line = chance.choice(_CODE)
        made.append(line.format(name=name, name_title=name.title(), number=chance.randint(2, 99)))
    return "\n".join(made)


def _hits(chance: random.Random, paths: list[str]) -> str:
    return "\n".join(
        f"{chance.choice(paths)}:{chance.randint(1, 900)}: {_prose(chance, 8)}" for _ in range(chance.randint(5, 40))
    )


def _output(chance: random.Random, paths: list[str], *, is_error: bool) -> str:
    lines = [
        f"tests/{chance.choice(_WORDS)}_{n}.py {'.' * chance.randint(5, 60)}" for n in range(chance.randint(5, 50))
    ]
    if not is_error:
        return "\n".join(
            [*lines, f"{chance.randint(40, 400)} passed in {chance.randint(1, 90)}.{chance.randint(0, 9)}s"]
        )
    name, path = chance.choice(_WORDS), chance.choice(paths)
    lines.append(f'  File "{path}", line {chance.randint(1, 900)}, in {name}')
    lines.append(f"ValueError: {name}: {chance.randint(100, 9_999)} is above {chance.randint(2, 99)}")
    return "\n".join([*lines, f"{chance.randint(1, 9)} failed, {chance.randint(40, 400)} passed", "exit code: 1"])


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words)).capitalize() + "."
