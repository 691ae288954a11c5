"""How a project runs its tests, by what it declares."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nca.agent.surroundings import surroundings
from nca.config.schema import PermissionSettings
from nca.config.tables import PermissionRule
from nca.tools.files.reading_rules import Reading

PYTHON = "python" if shutil.which("python") else "python3"
UNITTEST = "import unittest\n\n\nclass One(unittest.TestCase):\n    def test_it(self):\n        pass\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"Makefile": "lint:\n\truff check\n\ntest: lint\n\tpytest\n", "pyproject.toml": '["pytest"]'}, "make test"),
        ({"Makefile": "lint test : all\n\ttrue\n"}, "make test"),
        ({"makefile": "check::\n\ttrue\n"}, "make check"),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "vitest"}}', "yarn.lock": ""}, "yarn test"),
        ({"package.json": '{"scripts": {"test": "bun test"}}', "bun.lock": ""}, "bun run test"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, f"{PYTHON} -m pytest"),
        ({"pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8"]\n'}, f"{PYTHON} -m pytest"),
        ({"setup.cfg": "[tool:pytest]\n", ".venv/bin/python": ""}, ".venv/bin/python -m pytest"),
        ({"tests/conftest.py": ""}, f"{PYTHON} -m pytest"),
        ({"test_words.py": "def test_it():\n    pass\n"}, f"{PYTHON} -m pytest"),
        ({"tests/test_words.py": UNITTEST}, f"{PYTHON} -m unittest discover -s tests"),
        ({"tests/test_words.py": UNITTEST, "tests/__init__.py": ""}, f"{PYTHON} -m unittest"),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": ""}, "go test ./..."),
        # Nothing says it: a variable, a placeholder, broken files, another program's table.
        ({"Makefile": "test := pytest\ntests:\n\ttrue\n"}, ""),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
        ({"package.json": "{"}, ""),
        ({"package.json": '["scripts"]'}, ""),
        ({"pyproject.toml": "[tool.pytester]\n", "tox.ini": "[tox]\n"}, ""),
        ({}, ""),
    ],
)
def test_the_command_that_runs_the_tests(tmp_path: Path, files: dict[str, str], command: str) -> None:
    said = surroundings(written(tmp_path, files))
    assert said.partition("no git repository.")[2] == (f" The project's tests run with `{command}`." if command else "")


def test_a_file_that_is_none_of_the_projects_or_may_not_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("test:\n\ttrue\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "Makefile").symlink_to(tmp_path / "outside")
    os.mkfifo(project / "package.json")
    assert surroundings(project).endswith("no git repository.")
    (project / "Makefile").unlink()
    written(project, {"Makefile": "test:\n\ttrue\n"})
    assert surroundings(project).endswith("`make test`.")
    rules = PermissionSettings(deny=(PermissionRule("read_file", paths="Makefile"),))
    assert surroundings(project, Reading(lambda: rules, project)).endswith("no git repository.")
