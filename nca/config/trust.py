"""Trust in a project's own settings: which ones need it, and the user's decision.

All settings but those of nca.config.harmless wait for trust: they are taken from a project's file only if the user
trusts it. The decision is valid for the real path of the directory and the exact value of these settings; any change
asks again, and nothing inside the project is consulted. Settings with `user_only` (endpoints, permissions) are never
taken from a project, except for what Claude Code's settings allow (Document.is_grant).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.document import Document, leaves, shown_name
from nca.config.names import canonical, converted
from nca.config.paths import data_dir
from nca.config.project_files import read_project
from nca.config.project_rows import read_rows, write_rows
from nca.config.schema import KEYS, NAMED

FILE_NAME = "trust.json"
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
    """The user's decisions, in a private file in the data directory."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._path = data_dir(env) / FILE_NAME

    def decision(self, what: TrustRequest) -> bool | None:
        """The user's decision about exactly these settings; None if not asked yet."""
        known = self._read().get(str(what.directory))
        if not isinstance(known, dict) or known.get("digest") != what.digest:
            return None
        return known.get("is_trusted") is True

    def is_trusted(self, what: TrustRequest) -> bool:
        return self.decision(what) is True

    def record(self, what: TrustRequest, *, is_trusted: bool) -> None:
        """Store a decision. Raises OSError; the user is then asked again."""
        projects = self._read()
        projects[str(what.directory)] = {"digest": what.digest, "is_trusted": is_trusted}
        self._write(projects)

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

    def _read(self) -> dict[str, Any]:
        """The stored decisions; {} if the file is unreadable, so that the user is asked again."""
        return read_rows(self._path, _MAX_BYTES)

    def _write(self, projects: dict[str, Any]) -> None:
        write_rows(self._path, projects)


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
