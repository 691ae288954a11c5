"""The library in a process without what Windows does not have: modules, and names of `os` and `signal`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nca

ELSEWHERE = ("Conversation", "Store")
"""The chat, and sessions on disk."""

BARE = """
import asyncio, os, signal, subprocess, sys, tempfile, uuid  # the standard library differs by itself there

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refused())
for module, names in (
    (os, "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG fchmod fchown fork getegid geteuid getgid getuid killpg"
         " mkfifo pread pwrite posix_spawn register_at_fork sched_getaffinity setsid statvfs uname wait4"),
    (signal, "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGTSTP SIGUSR1 SIGWINCH pthread_sigmask setitimer"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
import nca
"""

USE = """
from pathlib import Path
names = [name for name in nca.__all__ if name not in sys.argv[2:]]
assert all(getattr(nca, name) for name in names)
log = [{"role": ("user", "assistant")[n % 2], "content": f"zebra{n} " + "why " * 300} for n in range(41)]
view = nca.ContextView(context_window=6_000)
fitted = view.fit(log)
assert fitted.compacted and "zebra0" in view.recall(expand="1") and "[8]" in view.recall(query="zebra7")
assert nca.ContextView(context_window=6_000, state=view.state).fit(log).messages == fitted.messages
assert nca.compact(log, context_window=6_000).compacted
assert not nca.check_context_budget(log, context_window=6_000).within_budget
assert nca.validate_request(nca.repair_tool_pairs(log).messages, "openai") == []
cut = nca.truncate_tool_output("line\\n" * 9_000, save_to=Path(sys.argv[1]))
assert Path(cut.saved_path).read_text() == "line\\n" * 9_000
assert nca.Summarization(lambda _: "They asked why.", 4, 0).compact(log)
try:
    nca.Store.open(Path(sys.argv[1]) / "sessions.db")
except nca.StoreError as error:
    print(error)
"""


def test_the_library_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BARE + USE, str(tmp_path), *ELSEWHERE]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Sessions on disk need Linux or macOS"), ran.stdout


def test_the_process_really_lacks_them() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BARE + "\nnca.Conversation"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, "the chat works on Windows: it no longer belongs into ELSEWHERE"
    assert set(ELSEWHERE) < set(nca.__all__)
