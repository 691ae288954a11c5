"""Texts and calls of generated sessions: invented words of no language, so that no list of words can help an engine.

The words, sentences and lines of a script are made once in a process; a text is put together from them. The calls read,
search, write files, run commands and have effects elsewhere; each has what comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Literal, NamedTuple

SCRIPTS = ("latin", "latin", "latin", "latin", "cyrillic", "greek", "kana")
"""The scripts of sessions; latin is the most frequent."""
_SOUNDS = {
    "latin": ("b d f g j k l m n p r s t v z br dr gl kr pl tr zh", "a e i o u ai ei", ("", "", "l", "m", "n", "r")),
    "cyrillic": ("б в г д ж з к л м н п р с т ф х ц", "а е и о у я ю", ("", "", "л", "м", "н", "р")),
    "greek": ("β γ δ ζ θ κ λ μ ν ξ π ρ σ τ φ χ", "α ε η ι ο υ ω", ("", "", "ν", "ρ", "σ")),
    "kana": ("か き く け こ た て と な に の は ま み も ら り る さ し す", "", ("", "ん")),
}
_CHARS_PER_TOKEN = {"latin": 2.2, "cyrillic": 2.1, "greek": 1.8, "kana": 1.2}
"""About, in o200k."""
_SAID_OTHERWISE = ("recal", "pas", "fix", "fail", "eror", "delet", "never", "always", "must", "not", "done")
"""No word holds these: laws look for such words, and an engine may."""
_WORDS, _SENTENCES, _LINES = 1_200, 1_500, 3_000
_CONSONANTS, _DIGITS = "bcdfghjkmpqrtvwxz", "23456789"


class Pool(NamedTuple):
    """The parts of texts in one script."""

    words: tuple[str, ...]
    sentences: tuple[str, ...]
    lines: dict[str, tuple[str, ...]]
    """By kind: code, log, table, json."""
    chars_per_token: float
    early_chars: int
    """A token of a short text is before this place: if a text is cut to a few tokens, its beginning stays."""


@cache
def pool(script: str) -> Pool:
    rng = Random(script)
    words = tuple(sorted({word for word in (_word(rng, script) for _ in range(_WORDS)) if _is_harmless(word)}))
    sentences = tuple(_sentence(rng, words) for _ in range(_SENTENCES))
    lines = {kind: tuple(_line(rng, words, kind) for _ in range(_LINES)) for kind in ("code", "log", "table", "json")}
    return Pool(words, sentences, lines, _CHARS_PER_TOKEN[script], 200 if script == "latin" else 70)


def between(rng: Random, low: float, high: float) -> float:
    """A number; small and large ones are equally likely at every scale."""
    number: float = low * (high / low) ** rng.random()
    return number


class Tokens:
    """Gives the tokens of one session: distinctive words such as kq7x3vz, none of them twice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._given: set[str] = set()

    def __call__(self) -> str:
        while True:
            a, b, c, d, e = self._rng.choices(_CONSONANTS, k=5)
            one, two = self._rng.choices(_DIGITS, k=2)
            if (token := f"{a}{b}{one}{c}{two}{d}{e}") not in self._given:
                self._given.add(token)
                return token


def sentences(rng: Random, pool: Pool, chars: int, between: str = " ") -> str:
    """Sentences of about this many characters together, and at most these; at least one."""
    found = [rng.choice(pool.sentences)]
    size = len(found[0])
    while True:
        following = rng.choice(pool.sentences)
        size += len(between) + len(following)
        if size > chars:
            return between.join(found)
        found.append(following)


def with_token(rng: Random, text: str, token: str, before: int = 0) -> str:
    """The text with a token as one of its words; it ends before this place, if one is named."""
    places = [place for place, char in enumerate(text[: before - len(token) - 2] if before else text) if char == " "]
    if not places:
        return f"{token} {text}"
    place = rng.choice(places)
    return f"{text[:place]} {token}{text[place:]}"


def bulk(rng: Random, pool: Pool, tokens: int, said: str = "") -> str:
    """A tool's result: lines of one kind, of about this many tokens together.

    said  a sentence somewhere in it
    """
    kind = rng.choice(("code", "code", "log", "table", "json"))
    lines = pool.lines[kind]
    chars = tokens * pool.chars_per_token
    start = rng.randrange(100_000)
    count = max(1, round(chars / (len(lines[0]) + len(lines[-1]) + 14) * 2))
    # Each line has a number, so that two texts of the same lines share none of them.
    found = [f"{number:>6}  {line}" for number, line in enumerate(rng.choices(lines, k=count), start)]
    if said:
        found.insert(rng.randrange(len(found) + 1), said)
    return "\n".join(found)


