"""Every example in docs/library.md runs, and every public function is documented there."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nca
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_examples_give_what_they_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "library.md", str(PAGE), 0)
    assert len(test.examples) > 30
    lines: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=lines.append)
    assert not lines, "".join(lines)


def test_the_shortest_program_runs_as_it_stands(tmp_path: Path) -> None:
    program = re.findall(r"```py\n(import.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    with Provider(in_order(Answer(text="None yet."))) as provider:
        env = {**os.environ, "NCA_HOME": str(tmp_path), "OPENAI_API_BASE": provider.url}
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True
        )
    assert (done.stdout, done.stderr) == ("None yet.\n", "")


@pytest.mark.parametrize("name", nca.__all__)
def test_every_public_name_stands_in_it(name: str) -> None:
    assert re.search(rf"`(nca\.)?{name}\b", PAGE.read_text(encoding="utf-8"))


def test_every_name_in_it_is_public() -> None:
    """What is called behind `nca.`, and each class at the beginning of a table's row."""
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[A-Z].*?) \|", page, re.MULTILINE)
    named = {*re.findall(r"\bnca\.([A-Za-z_]+)\(", page), *re.findall(r"`([A-Z]\w+)`", " ".join(rows))}
    assert {"compact", "CostLimitReached", "ModelNotFound"} <= named <= {*nca.__all__}
