"""Run the provider's failures through the real commands, many at a time, and report the outcome of each.

Each script has a home of its own (settings, store, files for the tools); those that need it have a long talk in their
store. Afterwards the store is opened, as any later command would open it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nca.config.paths import data_dir
from nca.messages import Entry, Message
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, count_request_tokens, is_summary_request, prose
from tests.cli.command import nca
from tests.testing.cases import CASES, Case
from tests.testing.cases.calls import TEXT_A, TEXT_B
from tests.testing.forks import forked

ANSWER = "A whole answer."
TALK_TURNS = 48
"""Each so short that a compaction leaves some out, instead of shortening all: then a summary is asked for."""
AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one command: what it wrote, what the provider got, what the store has."""

    exit_code: int
    stdout: str
    stderr: str
    requests: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    entries: list[Entry]
    compactions: int

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of `--stream ndjson`."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def rows(self) -> tuple[str, ...]:
        """The log behind the talk, as Fault.stored has it."""
        messages = [entry.message for entry in self.entries]
        return tuple("interrupted" if message.is_interrupted else message.role for message in messages)

    @property
    def answer(self) -> str:
        """What a person has seen of answers."""
        if self.stdout.startswith("{"):
            return "".join(event["text"] for event in self.of("text_delta"))
        return self.stdout

    @property
    def said(self) -> str:
        """What was said beside the answer."""
        if not self.stdout.startswith("{"):
            return self.stderr
        parts = [str(event.get(name, "")) for event in self.events for name in ("message", "advice", "reason")]
        return "\n".join(parts)


def question(name: str) -> str:
    return f"What is it? (asked of {name})"


def answered(request: dict[str, Any]) -> Answer | str:
    return prose(request) if is_summary_request(request) else ANSWER


class FaultRuns:
    """One provider and one process that forks, for all scripts of a module; `start` them, then ask for `outcome`.

    command      "run": one turn with every event as JSON; "loop": one turn in the chat through a pipe, then another
                 in the same session with a model that works
    is_separate  each in a process that a shell would start, instead of one that is forked
    """

    def __init__(
        self, folder: Path, command: str, *, cases: Mapping[str, Case] = CASES, is_separate: bool = False
    ) -> None:
        self._folder = folder
        self._command = command
        self._cases = cases
        self._provider = Provider(answered, faults={name: case.run for name, case in cases.items()}, models=("plain",))
        self._run_nca: Callable[..., subprocess.CompletedProcess[str]] = nca if is_separate else forked
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._outcomes: dict[str, Future[Outcome]] = {}

    def __enter__(self) -> Self:
        self._talk = self._folder / "talk"
        self._session = write_talk(self._talk)
        self._provider.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._provider.__exit__(kind, error, trace)

    def start(self, names: Iterable[str]) -> None:
        """Run these, in the background."""
        for name in names:
            self._outcomes[name] = self._pool.submit(self._run, name)

    def outcome(self, name: str) -> Outcome:
        if name not in self._outcomes:
            self.start([name])
        return self._outcomes[name].result()

    def _run(self, name: str) -> Outcome:
        fault = self._cases[name]
        home = self._folder / name
        work = home / "work"
        work.mkdir(parents=True)
        (work / "a").write_text(TEXT_A)
        (work / "b").write_text(TEXT_B)
        if fault.needs_talk:
            shutil.copytree(self._talk / "nca", home / "nca")

        def run(arguments: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
            return self._run_nca(
                *arguments,
                home=home,
                cwd=work,
                stdin=stdin,
                OPENAI_API_KEY="key",
                OPENAI_API_BASE=self._provider.url,
                **{f"NCA_{key.replace('.', '__').upper()}": value for key, value in fault.settings.items()},
            )

        is_chat = self._command == "loop"
        done = run(self._arguments(name, fault), f"{question(name)}\n" if is_chat else "")
        runs = [done]
        if is_chat:
            again = ["--resume", self._session] if fault.needs_talk else ["--continue"]
            runs.append(run(["loop", "--model", "openai/plain", *again], f"Thank you, {name}.\n"))
            assert runs[-1].returncode == 0, runs[-1].stderr
        entries, compactions = self._stored(home, fault)
        return Outcome(
            done.returncode,
            "".join(one.stdout for one in runs),
            "".join(one.stderr for one in runs),
            [request for request in self._provider.requests if _is_of(request, name)],
            [request for request in self._provider.overflows if _is_of(request, name)],
            entries,
            compactions,
        )

    def _arguments(self, name: str, fault: Case) -> list[str]:
        model = ["--model", f"openai/{name}"]
        if self._command == "run":
            session = ["--session", self._session] if fault.needs_talk else []
            return ["run", question(name), "--stream", "ndjson", *model, *session]
        return ["loop", *model, *(["--resume", self._session] if fault.needs_talk else [])]

    def _stored(self, home: Path, fault: Case) -> tuple[list[Entry], int]:
        with Store.open(database(home), read_only=True) as store:
            (info,) = store.list()
            with store.open_session(info.id, read_only=True) as session:
                return session.log.entries()[2 * TALK_TURNS * fault.needs_talk :], len(session.views.compactions())


def database(home: Path) -> Path:
    return data_dir({"NCA_HOME": str(home / "nca")}) / "sessions.db"


def write_talk(home: Path) -> str:
    """A session of some 8,000 tokens in a store of its own; its id."""
    with Store.open(database(home)) as store, store.create(directory=str(home), model="openai/any") as session:
        for number in range(TALK_TURNS):
            asked = f"Question {number}: how is part {number} of it made, and what must never change in it?"
            told = prose({"messages": [{"role": "user", "content": asked}]}).text
            session.log.append([Message("user", asked), Message("assistant", told)])
        return session.info.id


def _is_of(request: dict[str, Any], name: str) -> bool:
    """Whether a request is of this script's command, also with the model that works."""
    model = request.get("model")
    return model == name or (model == "plain" and f"Thank you, {name}." in str(request["messages"][-1].get("content")))


def came_out(fault: Case, outcome: Outcome) -> list[str]:
    """Where a turn did not come out as its script says, one line each."""
    results = [entry.message.text for entry in outcome.entries if entry.message.role == "tool"]
    asked = [request for request in outcome.requests if request["model"] != "plain"]
    wanted: list[tuple[str, object, object]] = [
        ("the exit code", outcome.exit_code, fault.exit_code),
        ("requests", len(asked), fault.requests),
        ("compactions", outcome.compactions, fault.compactions),
        ("rows", outcome.rows[: len(fault.stored)], fault.stored),
        ("results", len(results), len(fault.results)),
    ]
    problems = [f"{name}: {is_} and not {should}" for name, is_, should in wanted if is_ != should]
    problems += [
        f"no {text!r} in {result!r}" for text, result in zip(fault.results, results, strict=False) if text not in result
    ]
    if fault.says.lower() not in outcome.said.lower():
        problems.append(f"{fault.says!r} was not said: {outcome.said!r}")
    sizes = [_size(request) for request in outcome.refused if request.get("tools")]
    if sizes != sorted(sizes, reverse=True) or len(set(sizes)) < len(sizes):
        problems.append(f"refused requests did not get smaller: {sizes}")
    return problems


def _size(request: dict[str, Any]) -> int:
    return count_request_tokens(request["messages"], request["tools"]) + int(request.get("max_tokens") or 0)
