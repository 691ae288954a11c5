"""Set up the environment of a clone: what nca needs to run, or everything for its checks too.

    python3 scripts/set_up.py VENV run | all

Packages come by hash from the lock files, with uv where there is one, else with several pips at once. `run` takes the
embedded model's runtime only where no model is configured, and downloads its weights meanwhile. One line moves while
it works. This runs before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN_LOCK, LOCK = ROOT / "requirements-run.lock", ROOT / "requirements.lock"
RUNTIME = "xllamacpp"
"""The embedded model's runtime, 100 MB."""
QUIET = ("--disable-pip-version-check", "--no-input")
PIPS = 6
"""One pip asks for one file after another: an index that answers in half a second takes minutes for 96 packages."""
FETCH_WEIGHTS = """
import signal, sys
signal.signal(signal.SIGTERM, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from nca.models.embedded import weights
weights.get("", progress=lambda now: print(now.stage, now.done_bytes, now.total_bytes, flush=True))
"""
"""These modules need the standard library alone, so another process can run them before the packages are here."""
MEGABYTE = 1_000_000
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_SECONDS = 0.1


class Progress:
    """One line that moves until the block ends: what is done, and for how long. Without a terminal, a line a minute."""

    def __init__(self, total: int) -> None:
        self.seen: set[str] = set()
        self.is_unpacking = False
        self.is_installed = False
        self.weights = ""
        self._total = total
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _draw(self) -> None:
        started, frame = time.monotonic(), 0
        moves = sys.stderr.isatty()
        while not self._is_over.wait(FRAME_SECONDS if moves else 60):
            seconds = time.monotonic() - started
            found = f"{min(len(self.seen), self._total)} of {self._total} packages" if self.seen else "preparing"
            done = f"unpacking {self._total} packages" if self.is_unpacking else found
            if self.is_installed:
                done = f"{self._total} packages installed"
            line = f"{FRAMES[frame % len(FRAMES)]} Setting up: {done}{self.weights}, {seconds:.0f} s"
            print(f"\r{line}\x1b[K" if moves else line, end="" if moves else "\n", file=sys.stderr, flush=True)
            frame += 1
        if moves:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def main() -> int:
    venv, wanted = Path(sys.argv[1]), sys.argv[2]
    mark = venv / f".{wanted}"
    locks = [LOCK] if wanted == "all" else [RUN_LOCK]
    lines = "\n".join(lock.read_text(encoding="utf-8") for lock in locks)
    is_embedded = wanted == "run" and not has_model()
    if is_embedded:
        lines += entry(RUNTIME)
    total = len(re.findall(r"(?m)^[\w.-]+==", lines))
    size = "400 MB" if wanted == "all" else "300 MB"
    print(f"Setting up {venv} ({total} packages, {size}; once, a minute or two) ...", file=sys.stderr, flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(total) as progress,
        weights(progress) if is_embedded else nullcontext(),
    ):
        uv = shutil.which("uv")
        python = str(venv / "bin" / "python")
        if uv:
            lock = Path(folder) / "requirements.txt"
            lock.write_text(lines, encoding="utf-8")
            run(progress, [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(venv)])
            install = [uv, "pip", "install", "--python", python]
            run(progress, [*install, "--require-hashes", "--requirement", str(lock)])
        else:
            run(progress, [sys.executable, "-m", "venv", str(venv)])
            # What is imported is compiled then; to compile all of it now takes as long as to unpack it.
            install = [python, "-m", "pip", "install", "--no-compile", *QUIET]
            run(progress, [*install, "--no-deps", *download(progress, python, lines, Path(folder))])
        run(progress, [*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    mark.touch()
    if wanted == "all":
        (venv / ".run").touch()
    return 0


def has_model() -> bool:
    """Whether a provider or a settings file is named, so that the embedded model is hardly wanted."""
    home = Path(os.environ.get("NCA_HOME") or Path.home() / ".config" / "nca")
    names = {name for name in os.environ if name.endswith("_API_KEY") or name.startswith("NCA_MODEL")}
    return bool(names) or "OPENAI_API_BASE" in os.environ or (home / "config.toml").exists()


@contextmanager
def weights(progress: Progress) -> Iterator[None]:
    """Download the embedded model's weights during the block, and wait for them at its end.

    Where that fails, the chat tries again and says why.
    """
    command = [sys.executable, "-P", "-c", FETCH_WEIGHTS, str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        reader = threading.Thread(target=count_weights, args=(process, progress))
        reader.start()
        try:
            yield
            progress.is_installed = True
            process.wait()
        finally:
            process.terminate()
            reader.join()


def count_weights(process: subprocess.Popen[str], progress: Progress) -> None:
    for line in process.stdout or ():
        stage, *sizes = line.split()
        done, total = (int(word) // MEGABYTE for word in sizes)
        progress.weights = f", model: {stage} {done:,} of {total:,} MB"


def download(progress: Progress, python: str, lines: str, folder: Path) -> list[str]:
    """The files of the packages that a lock names, each checked by its hash. Several pips fetch a part each."""
    entries = re.findall(r"(?m)^\S.*(?:\n .*)*", lines)
    commands = []
    for number, part in enumerate(entries[start::PIPS] for start in range(min(PIPS, len(entries)))):
        lock = folder / f"requirements-{number}.txt"
        lock.write_text("\n".join(part), encoding="utf-8")
        command = [python, "-m", "pip", "download", *QUIET, "--no-deps", "--require-hashes", "--requirement", str(lock)]
        commands.append([*command, "--dest", str(folder / "packages")])
    run(progress, *commands)
    return sorted(map(str, (folder / "packages").iterdir()))


def entry(package: str) -> str:
    """The lines of one package in the lock file of everything."""
    found = re.search(rf"(?m)^{package}==(?:.*\\\n)*.*\n?", LOCK.read_text(encoding="utf-8"))
    return found[0] if found else ""


def run(progress: Progress, *commands: list[str]) -> None:
    """Run commands at once and count the packages that they name.

    The first that fails ends the others, and its last lines are the error.
    """
    failed: list[str] = []
    with ThreadPoolExecutor(len(commands)) as pool:
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
            for command in commands
        ]

        def follow(process: subprocess.Popen[str], command: list[str]) -> None:
            lines: list[str] = []
            with process:
                for line in process.stdout or ():
                    lines.append(line.rstrip())
                    if found := re.match(r"\s*(?:Collecting|\+) ([\w.-]+)", line):
                        progress.seen.add(found[1])
                    progress.is_unpacking |= line.startswith(("Processing", "Prepared "))
            if process.returncode and not failed:
                failed.extend(["", *lines[-12:], f"{' '.join(command)} failed."])
                for other in started:
                    other.terminate()

        try:
            list(pool.map(follow, started, commands))
        finally:
            for process in started:
                process.terminate()
    if failed:
        print("\n".join(failed), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("The set-up was stopped; the same command continues it.")
