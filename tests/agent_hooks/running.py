"""The server of the hooks as a process, asked over its socket and by the program that agents run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nca.agent_hooks import client
from nca.agent_hooks.agents import AGENTS
from nca.agent_hooks.server import Line, Log

LOOK_SECONDS = 0.02


class Running:
    """A person's home directory with the server for it."""

    def __init__(self, home: Path, agent: str = "claude") -> None:
        self.home, self.agent = home, AGENTS[agent]
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
        self.folder = home / ".cache" / "nca" / "hooks"
        self.agent_home = self.agent.home(self.env)

    @contextmanager
    def server(self) -> Iterator[subprocess.Popen[bytes]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = [sys.executable, "-m", "nca", "hooks", "serve", str(self.folder)]
        with subprocess.Popen(program, env=self.env, stdin=subprocess.DEVNULL) as process:
            try:
                until(self.is_listening)
                yield process
            finally:
                process.kill()

    def is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            return one.connect_ex(str(self.folder / client.SOCKET)) == 0

    def ask(self, event: Mapping[str, Any], *, home: Path | None = None, takes: bool = True) -> str:
        """What an agent is told in answer to an event, without the deadline of the real program; "" for nothing."""
        answer = self.answer(json.dumps(event).encode(), home=home, takes=takes)
        told = json.loads(answer)["hookSpecificOutput"] if answer else {}
        assert not answer or set(told) == {"hookEventName", "additionalContext"}
        assert not answer or told["hookEventName"] == event["hook_event_name"]
        return str(told.get("additionalContext", ""))

    def answer(self, raw: bytes, *, home: Path | None = None, takes: bool = True) -> bytes:
        """What comes back for the bytes of an event."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            one.connect(str(self.folder / client.SOCKET))
            one.sendall(f"{self.agent.name}\t{home or self.agent_home}\t{len(raw)}\n".encode() + raw)
            answer = b"".join(iter(lambda: one.recv(65536), b""))
            if answer and takes:
                one.sendall(b"7")
        return answer

    def ask_until(self, event: Mapping[str, Any]) -> str:
        """The same, asked again while nothing is ready."""
        return str(until(lambda: self.ask(event)))

    def run(self, command: str, event: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        """The command line of the hook, as the agent runs it."""
        given = json.dumps(event)
        shell = ["/bin/sh", "-c", command]
        return subprocess.run(shell, input=given, env=self.env, capture_output=True, text=True, check=True)

    def log(self) -> list[Line]:
        return Log(self.folder).lines()


def until(found: Callable[[], Any]) -> Any:
    """What this gives when it is true at last; the test's own time limit ends it."""
    while not (value := found()):
        time.sleep(LOOK_SECONDS)
    return value
