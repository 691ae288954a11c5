"""A small file of each format, for tests that damage it. Every format of the registry has one, by its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.transcripts.formats import samples
from tests.transcripts.formats import test_claude_code as claude
from tests.transcripts.formats import test_codex as codex

Write = Callable[[Path], Path]
"""Writes the sample into an empty folder, and gives the file that the format reads."""


def _claude(folder: Path) -> Path:
    path = folder / "s-1.jsonl"
    path.write_bytes(
        claude.raw(
            {"type": "summary", "summary": "A title", "leafUuid": "u1"},
            claude.user("u1", None, "Read both."),
            claude.answer("a1", "u1", {"type": "thinking", "thinking": "hm", "signature": "s"}, message="m1"),
            claude.answer("a2", "a1", "I will.", claude.call("t1", path="a"), message="m1"),
            claude.result("r1", "a2", "t1", [{"type": "text", "text": "x"}, claude.picture()]),
            claude.boundary("b1", "r1", preservedSegment={"headUuid": "a1", "tailUuid": "r1"}),
            claude.summary("s1", "b1"),
            claude.user("u2", "s1", "Go on"),
            claude.answer("a3", "u2", "Done."),
            claude.user("x1", None, "Subtask", isSidechain=True),
            claude.row("attachment", "q1", "a3", attachment={"type": "queued_command", "prompt": "more"}),
        )
    )
    return path


def _codex(folder: Path) -> Path:
    path = folder / "rollout-1.jsonl"
    history = [codex.message("a")["payload"], {"type": "compaction", "encrypted_content": "g"}]
    path.write_bytes(
        codex.raw(
            codex.meta(),
            codex.row("turn_context", model="gpt-5-codex"),
            codex.message("You are Codex.", "developer"),
            codex.begins(),
            codex.message("a"),
            codex.item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
            codex.call("c1"),
            codex.output("c1"),
            codex.tokens(100, 20),
            codex.message("b", "assistant"),
            codex.row("compacted", message="Talk.", window_number=1),
            codex.begins(),
            codex.message("c"),
            codex.back(1),
            codex.begins(),
            codex.message("d"),
            codex.row("compacted", message="", replacement_history=[history[0]]),
            codex.message("e", "assistant"),
        )
    )
    return path


SAMPLES: dict[str, Write] = {
    "claude": _claude,
    "codex": _codex,
    "pi": samples.pi,
    "copilot": samples.copilot,
    "gemini": samples.gemini,
    "qwen": samples.qwen,
    "opencode": samples.opencode,
    "llm": samples.llm_threads,
    "aider": samples.aider,
    "openhands": samples.openhands_lines,
    "swe-agent": samples.mini_swe_agent,
    "sharegpt": samples.sharegpt,
    "chatgpt": samples.chatgpt,
    "crush": samples.crush,
    "goose": samples.goose,
    "cline": samples.cline,
    "gptme": samples.gptme,
    "kimi": samples.kimi,
    "kimi-code": samples.kimi_code,
    "vibe": samples.vibe,
}
