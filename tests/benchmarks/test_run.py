"""A run of all parts: what was measured stays when a later part breaks off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import one_by_one


def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path: Path) -> None:
    measured: list[str] = []

    def part(name: str, *, breaks: bool = False) -> Callable[[], list[str]]:
        def measure() -> list[str]:
            if breaks:
                raise OSError("no space left")
            measured.append(name)
            return [name]

        return measure

    file = tmp_path / "new" / "unfinished.json"
    with pytest.raises(OSError, match="no space"):
        one_by_one({"a": part("a"), "b": part("b", breaks=True), "c": part("c")}, file)
    found = one_by_one({name: part(name) for name in "abc"}, file)
    assert found == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert measured == ["a", "b", "c"]
