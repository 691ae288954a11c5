"""Run `nca` as a shell does: in its own process, with its own home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nca.testing.provider import Provider

WINDOW_TOKENS = 4_600
SAFE = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")


def environment(home: Path, **extra: str) -> dict[str, str]:
    """No key of the machine's gets in, and nothing is written outside `home`."""
    kept = {name: os.environ[name] for name in SAFE if name in os.environ}
    return {**kept, "HOME": str(home), "NCA_HOME": str(home / "nca"), "PYTHONUTF8": "1", **extra}


def keys(provider: Provider) -> dict[str, str]:
    """What `nca` needs in its environment to talk to this provider."""
    return {
        "OPENAI_API_BASE": provider.url,
        "OPENAI_API_KEY": "k",
        "NCA_MODEL__CONTEXT_WINDOW": str(WINDOW_TOKENS),
    }


def nca(
    *arguments: str, home: Path, stdin: str | bytes = "", cwd: Path | None = None, timeout: float = 90, **extra: str
) -> subprocess.CompletedProcess[str]:
    raw = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "nca", *arguments],
        input=raw,
        capture_output=True,
        env=environment(home, **extra),
        cwd=cwd or home,
        timeout=timeout,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )
