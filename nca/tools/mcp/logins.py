"""Logins at MCP servers on disk: one private file for each address, in the data directory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nca.atomic_write import write_atomically
from nca.config.paths import data_dir

FOLDER = "mcp-logins"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Login:
    """What OAuth gave for one server, as JSON objects of the SDK's types.

    tokens      OAuthToken
    client      OAuthClientInformationFull: how the authorization server knows nca
    metadata    OAuthMetadata: where its endpoints are; {} if it publishes none
    expires_at  seconds since the epoch; None if the server did not say
    """

    tokens: Mapping[str, Any]
    client: Mapping[str, Any]
    metadata: Mapping[str, Any]
    expires_at: float | None


class Logins:
    """By the server's address, so that a token never goes to another server of the same name."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._folder = data_dir(env) / FOLDER

    def find(self, url: str) -> Login | None:
        """None if there is none, or if it cannot be read: the person then logs in again."""
        try:
            with self._path(url).open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
            login = Login(**{name: data[name] for name in Login.__slots__})
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None
        parts = (login.tokens, login.client, login.metadata)
        is_valid = all(isinstance(part, dict) for part in parts) and isinstance(login.expires_at, float | int | None)
        return login if is_valid else None

    def save(self, url: str, login: Login) -> None:
        """Raises OSError."""
        path = self._path(url)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, json.dumps({"url": url, **asdict(login)}, indent=1).encode())

    def remove(self, url: str) -> bool:
        """Whether there was one. Raises OSError."""
        path = self._path(url)
        was_there = path.exists()
        path.unlink(missing_ok=True)
        return was_there

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode('utf-8', 'backslashreplace')).hexdigest()[:32]}.json"
