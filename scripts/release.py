"""Build the wheel and the source distribution, and try each alone in a fresh environment.

    python scripts/release.py [PYTHON ...]

Each is installed with every interpreter named (default: this one), and then has to print its version, compact a
conversation and answer a question in a chat, over HTTP from the provider that it ships. Nothing is uploaded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SMOKE = """
import os, subprocess, sys, tempfile
import nca
from nca.testing.provider import Provider
from nca.testing.scripted import in_order

rows = [{"role": role, "content": f"{number} words " * 200} for number in range(40) for role in ("user", "assistant")]
assert nca.compact(rows, context_window=8_000).compacted
with Provider(in_order("It works.")) as provider, tempfile.TemporaryDirectory() as home:
    env = {**os.environ, "HOME": home, "NCA_HOME": home, "OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "k"}
    command = [sys.executable, "-m", "nca", "run", "-m", "openai/test", "Does it work?"]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=True)
assert done.stdout == "It works.\\n", done
print(nca.__version__)
"""


def main() -> int:
    version = re.findall(r'__version__ = "([^"]+)"', (ROOT / "nca" / "__init__.py").read_text(encoding="utf-8"))[0]
    if f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        print(f"CHANGELOG.md has no section [{version}].", file=sys.stderr)
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel")
    for python in sys.argv[1:] or [sys.executable]:
        for archive in sorted(DIST.iterdir()):
            with tempfile.TemporaryDirectory() as folder:
                run(python, "-m", "venv", folder)
                inside = f"{folder}/bin/python"
                run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(archive))
                # Somewhere else, or Python would import the folder that it starts in.
                installed = run(inside, "-c", SMOKE, cwd=folder).strip()
                named = run(f"{folder}/bin/nca", "--version", cwd=folder).strip()
            if installed != version or named != f"nca {version}":
                print(f"{archive.name} has the version {installed}, its command says {named!r}.", file=sys.stderr)
                return 1
            print(f"{archive.name} works with {run(python, '--version').strip()}.", flush=True)
    return 0


def run(*command: str, cwd: Path | str = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
