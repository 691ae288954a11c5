"""Whether a project's own settings may act: what they would do, and the person's word on it.

Settings that `acts` in the schema (which models are asked, which programs are started) count from a project's file
only once the person has said so. The word holds for the real path of the directory and the exact content of those
settings; nothing inside the project is consulted (no .git, no link), and any change asks again. What the schema marks
`trusted` (endpoints, permissions) never counts from a project, trusted or not.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.config.document import Document, leaves, read_document, shown_name
from nca.config.names import canonical
from nca.config.paths import data_dir, project_config_file
from nca.config.schema import KEYS, NAMED

FILE_NAME = "trust.json"
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """What of a project's file would act.

    directory  the project's directory, links resolved
    settings   name and value as they are written, in the file's order
    digest     of all of them: the same only for the same names and values
    """

    directory: Path
    settings: tuple[tuple[str, Any], ...]

    @property
    def names(self) -> str:
        return ", ".join(shown_name(name) for name, _ in self.settings)

    @property
    def digest(self) -> str:
        import hashlib

        written = json.dumps(self.settings, sort_keys=True, default=str)
        return hashlib.sha256(written.encode("utf-8", "backslashreplace")).hexdigest()


TrustCheck = Callable[[TrustRequest], bool]
"""Asked once for a project's file with acting settings: whether they count."""


def trust_request(document: Document | None, directory: Path) -> TrustRequest | None:
    """What would act; None where nothing does. Raises ConfigError for a file nested too deeply."""
    if document is None:
        return None
    found = tuple(
        (".".join(path), raw)
        for path, raw in leaves(document.data, document.path, NAMED)
        if _acts(".".join(path[2:] if path[0] == "for" and len(path) > 2 else path))
    )
    return TrustRequest(directory.resolve(), found) if found else None


class TrustStore:
    """The person's words so far, in a file of their own (0600) in the data directory."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._path = data_dir(env) / FILE_NAME

    def decision(self, what: TrustRequest) -> bool | None:
        """What the person said of exactly this; None: they have not been asked."""
        known = self._read().get(str(what.directory))
        if not isinstance(known, dict) or known.get("digest") != what.digest:
            return None
        return known.get("is_trusted") is True

    def is_trusted(self, what: TrustRequest) -> bool:
        return self.decision(what) is True

    def record(self, what: TrustRequest, *, is_trusted: bool) -> None:
        """Raises OSError where it cannot be kept; then it will be asked again."""
        projects = self._read()
        projects[str(what.directory)] = {"digest": what.digest, "is_trusted": is_trusted}
        self._write(projects)

    @contextlib.contextmanager
    def saving(self, project: Path) -> Iterator[None]:
        """Around a change that the person themselves makes to the project's file through nca: trust goes along.

        Only where nothing acted before, or what did was trusted: their change says nothing of the rest.
        """
        file = project_config_file(project)
        before = trust_request(read_document(file), project)
        was_fine = before is None or self.decision(before) is True
        yield
        after = trust_request(read_document(file), project)
        if after is not None and was_fine:
            with contextlib.suppress(OSError):
                self.record(after, is_trusted=True)

    def _read(self) -> dict[str, Any]:
        """What cannot be read counts as never said: it is asked again."""
        try:
            with self._path.open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        projects = data.get("projects") if isinstance(data, dict) else None
        return projects if isinstance(projects, dict) else {}

    def _write(self, projects: dict[str, Any]) -> None:
        import secrets

        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f".{FILE_NAME}.{secrets.token_hex(4)}.tmp")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "projects": projects}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _acts(name: str) -> bool:
    found = canonical(name)
    return found is not None and KEYS[found.key].needs_trust
