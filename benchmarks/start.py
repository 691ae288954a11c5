"""Measure the start of nca beside the least that any similar program costs: python -m benchmarks.start

Each figure is a ratio of two programs run in turn, so that whatever else the machine does falls on both. The median is
shown, and the least, which noise cannot lower.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nca.testing.provider import Provider

RUNS = 15
PROMPT, TOOLBAR = "›".encode(), "░".encode()
BARE_IMPORT = "import typer, prompt_toolkit, rich"
SCRIPT = "import sys; sys.argv[0] = 'nca'; from nca.cli.app import main; sys.exit(main())"
"""What an installed `nca` is."""
NCA = (sys.executable, "-P", "-c", SCRIPT)
BARE_TYPER = """
    import typer

    app = typer.Typer(add_completion=False)
    for group in range({groups}):
        inner = typer.Typer()
        inner.command("one")(lambda: None)
        app.add_typer(inner, name=f"group{{group}}", help="Several commands.")
    for command in range({commands}):
        app.command(f"command{{command}}", help="One command.")(lambda: None)
    app()
"""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seconds of nca and of what it is held against; `limit` is the goal for `median`."""

    ours: Sequence[float]
    theirs: Sequence[float]
    limit: float

    @property
    def median(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def least(self) -> float:
        return min(self.ours) / min(self.theirs)

    def __str__(self) -> str:
        ours, theirs = statistics.median(self.ours) * 1e3, statistics.median(self.theirs) * 1e3
        return f"{self.median:.2f} × (least {self.least:.2f}, goal {self.limit}): {ours:.0f} ms to {theirs:.0f} ms"


class Start:
    """Starts of nca with a home of their own, where a model is set and nothing has to be looked for."""

    def __init__(self, home: Path) -> None:
        self._directory = home
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        self._env = {
            **kept,
            **{"HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            **{"OPENAI_API_KEY": "k", "NCA_MODEL__NAME": "openai/any"},
        }
        root = str(Path(__file__).parents[1])
        self._env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, self._env.get("PYTHONPATH"))))

    def prompt(self, runs: int) -> Ratio:
        """From nothing to the prompt on the screen, beside a process that imports what nca draws and parses with."""
        bare = (sys.executable, "-P", "-c", f"{BARE_IMPORT}; print('›')")
        return alternating(lambda: self._until(NCA)[0], lambda: self._until(bare)[0], runs=runs, limit=1.15)

    def version(self, runs: int) -> Ratio:
        bare = (sys.executable, "-P", "-c", "pass")
        return alternating(
            lambda: self._whole((*NCA, "--version")), lambda: self._whole(bare), runs=3 * runs, limit=2.0
        )

    def help(self, runs: int) -> Ratio:
        from nca.cli.commands import build

        commands = build().commands.values()
        groups = sum(hasattr(command, "commands") for command in commands)
        source = BARE_TYPER.format(groups=groups, commands=len(commands) - groups)
        bare = (sys.executable, "-P", "-c", textwrap.dedent(source), "--help")
        return alternating(lambda: self._whole((*NCA, "--help")), lambda: self._whole(bare), runs=runs, limit=1.2)

    def memory(self, sign: bytes = PROMPT, runs: int = 5) -> float:
        """MiB resident when the prompt has just been drawn; with the toolbar for a sign, when the conversation behind
        it is open, and litellm not yet begun with. The median.
        """
        return statistics.median(self._until(NCA, sign)[1] for _ in range(runs))

    def cpu(self, runs: int = 5) -> float:
        """CPU seconds of `nca run` until an endpoint on loopback has answered; the least, which noise cannot lower."""
        with Provider(lambda _: "Hello.") as endpoint:
            env = {**self._env, "OPENAI_API_BASE": endpoint.url}
            return min(self._cpu((*NCA, "run", "hello"), env) for _ in range(runs))

    def _cpu(self, command: Sequence[str], env: Mapping[str, str]) -> float:
        process = os.posix_spawn(command[0], command, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
        _, status, used = os.wait4(process, 0)
        assert status == 0, f"{command} failed"
        return used.ru_utime + used.ru_stime

    def _whole(self, command: Sequence[str]) -> float:
        started = time.perf_counter()
        subprocess.run(command, env=self._env, cwd=self._directory, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    def _until(self, command: Sequence[str], sign: bytes = PROMPT) -> tuple[float, float]:
        """Seconds until the sign is on the screen, and MiB then."""
        started = time.perf_counter()
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self._directory)
            os.execve(command[0], command, self._env)
        seen = b""
        try:
            while sign not in seen:
                seen += os.read(terminal, 65_536)
            return time.perf_counter() - started, _resident(process)
        except OSError as error:
            raise RuntimeError(f"{command} ended without a prompt: {seen.decode(errors='replace')}") from error
        finally:
            os.kill(process, 9)
            os.close(terminal)
            os.waitpid(process, 0)


def alternating(ours: Callable[[], float], theirs: Callable[[], float], *, runs: int, limit: float) -> Ratio:
    """Both in turn; the first of each, which fills the caches, does not count."""
    pairs = [(ours(), theirs()) for _ in range(runs + 1)][1:]
    return Ratio([pair[0] for pair in pairs], [pair[1] for pair in pairs], limit)


def _resident(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0  # where there is no /proc
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        start = Start(Path(home))
        print(f"prompt beside '{BARE_IMPORT}': {start.prompt(RUNS)}", flush=True)
        print(f"nca --version beside python -c pass: {start.version(RUNS)}", flush=True)
        print(f"nca --help beside a bare Typer app: {start.help(RUNS)}", flush=True)
        print(f"CPU seconds of nca run: {start.cpu():.2f} (goal 1.5)", flush=True)
        print(f"memory at the prompt: {start.memory():.1f} MiB (goal 45)", flush=True)
        print(f"memory with the conversation open: {start.memory(TOOLBAR):.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
