"""The import of litellm, in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

WATCHED = """
import sys
opened = []
network = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: opened.append(event) if event in network else None)
"""


def _run(code: str, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED + code], cwd=directory, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_choosing_and_describing_do_not_import_it(tmp_path: Path) -> None:
    code = """
import nca.models.catalog, nca.models.choose, nca.models.client
nca.models.catalog.describe("gpt-4o")
print([name for name in ("litellm", "openai", "httpx", "pydantic") if name in sys.modules], opened)
"""
    assert _run(code, tmp_path) == "[] []"


def test_an_endpoint_with_openais_protocol_is_asked_without_it(tmp_path: Path) -> None:
    code = """
import asyncio
from nca.config.schema import ModelSettings
from nca.models.catalog import describe
from nca.models.client import ModelRequest, ProviderModel
from nca.testing.provider import Provider

async def ask():
    with Provider() as provider:
        model = ProviderModel(describe("openai/mine"), ModelSettings(api_base=provider.url), print, api_key="key")
        await model.load()
        await model.ask(ModelRequest([{"role": "user", "content": "Hello"}], reasoning="high"), lambda delta: None)
        await model.close()

asyncio.run(ask())
print([name for name in ("litellm", "openai", "httpx", "pydantic") if name in sys.modules])
"""
    assert _run(code, tmp_path) == "[]"


def test_the_import_is_quiet_and_takes_nothing_from_the_directory(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_BASE=http://evil.invalid/v1\n")
    code = """
import asyncio, os
from nca.models.client import warm
module = asyncio.run(warm())
assert asyncio.run(warm()) is module
print(module.__name__, os.environ.get("OPENAI_API_BASE"), opened)
"""
    assert _run(code, tmp_path) == "litellm None []"
