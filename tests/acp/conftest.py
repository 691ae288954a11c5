"""One nca that serves an editor, for all tests: each test has a session of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
import pytest
import pytest_asyncio

from nca.testing.provider import Provider
from tests.acp.client import Editor, connected


@dataclass
class Desk:
    """The editor, the agent that it talks to, the provider behind that, and where nca keeps what it keeps."""

    editor: Editor
    agent: Any
    provider: Provider
    home: Path
    work: Path = field(default_factory=Path)

    async def session(self, **more: Any) -> str:
        """A new session in the test's folder."""
        made = await self.agent.new_session(cwd=str(self.work), mcp_servers=[], **more)
        await self.editor.until(lambda: bool(self.editor.of(made.session_id, "available_commands_update")))
        return str(made.session_id)

    async def ask(self, session: str, *blocks: Any) -> str:
        """Send a prompt; why it stopped."""
        given = [acp.text_block(block) if isinstance(block, str) else block for block in blocks]
        return str((await self.agent.prompt(session_id=session, prompt=given)).stop_reason)


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with Provider(models=("test-model", "other-model", "no-money")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def serving(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    home = tmp_path_factory.mktemp("home")
    editor = Editor()
    async with connected(editor, provider.url, home) as agent:
        yield Desk(editor, agent, provider, home)
        editor.begin_anew()


@pytest_asyncio.fixture(loop_scope="session")
async def desk(serving: Desk, tmp_path: Path) -> Desk:
    """A fresh folder, and an editor that has forgotten the test before."""
    await initialize(serving)
    serving.editor.begin_anew()
    serving.work = tmp_path
    return serving


async def initialize(desk: Desk, *, files: bool = False, terminal: bool = False, forms: bool = False) -> Any:
    both = acp.schema.ElicitationCapabilities(
        form=acp.schema.ElicitationFormCapabilities(), url=acp.schema.ElicitationUrlCapabilities()
    )
    fs = acp.schema.FileSystemCapabilities(read_text_file=files, write_text_file=files)
    offers = acp.schema.ClientCapabilities(fs=fs, terminal=terminal, elicitation=both if forms else None)
    return await desk.agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=offers)
