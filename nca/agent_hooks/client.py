"""The program that an agent's hook runs: it hands what the agent says to `nca hooks serve` and prints the answer.

    python -I -S client.py FOLDER AGENT HOME

Most of its time is the start of Python, so it imports nothing of nca and only modules that are built in. Whatever goes
wrong, it prints nothing and succeeds: an agent must never wait for nca, nor stop because of it.
"""

import os
import sys
import time
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket
from select import select

PATIENCE_SECONDS = 0.08
"""From the start of this program; with the start of Python, 0.015 seconds, an agent waits 0.1 seconds at most."""
MOST_BYTES = 4 * 1024 * 1024
HANDED_ON_BYTES = 48 * 1024
"""A pipe holds so much while nobody reads it."""
STARTING_SECONDS = 10.0
SOCKET, STARTING, ERRORS, LOG = "socket", "starting", "errors.txt", "log.jsonl"


def main(folder: str, agent: str, home: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    event = _event(end)
    if not event:
        return
    sent = f"{agent}\t{home}\t{len(event)}\n".encode() + event
    try:
        # The path of a socket may have 100 characters, and nobody can put a module named nca into this folder.
        os.chdir(folder)
    except FileNotFoundError:
        os.makedirs(folder, 0o700)  # noqa: PTH103  pathlib takes longer to import than all else here
        os.chdir(folder)
    server = socket(AF_UNIX, SOCK_STREAM)
    server.settimeout(_left(end))
    try:
        server.connect(SOCKET)
    except (FileNotFoundError, ConnectionRefusedError):
        _start(sent)
        return
    _talk(server, sent, end)


def _talk(server: socket, sent: bytes, end: float) -> None:
    """Print the answer, and tell the server that it was taken."""
    began = time.monotonic()
    server.sendall(sent)
    answer = b""
    while True:
        server.settimeout(_left(end))
        piece = server.recv(65536)
        if not piece:
            break
        answer += piece
    if answer:
        os.write(1, answer)
        server.sendall(b"%d" % round(1000 * (time.monotonic() - began)))
        server.shutdown(SHUT_WR)


def _event(end: float) -> bytes:
    """The object that the agent writes to standard input."""
    event = b""
    while len(event) <= MOST_BYTES and select([0], [], [], _left(end))[0]:
        piece = os.read(0, 65536)
        if not piece:
            return event
        event += piece
    return b""


def _left(end: float) -> float:
    return max(0.001, end - time.monotonic())


def _start(sent: bytes) -> None:
    """Start the server, which answers this event too late but knows of it then. Nobody waits for it."""
    try:
        os.close(os.open(STARTING, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if time.time() - os.stat(STARTING).st_mtime < STARTING_SECONDS:  # noqa: PTH116
            return
        os.utime(STARTING)
    if os.fork():
        return
    try:
        os.setsid()
        reader, writer = os.pipe()
        if len(sent) <= HANDED_ON_BYTES:
            os.write(writer, sent)
        os.dup2(reader, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(ERRORS, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), 2)
        os.closerange(3, 256)
        os.execv(sys.executable, [sys.executable, "-P", "-m", "nca", "hooks", "serve", os.getcwd()])  # noqa: PTH109, S606
    finally:
        os._exit(0)


def _note(folder: str, agent: str, error: OSError) -> None:
    """Add a line to the log, as `nca.agent_hooks.server` reads it."""
    why = (
        "nca had no answer in time" if isinstance(error, TimeoutError) else f"nca was not reached: error {error.errno}"
    )
    line = f'{{"at":{time.time():.3f},"agent":"{agent}","problem":"{why}"}}\n'
    handle = os.open(f"{folder}/{LOG}", os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    os.write(handle, line.encode())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except OSError as problem:
        _note(sys.argv[1], sys.argv[2], problem)
    finally:
        os._exit(0)
