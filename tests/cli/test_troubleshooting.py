"""The page on troubleshooting has just the lines that the program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.models.embedded import weights
from nca.testing.faults import FAULTS
from nca.testing.provider import Provider
from tests.cli.command import nca
from tests.models.test_lasting import Proxy
from tests.models.tls import own_certificate
from tests.terminal.tty import ROOT
from tests.testing.forks import forked

PAGE = ROOT / "docs" / "troubleshooting.md"
FAILURES = (
    *("wrong-key", "forbidden", "no-money", "no-such-model"),
    *("rate-limited-for-ever", "rate-limited-for-a-day", "server-error-for-ever"),
)
MODEL = "openai/gpt-4.1"
AWAY = "https://models.invalid/v1"


def said(home: Path, *, model: str = MODEL, api_base: str = "", start: Any = forked, **env: str) -> list[str]:
    """The lines with which `nca run` fails. `start` runs it."""
    named = {"NCA_MODEL__API_BASE": api_base, "OPENAI_API_KEY": "k"} if api_base else {}
    words = ("-m", model) if model else ()
    done = start("run", "hi", *words, home=home, NCA_MODEL__MAX_RETRIES="0", **named, **env)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    lines: list[str] = done.stderr.splitlines()
    return lines


def everything_said(home: Path) -> Iterator[str]:
    yield from said(home, model="")
    for model in (MODEL, "sonnet", "opnai/gpt-4.1"):
        yield from said(home, model=model)
    for failure in FAILURES:
        with Provider(faults={"gpt-4.1": FAULTS[failure]}) as provider:
            yield from said(home, api_base=provider.url)
            closed = provider.url
    yield from said(home, api_base=closed)
    yield from said(home, api_base=AWAY)
    yield from said(home, api_base=AWAY, https_proxy="http://127.0.0.1:9")
    with Proxy(407) as proxy:
        yield from said(home, api_base=AWAY, https_proxy=f"http://127.0.0.1:{proxy.port}")
    with Provider(tls=own_certificate(home).server) as provider:
        # A process of its own has no SSL_CERT_FILE.
        yield from said(home, api_base=provider.url, start=nca)
    with Provider() as provider:
        yield from said(home, api_base=provider.url.replace("http:", "https:"))


@pytest.mark.skipif(not weights.has_runtime(), reason="without the embedded model's runtime, the advice is longer")
def test_the_page_has_the_lines_that_are_printed_and_no_others(tmp_path: Path) -> None:
    blocks = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    printed = list(everything_said(tmp_path))
    patterns = {line: re.compile(re.escape(line).replace("…", ".*")) for line in shown}
    unknown = [line for line in printed if not any(pattern.fullmatch(line) for pattern in patterns.values())]
    stale = [line for line, pattern in patterns.items() if not any(map(pattern.fullmatch, printed))]
    assert (unknown, stale) == ([], [])
