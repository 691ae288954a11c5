"""Install the public MCP reference servers for the tests. If that is not possible, say why; the tests are then skipped.

usage: test_mcp_servers.py DIRECTORY

By npm, from tests/data/mcp-servers/package-lock.json: every package by its hash, none of their scripts run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

WANTED = Path(__file__).parents[1] / "tests" / "data" / "mcp-servers"
FILES = ("package.json", "package-lock.json")
SECONDS = 90
COMMAND = (
    *("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"),
    *("--loglevel=error", "--fetch-retries=0", "--fetch-timeout=20000"),
)


def main(directory: Path) -> int:
    if is_current(directory):
        return 0
    if problem := install(directory):
        print(f"The tests of the public MCP servers will be skipped: {problem}", file=sys.stderr)
        return 0
    print(f"MCP reference servers: {directory}")
    return 0


def is_current(directory: Path) -> bool:
    """The lock file is copied last, so one that is the same stands beside a whole installation."""
    return all(_text(directory / "installed" / name) == _text(WANTED / name) for name in FILES)


def install(directory: Path) -> str:
    """Why not, in one line; "" where it has worked."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "there is no node and npm here"
    directory.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(WANTED / name, directory / name)
    try:
        done = subprocess.run(
            [npm, *COMMAND],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"npm took more than {SECONDS} seconds"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        return lines[0] if lines else f"npm ended with exit code {done.returncode}"
    (directory / "installed").mkdir(exist_ok=True)
    for name in FILES:
        shutil.copyfile(WANTED / name, directory / "installed" / name)
    return ""


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
