"""Plant small faults in nca and see whether the tests notice: `make mutants`.

Each mutant changes one operator, number, condition or call of one function, in a copy of the repository. The tests
that import the changed module run first, then those of its room, then (with --thorough) all of them. A mutant that no
test notices is printed with its place, for somebody to judge: some change nothing that can be observed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
SWAPS = {">": ">=", ">=": ">", "<": "<=", "<=": "<", "==": "!=", "!=": "==", "and": "or", "or": "and"}
SWAPS |= {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
_OPERATOR = re.compile(r"(?:>=|<=|==|!=|>|<|\bnot in\b|\bin\b|\bis not\b|\bis\b|\band\b|\bor\b)")
_LEFT_OUT = ("__main__.py", "testing/", "cli/app.py")
"""Doubles for tests, and modules that only connect others."""
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault: the characters `start` to `end` of `path` are replaced by `new`."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.old.split())!r} -> {self.new!r}"


def mutants_of(path: Path) -> list[Mutant]:
    """Every fault that could be planted in the functions of a module."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    name = path.relative_to(ROOT).as_posix()

    def place(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    def mutant(line: int, start: int, end: int, new: str) -> Mutant:
        return Mutant(name, line, start, end, source[start:end], new)

    def between(before: ast.expr, after: ast.expr) -> Iterator[Mutant]:
        start = place(before.end_lineno or 0, before.end_col_offset or 0)
        end = place(after.lineno, after.col_offset)
        if found := _OPERATOR.search(source, start, end):
            yield mutant(before.end_lineno or 0, found.start(), found.end(), SWAPS[found[0]])

    def of_node(node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, comparators=[right]):
                yield from between(left, right)
            case ast.BoolOp(values=[first, second, *_]):
                yield from between(first, second)
            case ast.If(test=test) | ast.IfExp(test=test):
                start, end = place(test.lineno, test.col_offset), place(test.end_lineno or 0, test.end_col_offset or 0)
                yield mutant(test.lineno, start, end, f"not ({source[start:end]})")
            case ast.Constant(value=bool() as value):
                start = place(node.lineno, node.col_offset)
                yield mutant(node.lineno, start, start + len(str(value)), str(not value))
            case ast.Constant(value=int() as value):
                start = place(node.lineno, node.col_offset)
                end = place(node.end_lineno or 0, node.end_col_offset or 0)
                yield mutant(node.lineno, start, end, str(value + 1))
            case ast.Expr(value=ast.Call() | ast.Await()):
                start = place(node.lineno, node.col_offset)
                end = place(node.end_lineno or 0, node.end_col_offset or 0)
                yield mutant(node.lineno, start, end, "pass")

    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = (node for function in functions for statement in function.body for node in ast.walk(statement))
    return list(dict.fromkeys(found for node in bodies for found in of_node(node)))


def chosen(planted: int, seed: int, only: str) -> list[Mutant]:
    """So many mutants, spread over the rooms: each room in turn gives one."""
    rooms: dict[str, list[Mutant]] = {}
    for path in sorted((ROOT / "nca").rglob("*.py")):
        name = path.relative_to(ROOT / "nca").as_posix()
        if not name.startswith(_LEFT_OUT) and only in name:
            rooms.setdefault(name.rpartition("/")[0].partition("/")[0], []).extend(mutants_of(path))
    source = random.Random(seed)
    for found in rooms.values():
        source.shuffle(found)
    result: list[Mutant] = []
    while len(result) < planted and any(rooms.values()):
        result += [found.pop() for found in rooms.values() if found]
    return result[:planted]


def tests_of(path: str) -> tuple[list[str], list[str]]:
    """The test files that name a module, and the folder of its room's tests."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, leaf = module.rpartition(".")
    named = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{leaf}\b")
    mirrored = f"test_{leaf}.py"
    near = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if file.name == mirrored or named.search(file.read_text(encoding="utf-8"))
    ]
    room = ROOT / "tests" / Path(path).parts[1]
    return near, [room.relative_to(ROOT).as_posix() if room.is_dir() else "tests"]


def is_caught(mutant: Mutant, copy: Path, *, is_thorough: bool) -> bool:
    """Run the tests against a copy in which the mutant stands."""
    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    target.write_text(source[: mutant.start] + mutant.new + source[mutant.end :], encoding="utf-8")
    near, room = tests_of(mutant.path)
    rounds = [near, room, *([["tests"]] if is_thorough else [])]
    try:
        return any(files and not _passes(files, copy) for files in rounds)
    finally:
        target.write_text(source, encoding="utf-8")


def _passes(files: list[str], copy: Path) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", type=int, default=30, help="how many mutants (30)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--only", default="", help="only modules with this in their path, such as context/policy")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--thorough", action="store_true", help="run all tests for what the room's tests miss")
    options = parser.parse_args()
    mutants = chosen(options.planted, options.seed, options.only)
    with tempfile.TemporaryDirectory(prefix="nca-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copy = Path(folder) / str(number)
            left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", ".bench", "__pycache__")
            shutil.copytree(ROOT, copy, ignore=left_out, symlinks=True)
            copies.put(copy)

        def judge(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                caught = is_caught(mutant, copy, is_thorough=options.thorough)
            finally:
                copies.put(copy)
            print(f"{'caught  ' if caught else 'SURVIVED'} {mutant}", flush=True)
            return caught

        with ThreadPoolExecutor(options.jobs) as pool:
            caught = sum(pool.map(judge, mutants))
    print(f"{caught} of {len(mutants)} caught ({caught / len(mutants):.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
