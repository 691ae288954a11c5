"""Plant small faults in nca and see whether the tests notice: `make mutants`.

Each mutant changes one operator, number, condition, call or reset of one function, in a copy of the repository. The
tests that import the changed module run first, then those of its room, then (with --thorough) all of them. A test that
fails runs again without the mutant; if it still fails, it does not count. Somebody has to judge the mutants that no
test notices: some change nothing that can be observed.
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
from itertools import accumulate, count
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
SWAPS = {">": ">=", ">=": ">", "<": "<=", "<=": "<", "==": "!=", "!=": "==", "and": "or", "or": "and"}
SWAPS |= {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
_OPERATOR = re.compile(r"(?:>=|<=|==|!=|>|<|\bnot in\b|\bin\b|\bis not\b|\bis\b|\band\b|\bor\b)")
_LEFT_OUT = ("__main__.py", "testing/", "cli/app.py")
"""Doubles for tests, and modules that only connect others."""
_UNOBSERVABLE = frozenset({"strict", "exist_ok", "mode", "flush", "daemon"})
"""Arguments that guard against a mistake or a crash, so that no ordinary test can tell their values apart."""
_BEGINS = ("__init__", "__post_init__")
_SECONDS = 600
_TIMES = count(1_000_000_000)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault: in `path`, `old` at the character `start` is replaced by `new`."""

    path: str
    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.old.split())!r} -> {self.new!r}"


def mutants_of(path: Path) -> list[Mutant]:
    """Every fault that could be planted in the functions of a module."""
    source = path.read_text(encoding="utf-8")
    raw = source.encode()
    starts = [0, *accumulate(len(line) for line in raw.splitlines(keepends=True))]
    name = path.relative_to(ROOT).as_posix()

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        start, end = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1]
        return len(raw[:start].decode()), len(raw[: end + (node.end_col_offset or 0)].decode())

    def mutant(start: int, end: int, new: str) -> Mutant:
        return Mutant(name, source.count("\n", 0, start) + 1, start, source[start:end], new)

    def between(before: ast.expr, after: ast.expr) -> Iterator[Mutant]:
        if found := _OPERATOR.search(source, span(before)[1], span(after)[0]):
            yield mutant(found.start(), found.end(), SWAPS[found[0]])

    def of_node(node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, comparators=[right]):
                yield from between(left, right)
            case ast.BoolOp(values=[first, second, *_]):
                yield from between(first, second)
            case ast.If(test=test) | ast.IfExp(test=test):
                start, end = span(test)
                yield mutant(start, end, f"not ({source[start:end]})")
            case ast.Constant(value=bool() as value):
                yield mutant(*span(node), str(not value))
            case ast.Constant(value=int() as value) if not source.startswith("0o", span(node)[0]):
                yield mutant(*span(node), str(value + 1))
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield mutant(*span(node), "pass")
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"))], value=value) if is_reset(node, value):
                yield mutant(*span(node), "pass")

    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    first = {id(node) for one in functions if one.name in _BEGINS for node in ast.walk(one)}

    def is_reset(node: ast.stmt, value: ast.expr) -> bool:
        """Whether what an attribute held is forgotten."""
        return id(node) not in first and _is_empty(value)

    bodies = (node for function in functions for statement in function.body for node in _walk(statement))
    return list(dict.fromkeys(found for node in bodies for found in of_node(node)))


def _is_empty(value: ast.expr) -> bool:
    """Whether an attribute that gets this value is as new."""
    match value:
        case (
            ast.Constant() | ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[], keywords=[])
        ):
            return True
        case _:
            return False


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, without annotations and unobservable arguments."""
    yield node
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            is_left_out = name == "annotation" or (isinstance(child, ast.keyword) and child.arg in _UNOBSERVABLE)
            if isinstance(child, ast.AST) and not is_left_out:
                yield from _walk(child)


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


def tests_of(path: str) -> list[list[str]]:
    """The test files that name a module, its own first and its room's next, and then the folder of its room's tests."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, leaf = module.rpartition(".")
    named = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{leaf}\b")
    tests = ROOT / "tests"
    room = tests / Path(path).parts[1]
    files = [file for file in tests.rglob("test_*.py") if "soak" not in file.parts]
    files.sort(key=lambda file: (file.name != f"test_{leaf}.py", room not in file.parents, file))
    near = [file for file in files if file.stem == f"test_{leaf}" or named.search(file.read_text(encoding="utf-8"))]
    rounds = [near, [room] if room.is_dir() else []]
    return [[file.relative_to(ROOT).as_posix() for file in files] for files in rounds if files]


