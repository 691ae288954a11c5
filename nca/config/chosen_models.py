"""The models that a person chose with /model, one for each project.

They are kept in a private file in the data directory, by the real path of the directory. Nothing inside a project is
consulted, so a project cannot choose a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.paths import data_dir
from nca.config.project_rows import read_rows, write_rows

FILE_NAME = "chosen_models.json"
MOST_PROJECTS = 1_000
"""The choices of the projects that were used last are kept."""
_MAX_BYTES = 4 << 20
_MAX_CHARS = 300


class ChosenModel(NamedTuple):
    """A choice. `level`: how much the model reasons; "" if the choice did not say. `day` as in 2026-11-22."""

    name: str
    level: str = ""
    day: str = ""

    @property
    def origin(self) -> str:
        return f"/model here on {self.day}" if self.day else "/model here"


class ChosenModels:
    """The choices of all projects."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._path = data_dir(env) / FILE_NAME

    def of(self, directory: Path) -> ChosenModel | None:
        """What was chosen in this directory; None if nothing was, or if that cannot be read."""
        return _choice(self._read().get(str(directory.resolve())))

    def record(self, directory: Path, chosen: ChosenModel) -> None:
        """Remember a choice. Raises OSError; then the next chat starts with the model before."""
        projects = self._without(directory)
        projects[str(directory.resolve())] = {"name": chosen.name, "level": chosen.level, "day": chosen.day}
        self._write(projects)

    def forget(self, directory: Path) -> None:
        """Forget the choice of this directory. Raises OSError."""
        before, after = self._read(), self._without(directory)
        if after != before:
            self._write(after)

    def _without(self, directory: Path) -> dict[str, Any]:
        own = str(directory.resolve())
        return {path: row for path, row in self._read().items() if path != own}

    def _read(self) -> dict[str, Any]:
        """The rows by directory, the oldest first; {} if the file is unreadable."""
        return read_rows(self._path, _MAX_BYTES)

    def _write(self, projects: dict[str, Any]) -> None:
        write_rows(self._path, dict(list(projects.items())[-MOST_PROJECTS:]))


def _choice(row: Any) -> ChosenModel | None:
    if not isinstance(row, dict):
        return None
    words = [row.get(key, "") for key in ("name", "level", "day")]
    texts = [word.strip() for word in words if isinstance(word, str) and word.isprintable()]
    if len(texts) != len(words) or not texts[0] or max(map(len, texts)) > _MAX_CHARS:
        return None
    return ChosenModel(*texts)
