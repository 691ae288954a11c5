"""Start and stop the child process that runs llama.cpp's server, and explain why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nca import process_groups
from nca.errors import ModelUnavailable
from nca.humanize import one_line
from nca.models.embedded.known import KnownModel, runtime_command

CHILD = Path(__file__).with_name("child.py")
_STOP_SECONDS = 3.0
_LOG_CHARS = 200

_LOAD = (
    "The embedded model could not be loaded",
    "Download the weights again (nca models get), or lower model.context_window.",
)
_FAILURES = {
    "libgomp": (
        "The embedded model's runtime needs libgomp.so.1, which this system does not have.",
        "Install the system's libgomp (Debian and Ubuntu: apt install libgomp1; "
        "Fedora: dnf install libgomp), then try again.",
    ),
    "runtime": ("The embedded model's runtime is not installed", f"Install it: {runtime_command()}"),
}
"""By the kind that the child tells: what happened, and what to do; `_LOAD` for any other."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server for an OpenAI client, and its key."""

    api_base: str
    api_key: str = field(repr=False)


class EmbeddedServer:
    """One model in one child process, which ends with `stop` or with this process.

    log_path: the log of llama.cpp, overwritten at each start.
    """

    def __init__(self, model: KnownModel, weights: Path, *, window_tokens: int, log_path: Path) -> None:
        self.model = model
        self._weights = weights
        self._window_tokens = window_tokens
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> Address:
        """Load the model, which takes a second or two. Cancelling ends the child process. Raises ModelUnavailable."""
        self.stop()
        api_key = secrets.token_urlsafe(24)
        process = self._process = self._spawn()
        process_groups.began(process.pid)
        try:
            line = await asyncio.to_thread(_converse, process, self._parameters(api_key))
        except asyncio.CancelledError:
            self.stop()
            raise
        fact: dict[str, str] = json.loads(line) if line.strip() else {}
        if "url" not in fact:
            error = self._explain(fact)
            self.stop()
            raise error
        return Address(api_base=f"{fact['url']}/v1", api_key=api_key)

    def stop(self) -> None:
        """Kill the child process, which has nothing to save. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        process_groups.ended(process.pid)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # the child process has already ended
                    pipe.close()

    def how_it_ended(self) -> str:
        """Why the child process ended, in one line; "" while it runs."""
        code = self._process.poll() if self._process else None
        if code is None:
            return ""
        if code == -signal.SIGKILL:
            return "it was killed, most likely because memory ran out"
        return f"it {process_groups.how_ended(code)}{self._last_words() if code > 0 else ''}"

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and a fixed command
                [sys.executable, "-P", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_without_keys(os.environ),
                # The working directory may be deleted during the chat.
                cwd=CHILD.parent,
                # nca handles Ctrl-C and Ctrl-Z.
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailable(f"The embedded model's process cannot be started: {error}.") from error

    def _parameters(self, api_key: str) -> bytes:
        template = CHILD.with_name(self.model.template).read_text(encoding="utf-8") if self.model.template else ""
        parameters = {
            "model_path": str(self._weights),
            "alias": self.model.name,
            "template": template,
            "window_tokens": self._window_tokens,
            "temperature": self.model.temperature,
            "loop_penalty": self.model.loop_penalty,
            "api_key": api_key,
            "log_path": str(self._log_path),
        }
        return json.dumps(parameters).encode() + b"\n"

    def _explain(self, fact: Mapping[str, str]) -> ModelUnavailable:
        """Why the child process did not start: its own message, or how it ended."""
        if not fact and self._process is not None:
            _wait_for_end(self._process)
        kind, said = fact.get("kind", "load"), fact.get("error") or self.how_it_ended()
        what, advice = _FAILURES.get(kind, _LOAD)
        detail = "" if kind == "libgomp" else f": {one_line(said, _LOG_CHARS)}{self._last_words()}."
        return ModelUnavailable(f"{what}{detail}", advice=advice)

    def _last_words(self) -> str:
        """The last line of the log, in brackets, or ""."""
        try:
            lines = self._log_path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return f" ({one_line(said[-1], _LOG_CHARS)})" if said else ""


def _converse(process: subprocess.Popen[bytes], parameters: bytes) -> bytes:
    """Send the parameters and wait for the answer line; b"" if the child process ended."""
    if process.stdin is None or process.stdout is None:
        return b""
    try:
        process.stdin.write(parameters)
        process.stdin.flush()
        return process.stdout.readline()
    except (OSError, ValueError):
        return b""


def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _without_keys(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without secrets, which native code that reads untrusted text does not need."""
    secret = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    return {name: value for name, value in env.items() if not any(word in name.upper() for word in secret)}
