"""Calls of generated sessions with what comes back: reads, searches, files written, commands, effects elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Literal, NamedTuple

from nca.testing import session_texts as texts

Kind = Literal["agent", "operations", "writing", "talk"]
"""What a session is about: work on files, calls of an API, texts that are revised, or nothing but talk."""
MOST_RESULT_TOKENS = 50_000


class Call(NamedTuple):
    """A call and what comes back; the tokens that stand in it.

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
    """Makes the calls of one session, of which results are mostly no larger than `most_result_tokens`."""

    def __init__(
        self, rng: Random, pool: texts.Pool, tokens: texts.Tokens, kind: Kind, most_result_tokens: int
    ) -> None:
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
        size = round(texts.between(rng, 10, MOST_RESULT_TOKENS if drawn > 0.997 else self._most_result_tokens))
        sentence = texts.with_token(rng, rng.choice(self.pool.sentences), token, 200)
        return call._replace(result=texts.bulk(rng, self.pool, size, sentence), back=token)

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
        chars = texts.between(rng, 2_000, 30_000) if rng.random() < 0.3 else texts.between(rng, 200, 2_000)
        content = texts.bulk(rng, self.pool, round(chars / self.pool.chars_per_token), f"{inside} = 1")
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
            return call._replace(result=texts.tests_that_run(rng, self.pool, back), back=back)
        return call._replace(result=rng.choice(("", "ok", rng.choice(self.pool.sentences))))

    def _fail(self, call: Call) -> Call:
        back = self._token()
        self._failing.append(call._replace(result=texts.failure(self.rng, self.pool, back), is_error=True, back=back))
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
            return call._replace(result=texts.failure(rng, self.pool, back), is_error=True, back=back)
        if name == "book_reservation":
            self._booked.append(token)
        return call._replace(result=_json(ref=token, state="ok", number=rng.randrange(10**6)))


def _json(**fields: str | int) -> str:
    return json.dumps(fields, ensure_ascii=False)
