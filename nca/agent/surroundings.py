"""When and where a conversation takes place: date, machine, branch, and how the project runs its tests."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from datetime import datetime
from pathlib import Path

from nca.safe_files import paths_below
from nca.tools.files.reading_rules import ANY_READING, Reading
from nca.tools.files.workspace import Workspace, shown
from nca.tools.tool import ToolError

MAX_BRANCH_CHARS = 200
MAX_FILE_BYTES = 128 * 1024
"""Of a file that may declare tests."""
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGET = re.compile(r"(?m)^(?:[\w.-]+ +)*(test|check)(?: +[\w.-]+)* *:(?!=)")
_PLACEHOLDER = "no test specified"
"""The text that `npm init` writes for a package without tests."""
_PACKAGE_MANAGERS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun run", "bun.lockb": "bun run"}
_PYTEST = {
    "pytest.ini": "",
    "pyproject.toml": r"(?m)^\[tool\.pytest\b|[\"']pytest\b|^pytest *=",
    "tox.ini": r"(?m)^\[pytest\]",
    "setup.cfg": r"(?m)^\[tool:pytest\]",
    "conftest.py": "",
    "tests/conftest.py": "",
}
"""Files that show that tests are run with pytest, and the text that some must contain for that."""
_BY_FILE = {
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "mix.exs": "mix test",
    "gradlew": "./gradlew test",
    "mvnw": "./mvnw test",
    "pom.xml": "mvn test",
}
_TEST_FOLDERS = ("tests", "test", ".")
_FUNCTION = re.compile(r"(?m)^(?:import pytest|from pytest|(?:async )?def test_)")
"""Tests that unittest does not find."""
_MOST_TEST_FILES = 20


def surroundings(directory: Path, reading: Reading = ANY_READING) -> str:
    """Nothing of it is looked up again, so the prompt stays the same. `reading`: the rules about reading files."""
    folder = _Folder(directory, reading)
    git = _git(directory)
    today = datetime.now().astimezone().date().isoformat()
    command = folder.test_command()
    tests = f" The project's tests run with `{command}`." if command else ""
    return f"Today is {today}; {platform.system()} {platform.machine()}, commands run with bash, {git}.{tests}"


def _git(directory: Path) -> str:
    """What is known of the repository around the directory, without git, and without a look outside of it."""
    root = next((folder for folder in (directory, *directory.parents) if os.path.lexists(folder / ".git")), None)
    if root is None:
        return "no git repository"
    if os.path.isfile(root / ".git"):
        # A work tree's or a submodule's: its branch is elsewhere, where the file of a stranger's project may lead.
        return "a git work tree"
    head = _Folder(root).text(".git/HEAD")[:MAX_BRANCH_CHARS].strip()
    name = head.removeprefix("ref: refs/heads/")
    return f"git branch {shown(name) if name != head else 'none (detached)'}" if head else "no git repository"


class _Folder:
    """Reads what a folder's files say. They may be anybody's: what is taken from them is a name that nca knows."""

    def __init__(self, directory: Path, reading: Reading = ANY_READING) -> None:
        self._directory = directory
        self._workspace = Workspace(directory, reading=reading)

    def text(self, name: str) -> str:
        """The beginning of a file; "" if it cannot be read."""
        try:
            with self._workspace.open(self._workspace.resolve(name), name) as file:
                return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
        except (ToolError, OSError):
            return ""

    def test_command(self) -> str:
        """The command that runs the tests, by what the project declares, else by its tests; "" if neither says it."""
        by_file = (command for name, command in _BY_FILE.items() if self._has(name))
        declared = self._of_makefile() or self._of_package() or self._of_pytest()
        return declared or next(by_file, "") or self._of_test_files()

    def _has(self, name: str) -> bool:
        return os.path.isfile(self._directory / name)

    def _of_makefile(self) -> str:
        makefile = next((name for name in _MAKEFILES if self._has(name)), "")
        found = {match[1] for match in _TARGET.finditer(self.text(makefile))} if makefile else set()
        return next((f"make {target}" for target in ("test", "check") if target in found), "")

    def _of_package(self) -> str:
        try:
            script = json.loads(self.text("package.json") or "{}")["scripts"]["test"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return ""
        if not script or _PLACEHOLDER in str(script):
            return ""
        return next((f"{program} test" for name, program in _PACKAGE_MANAGERS.items() if self._has(name)), "npm test")

    def _of_pytest(self) -> str:
        says = any(self._has(name) and re.search(sign, self.text(name)) for name, sign in _PYTEST.items())
        return f"{self._python()} -m pytest" if says else ""

    def _of_test_files(self) -> str:
        """By the first folder with tests in Python."""
        for folder in _TEST_FOLDERS:
            names = sorted(path.name for path in paths_below(self._directory / folder, "test_*.py"))[:_MOST_TEST_FILES]
            if not names:
                continue
            if any(_FUNCTION.search(self.text(f"{folder}/{name}")) for name in names):
                return f"{self._python()} -m pytest"
            where = "" if folder == "." or self._has(f"{folder}/__init__.py") else f" discover -s {folder}"
            return f"{self._python()} -m unittest{where}"
        return ""

    def _python(self) -> str:
        """That of the project's environment, else the one on the PATH."""
        own = next((name for name in (".venv/bin/python", "venv/bin/python") if self._has(name)), "")
        return own or ("python" if shutil.which("python") else "python3")
