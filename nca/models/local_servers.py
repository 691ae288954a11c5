"""Find model servers on this machine (Ollama, LM Studio, llama.cpp) at their usual ports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

PROBE_SECONDS = 0.3
"""A local server answers at once if it runs; nobody should wait for a guess."""
_MOST_BYTES = 1_000_000


class LocalServer(NamedTuple):
    """`list_url` lists the models; litellm reaches them with `prefix` and `api_base`."""

    title: str
    list_url: str
    prefix: str
    api_base: str


LOCAL_SERVERS = (
    LocalServer("Ollama", "http://127.0.0.1:11434/api/tags", "ollama_chat", "http://127.0.0.1:11434"),
    LocalServer("LM Studio", "http://127.0.0.1:1234/v1/models", "lm_studio", "http://127.0.0.1:1234/v1"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080/v1/models", "openai", "http://127.0.0.1:8080/v1"),
)


class Found(NamedTuple):
    server: LocalServer
    models: tuple[str, ...]

    @property
    def model(self) -> str:
        return f"{self.server.prefix}/{self.models[0]}"


def is_loopback(address: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(address).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def find_servers(servers: Sequence[LocalServer] = LOCAL_SERVERS) -> list[Found]:
    """The servers that answer in time and have a model, in order. All are asked at once."""
    from concurrent.futures import ThreadPoolExecutor

    if not servers:
        return []
    with ThreadPoolExecutor(max_workers=len(servers)) as pool:
        listed = list(pool.map(lambda server: list_models(server.list_url), servers))
    return [Found(server, models) for server, models in zip(servers, listed, strict=True) if models]


def list_models(url: str, *, api_key: str = "", seconds: float = PROBE_SECONDS) -> tuple[str, ...]:
    """The chat models of an Ollama or OpenAI-compatible server; () if there is no valid answer in time."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.request("GET", parts.path, headers=headers)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES) if response.status == 200 else b""
        finally:
            connection.close()
        listed = json.loads(body) if body else {}
    except (OSError, HTTPException, ValueError):
        return ()
    rows = (listed.get("models") or listed.get("data") or []) if isinstance(listed, dict) else []
    names = [str(row.get("id") or row.get("name") or "") for row in rows if isinstance(row, dict)]
    return tuple(name for name in names if name and "embed" not in name.lower())
