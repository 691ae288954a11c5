"""A person's decisions for each project: whether its own settings are trusted, and which model answers there.

All settings but those of nca.config.harmless wait for trust: they are taken from a project's file only if the user
trusts it. The decision is valid for the real path of the directory and the exact value of these settings; any change
asks again. Settings with `user_only` (endpoints, permissions) are never taken from a project, except for what Claude
Code's settings allow (Document.is_grant).

Decisions are kept in private files of the data directory, by the real path of the project's. Nothing inside a project
is consulted, so a project can neither trust itself nor choose a model.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.claude_settings import claude_documents
from nca.config.document import Document, leaves, read_document, shown_name
from nca.config.other_agents import server_documents
from nca.config.overrides import canonical, converted
from nca.config.paths import data_dir, project_config_file
from nca.config.schema import KEYS, NAMED
from nca.humanize import UsualNotice
from nca.safe_files import exclusively, write_atomically


def read_project(directory: Path, env: Mapping[str, str]) -> tuple[list[Document], list[str]]:
    """The documents of a project, the later ones more important, and notes. Raises ConfigError for nca's own file."""
    notes: list[str] = []
    own = read_document(project_config_file(directory))
    found = [*server_documents(directory, notes), *claude_documents(directory, env, notes, is_own=False)]
    return [*found, own] if own is not None else found, notes


def _read(path: Path) -> dict[str, Any]:
    """The rows by folder, in the order of the file; {} if the file is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    projects = data.get("projects") if isinstance(data, dict) else None
    return projects if isinstance(projects, dict) else {}


def _write(path: Path, rows: dict[str, Any]) -> None:
    """Replace the file atomically. Raises OSError."""
    write_atomically(path, json.dumps({"version": 1, "projects": rows}, indent=1).encode())


TRUST_FILE = "trust.json"
_MAX_BYTES = 4 << 20


class TrustRequest(NamedTuple):
    """The settings of a project's files that need trust.

    directory  the project's directory, links resolved
    settings   names and values as written, in the file's order
    digest     a hash of all names and values
    """

    directory: Path
    settings: tuple[tuple[str, Any], ...]

    @property
    def names(self) -> str:
        return ", ".join(dict.fromkeys(shown_name(name) for name, _ in self.settings))

    def left_out(self, answer: bool | None, where: str = "") -> str:
        """The line about these settings where they are not used. After a no it tells a script nothing new."""
        once, said = "--trust accepts them for one run).", f"{self.names}{where}"
        if answer is False:
            said = f"Settings of this project are not used, as you decided: {said}"
            return UsualNotice(f"{said} (`nca config trust` shows them and asks again; {once}")
        said = f"Settings of this project wait for your trust: {said}; it is not trusted"
        return f"{said} (`nca config trust` shows them and asks, and a no ends this line; {once}"

    @property
    def digest(self) -> str:
        import hashlib

        written = json.dumps(self.settings, sort_keys=True, default=str)
        return hashlib.sha256(written.encode("utf-8", "backslashreplace")).hexdigest()


TrustCheck = Callable[[TrustRequest], bool]
"""Called once for a project's file with settings that need trust: whether the user trusts it."""


def trust_request(documents: Sequence[Document], directory: Path) -> TrustRequest | None:
    """The settings of a project's files that need trust, None if there are none.

    Raises ConfigError for too deep nesting.
    """
    found = tuple(
        (".".join(path), raw)
        for document in documents
        for path, raw in leaves(document.data, document.path, NAMED)
        if document.is_grant or waits_for_trust(".".join(path[2:] if path[0] == "for" and len(path) > 2 else path), raw)
    )
    return TrustRequest(directory.resolve(), found) if found else None


class TrustStore:
    """The user's decisions, in a private file in the data directory. If it cannot be read, the user is asked again."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._path = data_dir(env) / TRUST_FILE

    def decision(self, what: TrustRequest) -> bool | None:
        """The user's decision about exactly these settings; None if not asked yet."""
        known = _read(self._path).get(str(what.directory))
        if not isinstance(known, dict) or known.get("digest") != what.digest:
            return None
        return known.get("is_trusted") is True

    def is_trusted(self, what: TrustRequest) -> bool:
        return self.decision(what) is True

    def record(self, what: TrustRequest, *, is_trusted: bool) -> None:
        """Store a decision. Raises OSError; the user is then asked again."""
        with exclusively(self._path):
            projects = _read(self._path)
            projects[str(what.directory)] = {"digest": what.digest, "is_trusted": is_trusted}
            _write(self._path, projects)

    @contextlib.contextmanager
    def saving(self, project: Path) -> Iterator[None]:
        """Keep the trust in a project while the user changes its file through nca.

        Only if the project was trusted before, or nothing in it needed trust.
        """
        before = trust_request(read_project(project, self._env)[0], project)
        was_fine = before is None or self.decision(before) is True
        yield
        after = trust_request(read_project(project, self._env)[0], project)
        if after is not None and was_fine:
            with contextlib.suppress(OSError):
                self.record(after, is_trusted=True)


def waits_for_trust(name: str, raw: Any) -> bool:
    """Whether this value of a setting, under any of its names, is taken from a project's file only with trust.

    A value that is not valid waits for nothing: whoever reads it refuses it.
    """
    found = canonical(name)
    if found is None or KEYS[found.key].user_only:
        return False
    key = KEYS[found.key]
    if key.harmless is None:
        return True
    if not key.harmless.bounds:
        return False
    try:
        value = key.value_type.read(raw if found.foreign is None else converted(found.foreign, raw, key.default))
    except ValueError:
        return False
    return not key.harmless.covers(value)


MODELS_FILE = "chosen_models.json"
MOST_PROJECTS = 1_000
"""The choices of the projects that were used last are kept."""
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
        self._path = data_dir(env) / MODELS_FILE

    def of(self, directory: Path) -> ChosenModel | None:
        """The choice in this directory; None if there is none, or it cannot be read."""
        return _choice(_read(self._path).get(str(directory.resolve())))

    def record(self, directory: Path, chosen: ChosenModel) -> None:
        """Remember a choice. Raises OSError; then the next chat starts with the model before."""
        with exclusively(self._path):
            projects = self._without(directory)
            projects[str(directory.resolve())] = {"name": chosen.name, "level": chosen.level, "day": chosen.day}
            _write(self._path, dict(list(projects.items())[-MOST_PROJECTS:]))

    def forget(self, directory: Path) -> None:
        """Forget the choice of this directory. Raises OSError."""
        with exclusively(self._path):
            if str(directory.resolve()) in _read(self._path):
                _write(self._path, self._without(directory))

    def _without(self, directory: Path) -> dict[str, Any]:
        """The rows of all other directories, the oldest first."""
        own = str(directory.resolve())
        return {path: row for path, row in _read(self._path).items() if path != own}


def _choice(row: Any) -> ChosenModel | None:
    if not isinstance(row, dict):
        return None
    words = [row.get(key, "") for key in ("name", "level", "day")]
    texts = [word.strip() for word in words if isinstance(word, str) and word.isprintable()]
    if len(texts) != len(words) or not texts[0] or max(map(len, texts)) > _MAX_CHARS:
        return None
    return ChosenModel(*texts)
