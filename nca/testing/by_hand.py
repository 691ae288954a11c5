"""A model played by hand: each request is written to a file, and the answer is read from the file beside it.

    python -m nca.testing.by_hand FOLDER --window 12000

The player reads `0001.request.json` (the messages and tools that a real provider would get) and writes
`0001.answer.txt` with a text, or `0001.answer.json`:

    {"text": "I'll look.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}

A request that is larger than the window gets the error that OpenAI would send. docs/playing.md says how to record a
session.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nca.testing.provider import Provider
from nca.testing.scripted import Answer

MODEL = "by-hand"
POLL_SECONDS = 0.2
"""An answer is taken when two looks at its file, this far apart, read the same."""
_NAMES = ("messages", "tools", "max_tokens", "max_completion_tokens")
_SHAPE = '{"text": "...", "tool_calls": [{"name": "...", "arguments": {}}]}'

Say = Callable[[str], None]
"""Takes each line about what happened."""


class InvalidAnswer(ValueError):
    """An answer file is not in the form that this module reads."""


class ByHand(Provider):
    """A provider on loopback that waits for somebody to write its answers.

    folder          where requests and answers are; numbering continues after the existing requests
    window_tokens   context window; a larger request gets OpenAI's overflow error. 0: no limit
    say             called with the name of each request file, with the fault of an answer, and with refusals

    A client that gives up and sends its request again gets the answer to it: the newest request has one number.
    """

    def __init__(self, folder: Path, *, window_tokens: int, port: int = 0, say: Say = lambda line: None) -> None:
        super().__init__(self._ask, window_tokens=window_tokens, models=(MODEL,), port=port)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._say = say
        self._numbering = threading.Lock()
        self._newest = ""
        self._count = max((int(path.name[:4]) for path in folder.glob("[0-9][0-9][0-9][0-9].request.json")), default=0)

    def overflow(self, request: dict[str, Any]) -> str:
        """OpenAI's error message if the request exceeds the window, otherwise ""."""
        if sentence := super().overflow(request):
            self._say(f"refused: {sentence}")
        return sentence

    def environment(self) -> dict[str, str]:
        """nca's environment for this provider, with time for a person to answer."""
        needed = {"OPENAI_API_BASE": self.url, "OPENAI_API_KEY": MODEL, "NCA_MODEL__NAME": f"openai/{MODEL}"}
        if self.window_tokens:
            needed["NCA_MODEL__CONTEXT_WINDOW"] = str(self.window_tokens)
        return needed | {
            "NCA_MODEL__FIRST_TOKEN_SECONDS": "3600",
            "NCA_MODEL__TOTAL_SECONDS": "86400",
            "NCA_CONTEXT__SUMMARIZE__DEADLINE_SECONDS": "3600",
        }

    def _ask(self, request: dict[str, Any]) -> Answer:
        """Write the request, and wait for its answer."""
        text = json.dumps({name: request[name] for name in _NAMES if name in request}, indent=1, ensure_ascii=False)
        with self._numbering:
            if text != self._newest:
                self._newest, self._count = text, self._count + 1
            number = self._count
        path = self._folder / f"{number:04}.request.json"
        path.write_text(text + "\n", encoding="utf-8")
        self._say(path.name)
        return self._wait(number)

    def _wait(self, number: int) -> Answer:
        paths = [self._folder / f"{number:04}.answer.{kind}" for kind in ("json", "txt")]
        before, complained = "", ""
        while not self.closing.wait(POLL_SECONDS):
            path = next((path for path in paths if path.is_file()), None)
            content = path.read_text(encoding="utf-8", errors="replace") if path else ""
            if path and content.strip() and content == before != complained:
                try:
                    return read_answer(content) if path.suffix == ".json" else Answer(text=content.rstrip("\n"))
                except InvalidAnswer as error:
                    self._say(f"{path.name}: {error}")
                    complained = content
            before = content
        return Answer(text="(The provider was stopped before this was answered.)")


def read_answer(content: str) -> Answer:
    """Read the content of an answer file. Raises InvalidAnswer, with one line that says what is valid."""
    try:
        given = json.loads(content)
    except ValueError as error:
        raise InvalidAnswer(f"not valid JSON ({error}); write {_SHAPE}") from None
    if not isinstance(given, dict) or not given or set(given) - {"text", "tool_calls", "reasoning"}:
        raise InvalidAnswer(f"write {_SHAPE}")
    text, reasoning = given.get("text") or "", given.get("reasoning") or ""
    calls = [] if given.get("tool_calls") is None else given["tool_calls"]
    if not (isinstance(text, str) and isinstance(reasoning, str) and isinstance(calls, list)):
        raise InvalidAnswer(f"text is a string and tool_calls a list; write {_SHAPE}")
    return Answer(text=text, reasoning=reasoning, tool_calls=[_read_call(call) for call in calls])


def _read_call(call: object) -> tuple[str, dict[str, Any] | str]:
    name = call.get("name") if isinstance(call, dict) else None
    arguments = call.get("arguments", {}) if isinstance(call, dict) else None
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        raise InvalidAnswer(f"a tool call has a name and arguments (an object, or a string of JSON); write {_SHAPE}")
    # Only then is what the log keeps the text that was written: JSON escapes would hide words that are not English.
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. Prints the environment to set, then the name of each request file."""
    parser = argparse.ArgumentParser(
        prog="python -m nca.testing.by_hand", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="for the request and answer files")
    parser.add_argument("--window", type=int, default=12_000, help="context window in tokens; 0: no limit")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    options = parser.parse_args(arguments)
    provider = ByHand(options.folder, window_tokens=options.window, port=options.port, say=_print)
    try:
        with provider:
            for name, value in provider.environment().items():
                _print(f"export {name}={value}")
            threading.Event().wait()
    except KeyboardInterrupt:
        return


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
