"""The public MCP reference servers from npm, if they are installed (scripts/test_mcp_servers.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nca.config.example import toml_value

TEST_SERVERS = "NCA_TEST_MCP_SERVERS"
"""A folder with their node_modules, as `make test` has it."""
NAMES = ("everything", "filesystem", "memory")


def programs() -> dict[str, Path]:
    """Each server's program; skips where node or one of them is not here."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed (apt-get install nodejs npm)")
    folder = Path(os.environ.get(TEST_SERVERS, "")) / "node_modules" / "@modelcontextprotocol"
    found = {name: folder / f"server-{name}" / "dist" / "index.js" for name in NAMES}
    if not os.environ.get(TEST_SERVERS) or not all(path.is_file() for path in found.values()):
        pytest.skip(f"the public MCP servers are not installed ({TEST_SERVERS}; scripts/test_mcp_servers.py gets them)")
    return found


WAITING = "[mcp]\nwait_seconds = 120\n"
"""On a busy machine node may take longer to start than a chat waits by default."""


def tables(home: Path, **more: object) -> str:
    """The three servers for a config.toml: files below home/shelf, a memory in home/memory.jsonl."""
    shelf = home / "shelf"
    shelf.mkdir(exist_ok=True)
    found = programs()
    lines = []
    for name, extra in (("everything", ()), ("filesystem", (str(shelf),)), ("memory", ())):
        lines += [f"[mcp.servers.{name}]", 'command = "node"', f"args = {toml_value([str(found[name]), *extra])}"]
        lines += [f"{key} = {toml_value(value)}" for key, value in more.items()]
        if name == "memory":
            lines.append(f"env = {{ MEMORY_FILE_PATH = {toml_value(str(home / 'memory.jsonl'))} }}")
    return WAITING + "\n".join(lines) + "\n"


def processes(home: Path) -> list[int]:
    """The servers that run now with something of `home` in their environment."""
    listed = subprocess.run(["ps", "-eww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    found = []
    for line in listed.splitlines():
        pid, state, arguments = line.split(None, 2)
        if state.startswith("Z") or "server-" not in arguments:
            continue
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if f"HOME={home}\0".encode() in environment:
            found.append(int(pid))
    return found
