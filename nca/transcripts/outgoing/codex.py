"""Codex's rollouts, as version 0.171.0 reads them: `nca.transcripts.formats.codex` says how they look.

The items are what the model is sent, the events what the screen shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from nca.messages import Message, Usage
from nca.transcripts.formats.codex import FORMAT
from nca.transcripts.outgoing.conversation import Agent, Media, Outgoing, Sent, iso, pieces, thoughts

_VERSION = "0.171.0"
_SUMMARIZED = (
    "Another language model started to solve this problem and produced a summary of its thinking process. You also "
    "have access to the state of the tools that were used by that language model. Use this to build on the work that "
    "has already been done and avoid duplicating work. Here is the summary produced by the other language model, use "
    "the information in this summary to assist with your own analysis:"
)
"""How Codex begins a summary, and knows one at its next compaction."""
Item = dict[str, Any]


class Codex(Agent):
    format = FORMAT

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        began = datetime.fromtimestamp(out.began_at, UTC)
        folder = FORMAT.folder(env, home) / "sessions" / f"{began:%Y/%m/%d}"
        return folder / f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{out.id}.jsonl"

    def command(self, out: Outgoing, file: Path) -> str:
        return f"codex resume {out.id}"

    def left_out(self, out: Outgoing) -> dict[str, int]:
        failures = [sent for sent in out.sent if sent.message.is_error]
        return {"name": int(bool(out.name)), "thought": thoughts(out), "failure mark": len(failures)}

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        meta = {
            "id": out.id,
            "timestamp": iso(out.began_at),
            "cwd": out.directory,
            "originator": "codex_cli_rs",
            "cli_version": _VERSION,
            "source": "cli",
        }
        yield _row(out.began_at, "session_meta", meta)
        yield from chain.from_iterable(map(_rows, out.earlier))
        if out.summary:
            history = [{"type": "message", "role": "user", "content": [_text("user", f"{_SUMMARIZED}\n{out.summary}")]}]
            yield _row(out.compacted_at, "compacted", {"message": "", "replacement_history": history})
        yield from chain.from_iterable(map(_rows, out.later))


def _rows(sent: Sent) -> Iterator[dict[str, Any]]:
    message = sent.message
    for item in _items(message):
        yield _row(sent.at, "response_item", item)
    text = message.text.strip()
    if text and message.role in ("user", "assistant") and not message.is_synthetic:
        kind = "user_message" if message.role == "user" else "agent_message"
        yield _row(sent.at, "event_msg", {"type": kind, "message": text})
    if sent.usage is not None:
        usage = _usage(sent.usage)
        info = {"total_token_usage": usage, "last_token_usage": usage}
        yield _row(sent.at, "event_msg", {"type": "token_count", "info": info})


def _row(at: float, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": iso(at), "type": kind, "payload": payload}


def _items(message: Message) -> list[Item]:
    content = [_part(message.role, piece) for piece in pieces(message)]
    if message.role == "tool":
        texts = [part["text"] for part in content if "text" in part]
        output = texts[0] if len(content) == len(texts) == 1 else content
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": output}]
    said: list[Item] = [{"type": "message", "role": message.role, "content": content}] if content else []
    return said + [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]


def _part(role: str, piece: str | Media) -> Item:
    if isinstance(piece, str):
        return _text(role, piece)
    if piece.media_type and not piece.media_type.startswith("image/"):
        return _text(role, piece.named)
    return {"type": "input_image", "image_url": piece.address or f"data:{piece.media_type};base64,{piece.data}"}


def _text(role: str, text: str) -> Item:
    return {"type": "output_text" if role == "assistant" else "input_text", "text": text}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.prompt_tokens,
        "cached_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.completion_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


AGENT = Codex()