def log_with_warning(rng: Random, pool: Pool, count: int, warning: str) -> str:
    """A log with one line, between the ends, that is unlike the others: it has this word."""
    job, verb, state = rng.sample(pool.words, 3)
    hour, number = rng.randrange(24), rng.randrange(9_000)
    lines = [
        f"2026-11-21 {hour:02}:{(row // 60) % 60:02}:{row % 60:02} INFO {job} {number + row} {verb} {state} {row} ms"
        for row in range(count)
    ]
    row = rng.randrange(count // 4, count - count // 4)
    lines[row] = f"{lines[row][:19]} WARN {' '.join(rng.sample(pool.words, 3))} {warning}"
    return "\n".join(lines)


def tests_that_run(rng: Random, pool: Pool, token: str) -> str:
    """The output of a green run: it looks like errors, and there are none."""
    names = [f"test_{rng.choice(pool.words)}_{rng.choice(pool.words)}" for _ in range(rng.randint(3, 40))]
    names.insert(rng.randrange(len(names)), f"test_error_handling_{token}")
    names.insert(rng.randrange(len(names)), "test_exception_is_raised")
    lines = [f"tests/{name[5:9]}.py::{name} ok" for name in names]
    return "\n".join([*lines, f"{len(names)} ok, 0 errors, 0 warnings in {rng.randint(1, 90)} s"])


def failure(rng: Random, pool: Pool, token: str) -> str:
    """The output of a failing command."""
    first, second = rng.sample(pool.words, 2)
    lines = [*rng.choices(pool.lines["log"], k=rng.choice((0, 2, 30))), f"{first}: *** [{token}] {second} 2"]
    return "\n".join(lines)


def document(rng: Random, pool: Pool) -> list[str]:
    """The lines of a text that is revised later."""
    return [rng.choice(pool.sentences) for _ in range(20)]


def revised(rng: Random, pool: Pool, lines: list[str]) -> list[str]:
    """Another version: some of the lines after the first are others."""
    new = list(lines)
    for place in rng.sample(range(1, len(new)), rng.randint(2, 5)):
        new[place] = rng.choice(pool.sentences)
    return new


def _is_harmless(word: str) -> bool:
    return len(word) > 1 and not any(part in word for part in _SAID_OTHERWISE)


def _word(rng: Random, script: str) -> str:
    firsts, vowels, ends = _SOUNDS[script]
    starts, middles = firsts.split(), vowels.split() or [""]
    return "".join(rng.choice(starts) + rng.choice(middles) + rng.choice(ends) for _ in range(rng.randint(2, 4)))


def _sentence(rng: Random, words: tuple[str, ...]) -> str:
    chosen = rng.choices(words, k=rng.randint(4, 14))
    if len(chosen) > 7 and rng.random() < 0.5:
        chosen[rng.randint(2, 5)] += rng.choice((",", ",", ";", ":", " –"))
    text = " ".join(chosen)
    return text[:1].upper() + text[1:] + rng.choice("...!?")


def _line(rng: Random, words: tuple[str, ...], kind: str) -> str:
    a, b, c, d, e = rng.choices(words, k=5)
    number = rng.randrange(10_000)
    match kind:
        case "code":
            return rng.choice(
                (f"    {a}_{b} = {c}({d}, {number})", f"def {a}_{b}({c}, {d}): ", f"    return {a}.{b}[{c}]")
            )
        case "log":
            return f"{number // 600:02}:{number % 60:02} INFO {a} {b} {c} {number} ms"
        case "table":
            return f"| {a} {b} | {c} | {number / 100:.2f} | {d} |"
        case _:
            return json.dumps({a: number, b: f"{c} {d}", "id": f"{e}-{number}"}, ensure_ascii=False)


Kind = Literal["agent", "operations", "writing", "talk"]
"""The subject of a session: work on files, calls of an API, texts that are revised, or nothing but talk."""
MOST_RESULT_TOKENS = 50_000


class Call(NamedTuple):
    """A call with its result, and the tokens in it.

    effect  in the arguments of a call with an effect; "": it has none
    inside  in other arguments
    back    in the result
    """

    name: str
    arguments: str
    result: str = ""
    is_error: bool = False
    effect: str = ""
    inside: str = ""
    back: str = ""


class Caller:
    """Makes the calls of one session, with results mostly no larger than `most_result_tokens`."""

    def __init__(self, rng: Random, pool: Pool, tokens: Tokens, kind: Kind, most_result_tokens: int) -> None:
        self.rng, self.pool, self._token, self._most_result_tokens = rng, pool, tokens, most_result_tokens
        self._paths: list[tuple[str, str]] = []
        self._failing: list[Call] = []
        self._booked: list[str] = []
        shares: dict[Kind, dict[Callable[[], Call], int]] = {
            "agent": {self._read: 45, self._look: 15, self._write: 12, self._run: 20, self._act: 3},
            "operations": {self._read: 5, self._look: 35, self._write: 2, self._run: 8, self._act: 50},
            "writing": {self._read: 60, self._look: 30, self._write: 10},
            "talk": {self._look: 1},
        }
        self._makers, self._weights = list(shares[kind]), list(shares[kind].values())

    def calls(self, count: int) -> list[Call]:
        """Calls that are made at once."""
        return [maker() for maker in self.rng.choices(self._makers, self._weights, k=count)]

    def _result(self, call: Call) -> Call:
        """A call with what a tool brings back; rarely nothing, or very much."""
        rng, drawn = self.rng, self.rng.random()
        if drawn < 0.06:
            return call
        token = self._token()
        size = round(between(rng, 10, MOST_RESULT_TOKENS if drawn > 0.997 else self._most_result_tokens))
        sentence = with_token(rng, rng.choice(self.pool.sentences), token, 200)
        return call._replace(result=bulk(rng, self.pool, size, sentence), back=token)

    def _path(self, *, is_new: bool) -> tuple[str, str]:
        """A path and the token in it."""
        if is_new or not self._paths:
            token = self._token()
            self._paths.append((f"src/{self.rng.choice(self.pool.words)}/{token}.py", token))
            return self._paths[-1]
        return self.rng.choice(self._paths[-12:])

    def _read(self) -> Call:
        path, token = self._path(is_new=self.rng.random() < 0.6)
        return self._result(Call("read_file", _json(path=path), inside=token))

    def _look(self) -> Call:
        rng, token = self.rng, self._token()
        name = f"{rng.choice(('get', 'list', 'search'))}_{rng.choice(('orders', 'places', 'prices', 'notes'))}"
        return self._result(Call(name, _json(query=f"{rng.choice(self.pool.words)} {token}"), inside=token))

    def _write(self) -> Call:
        rng, inside = self.rng, self._token()
        path, effect = self._path(is_new=rng.random() < 0.5)
        chars = between(rng, 2_000, 30_000) if rng.random() < 0.3 else between(rng, 200, 2_000)
        content = bulk(rng, self.pool, round(chars / self.pool.chars_per_token), f"{inside} = 1")
        result = f"Wrote {len(content.splitlines())} lines to {path}."
        return Call("write_file", _json(path=path, content=content), result, effect=effect, inside=inside)

    def _run(self) -> Call:
        """A command that works, one that does not, or again one that did not."""
        rng, token = self.rng, self._token()
        if self._failing and rng.random() < 0.5:
            failed = self._failing.pop(rng.randrange(len(self._failing)))
            if rng.random() < 0.3:
                return self._fail(failed)
            return failed._replace(result=rng.choice(("", "ok")), is_error=False, back="")
        call = Call("shell", _json(command=f"make {rng.choice(self.pool.words)}-{token}"), inside=token)
        drawn = rng.random()
        if drawn < 0.35:
            return self._fail(call)
        if drawn < 0.7:
            back = self._token()
            return call._replace(result=tests_that_run(rng, self.pool, back), back=back)
        return call._replace(result=rng.choice(("", "ok", rng.choice(self.pool.sentences))))

    def _fail(self, call: Call) -> Call:
        back = self._token()
        self._failing.append(call._replace(result=failure(self.rng, self.pool, back), is_error=True, back=back))
        return self._failing[-1]

    def _act(self) -> Call:
        """A call that changes something elsewhere; a booking may be cancelled later."""
        rng, token = self.rng, self._token()
        name = rng.choice(("book_reservation", "book_reservation", "cancel_booking", "deploy_service", "send_message"))
        if name == "cancel_booking" and self._booked:
            booked = self._booked.pop(rng.randrange(len(self._booked)))
            why = f"{rng.choice(self.pool.words)} {token}"
            return Call(name, _json(id=booked, why=why), _json(id=booked, state="ok"), effect=token, inside=booked)
        who, day = " ".join(rng.sample(self.pool.words, 2)), f"2031-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        call = Call(name, _json(ref=token, who=who, day=day), effect=token)
        if rng.random() < 0.08:
            back = self._token()
            return call._replace(result=failure(rng, self.pool, back), is_error=True, back=back)
        if name == "book_reservation":
            self._booked.append(token)
        return call._replace(result=_json(ref=token, state="ok", number=rng.randrange(10**6)))


def _json(**fields: str | int) -> str:
    return json.dumps(fields, ensure_ascii=False)