def nearest_to(path: str, files: int) -> list[str]:
    """The test files nearest to a module: its own, those that name it, and of its room, most of its names first."""
    tests, parts = ROOT / "tests", Path(path).parts
    room = tests / parts[1]
    named = {file for some in tests_of(path) for file in some if file.endswith(".py")}
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    names = [one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    mention = re.compile(rf"\b(?:{'|'.join(name for name in names if not name.startswith('_')) or '(?!)'})\b")
    ranks: list[tuple[bool, bool, bool, int, str]] = []
    for file in tests.rglob("test_*.py"):
        name, is_beside = file.relative_to(ROOT).as_posix(), room in file.parents
        if name in named or is_beside:
            mentions = len(mention.findall(file.read_text(encoding="utf-8")))
            is_own = file.stem == f"test_{Path(path).stem}" and (is_beside or file.parent == tests)
            is_far = file.parent != tests.joinpath(*parts[1:-1])
            ranks.append((not is_own, name not in named, is_far, -mentions, name))
    return [rank[-1] for rank in sorted(ranks)[:files]]


def caught_by(mutant: Mutant, copy: Path, *, is_thorough: bool, nearest: int = 0) -> str:
    """The first test that fails on a copy in which the mutant stands, and passes without it; "" if there is none."""
    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    end = mutant.start + len(mutant.old)
    left_out: list[str] = []
    rounds = [nearest_to(mutant.path, nearest)] if nearest else tests_of(mutant.path)
    rounds += [["tests"]] if is_thorough else []
    while rounds:
        _write(target, source[: mutant.start] + mutant.new + source[end:])
        try:
            failed = _first_failure(rounds[0], left_out, copy)
        finally:
            _write(target, source)
        if not failed:
            left_out += [f"--ignore={file}" for file in rounds.pop(0)]
        elif not _first_failure([failed], [], copy):
            return failed
        else:
            left_out.append(f"--deselect={failed}")
    return ""


def _write(file: Path, text: str) -> None:
    """Python compares a compiled module with its source by size and seconds: those of two mutants must differ."""
    file.write_text(text, encoding="utf-8")
    seconds = next(_TIMES)
    os.utime(file, (seconds, seconds))


def _first_failure(tests: list[str], left_out: list[str], copy: Path) -> str:
    """The first test that fails; "" if none does, or none within the time."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *left_out, *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"no answer after {_SECONDS} s: {' '.join(tests)}", flush=True)
        return ""
    found = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout.decode(errors="replace"), re.MULTILINE)
    return found[1] if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", type=int, default=30, help="how many mutants (30)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--only", default="", help="only modules with this in their path, such as context/policy")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--nearest", type=int, default=0, help="run only so many test files, the nearest ones")
    parser.add_argument("--thorough", action="store_true", help="run all tests for what the room's tests miss")
    options = parser.parse_args()
    if not (mutants := chosen(options.planted, options.seed, options.only)):
        parser.error(f"no module of nca/ has {options.only!r} in its path")
    with tempfile.TemporaryDirectory(prefix="nca-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", ".bench", "__pycache__")
        for number in range(options.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(number), ignore=left_out, symlinks=True)))

        def judge(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                test = caught_by(mutant, copy, is_thorough=options.thorough, nearest=options.nearest)
            finally:
                copies.put(copy)
            print(f"{mutant}\n    {f'caught by {test}' if test else 'SURVIVED'}", flush=True)
            return bool(test)

        with ThreadPoolExecutor(options.jobs) as pool:
            caught = sum(pool.map(judge, mutants))
    print(f"{caught} of {len(mutants)} caught ({caught / len(mutants):.0%})")


if __name__ == "__main__":
    main()
