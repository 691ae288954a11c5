"""`nca.ContextView` with its state in a store: any process goes on, and of two at once only one is answered."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

import nca
from tests.context.samples import PROSE
from tests.library.test_context_view import WINDOW, Rows, talk
from tests.testing.forks import standing_code

KEY = "user-7/42"

WORKER = """
import json, os, sys
from pathlib import Path
import nca

def summarize(messages):
    print("asked", flush=True)
    return json.loads(sys.stdin.readline())

with nca.Store.open(Path(sys.argv[1])) as store:
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        ask = summarize if given["asks"] else None
        view = nca.ContextView(context_window=int(sys.argv[2]), store=store, key=given["key"], summarizer=ask)
        try:
            fitted = view.fit(given["messages"])
            recalled = view.recall(expand="3")
            told = {"messages": fitted.messages, "compacted": fitted.compacted, "recalled": recalled}
        except nca.ViewInUse as error:
            told = {"error": str(error)}
        print(json.dumps(told), flush=True)
"""


class Worker:
    """A process with the store open, which fits what it is told."""

    def __init__(self, path: Path) -> None:
        self.process = Popen(
            standing_code(WORKER, str(path), str(WINDOW)), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
        )
        self.pid = int(self.said())

    def said(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return line.strip()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def begin(self, messages: Rows, *, asks: bool = False, key: str = KEY) -> None:
        self.tell(json.dumps({"messages": messages, "asks": asks, "key": key}))

    def answered(self, summary: str) -> dict[str, Any]:
        """What it tells after it was given this summary as often as it asks."""
        line = "asked"
        while line == "asked":
            self.tell(json.dumps(summary))
            line = self.said()
        told: dict[str, Any] = json.loads(line)
        return told

    def fit(self, messages: Rows, *, key: str = KEY) -> dict[str, Any]:
        self.begin(messages, key=key)
        told: dict[str, Any] = json.loads(self.said())
        return told


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "views" / "sessions.db"


@pytest.fixture
def workers(path: Path) -> Iterator[list[Worker]]:
    both = [Worker(path), Worker(path)]
    yield both
    for worker in both:
        worker.process.kill()
        worker.process.communicate()


def test_two_processes_serve_one_conversation_in_turn(workers: list[Worker]) -> None:
    alone, log, compactions = nca.ContextView(context_window=WINDOW), talk(40), 0
    for number, count in enumerate(range(4, 101, 8)):
        expected = alone.fit(log[:count])
        told = workers[number % 2].fit(log[:count])
        assert (told["messages"], told["compacted"]) == (expected.messages, expected.compacted)
        assert "zebra0: a line" in told["recalled"]
        compactions += told["compacted"]
    assert compactions > 1


def test_of_two_processes_at_once_the_second_to_save_is_refused_and_goes_on(workers: list[Worker]) -> None:
    one, other = workers
    log = talk(40)
    one.begin(log, asks=True)
    assert one.said() == "asked"
    served = other.fit(log)
    assert served["compacted"]
    refused = one.answered(PROSE)
    assert refused == {
        "error": f"Another request has fitted the conversation '{KEY}' meanwhile. Nothing was changed; ask again."
    }
    again = one.fit(log)
    assert (again["messages"], again["compacted"]) == (served["messages"], False)


def test_a_process_that_is_killed_while_it_compacts_leaves_what_was_there(workers: list[Worker]) -> None:
    one, other = workers
    log = talk(60)
    assert one.fit(log[:100])["compacted"]
    before = other.fit(log[:100])
    assert not before["compacted"]
    one.begin(log, asks=True)
    assert one.said() == "asked"
    os.kill(one.pid, signal.SIGKILL)
    one.process.wait()
    assert other.fit(log[:100]) == before
    assert other.fit(log)["compacted"]
    assert "zebra0: a line" in other.fit(log)["recalled"]


def test_keys_are_views_of_their_own(path: Path) -> None:
    one, other = talk(40), [{"role": "user", "content": "My word is walrus."}, *talk(25)]
    with nca.Store.open(path) as store:
        for log, key in ((one, "1"), (other, "2"), (one, "1"), (other, "2")):
            view = nca.ContextView(context_window=WINDOW, store=store, key=key)
            assert view.fit(log).messages == nca.ContextView(context_window=WINDOW).fit(log).messages
            assert ("walrus" in view.recall(expand="1")) == (key == "2")
        store.program_views.delete("1")
        anew = nca.ContextView(context_window=WINDOW, store=store, key="1")
        assert anew.fit(one).compacted
        assert not nca.ContextView(context_window=WINDOW, store=store, key="2").fit(other).compacted


def test_a_view_that_lives_longer_goes_on_from_what_another_saved(path: Path) -> None:
    log = talk(40)
    with nca.Store.open(path) as store:
        old = nca.ContextView(context_window=WINDOW, store=store, key=KEY)
        old.fit(log[:4])
        new = nca.ContextView(context_window=WINDOW, store=store, key=KEY)
        fitted = new.fit(log)
        assert fitted.compacted
        assert not old.fit(log).compacted
        assert old.state == new.state
        with pytest.raises(nca.ViewInUse, match="Use one key for each conversation, and a new ContextView for each"):
            old.fit(log[1:])
        assert old.fit(log).messages == fitted.messages


async def test_it_goes_on_in_an_event_loop(path: Path) -> None:
    log = talk(40)
    with nca.Store.open(path) as store:
        fitted = await nca.ContextView(context_window=WINDOW, store=store, key=KEY).afit(log)
        assert fitted.compacted
        again = await nca.ContextView(context_window=WINDOW, store=store, key=KEY).afit(log)
        assert (again.messages, again.compacted) == (fitted.messages, False)


def test_another_conversation_under_the_key_begins_anew(path: Path) -> None:
    with nca.Store.open(path) as store:
        nca.ContextView(context_window=WINDOW, store=store, key=KEY).fit(talk(40))
        view = nca.ContextView(context_window=WINDOW, store=store, key=KEY)
        view.fit([{"role": "user", "content": "I am somebody else."}])
        assert "zebra" not in str(view.state) + view.recall(query="zebra0")


def test_messages_that_are_kept_are_recalled_without_a_request(path: Path) -> None:
    def view(key: str) -> nca.ContextView:
        return nca.ContextView(context_window=WINDOW, store=store, key=key, keeps_messages=True)

    log = talk(40)
    changed = [{"role": "user", "content": "My word is walrus."}, *log[1:]]
    with nca.Store.open(path) as store:
        for end in (40, 60, 100):
            view(KEY).fit(log[:end])
        view("other").fit(changed[:4])
        assert [(info.name, info.messages) for info in store.list()] == [("other", 4), (KEY, 100)]
        with_fit = view(KEY)
        with_fit.fit(log[:100])
        for asked in ({"query": "zebra0"}, {"expand": "3"}, {"scope": "answers"}, {"query": "walrus", "scope": "all"}):
            told, again = (re.sub(r", 20\d\d-\d\d-\d\d", "", one.recall(**asked)) for one in (view(KEY), with_fit))
            assert told == again
            assert "walrus" not in told
        other = next(info for info in store.list() if info.name == "other")
        assert "nothing has the id" in view(KEY).recall(expand=f"{other.id}:1")
        # What is changed or taken back is in the conversation no more.
        view(KEY).fit(changed[:8])
        assert "walrus" in view(KEY).recall(expand="1")
        assert "Nothing was found." in view(KEY).recall(query="zebra9")
        assert [(info.name, info.messages) for info in store.list()] == [(KEY, 8), ("other", 4)]
        store.delete(KEY)
        with pytest.raises(nca.NcaError, match=r"There is no session|No messages are kept"):
            view(KEY).recall(query="walrus")
        view(KEY).fit(log[:4])
        assert "zebra0" in view(KEY).recall(expand="3")


@pytest.mark.parametrize("earlier", [0, 4])
def test_who_is_refused_leaves_the_messages_that_another_request_keeps_and_none_of_its_own(
    path: Path, earlier: int
) -> None:
    log = talk(40)
    with nca.Store.open(path) as store:

        def view(summarizer: Callable[[Any], str] | None = None) -> nca.ContextView:
            return nca.ContextView(
                context_window=WINDOW, store=store, key=KEY, keeps_messages=True, summarizer=summarizer
            )

        def while_another_asks(messages: Any) -> str:
            view().fit(log)
            return PROSE

        if earlier:
            view().fit(log[:earlier])
        with pytest.raises(nca.ViewInUse):
            view(while_another_asks).fit(log)
        assert "zebra0" in view().recall(expand="3")
        assert [info.name for info in store.list()] == [KEY]


def test_what_is_given_wrongly_is_refused(path: Path) -> None:
    with nca.Store.open(path) as store:
        for arguments, said in (
            ({"keeps_messages": True}, r"^keeps_messages: needs a store and a key"),
            ({"key": "a"}, r"^store: expected an nca\.Store, found nothing"),
            ({"store": str(path), "key": "a"}, r"^store: expected an nca\.Store, found text"),
            ({"store": store}, r"^key: is empty; valid: a name"),
            ({"store": store, "key": 7}, r"^key: expected text, found a number"),
            ({"store": store, "key": "a\ud800"}, r"^key: holds half of a surrogate pair"),
            ({"store": store, "key": "a", "state": {}}, r"^state: is given beside store and key"),
        ):
            with pytest.raises(nca.UsageError, match=said):
                nca.ContextView(**arguments)
        for key, body in (("a", '{"view": 3}'), ("b", '{"view": {"items": [], "tail": 0}}')):
            store.program_views.save(key, body, None)
            said = rf"^The state of the view '{key}' is damaged .*delete\('{key}'\) lets it begin"
            with pytest.raises(nca.StoreError, match=said):
                nca.ContextView(context_window=WINDOW, store=store, key=key).fit(talk(1))
