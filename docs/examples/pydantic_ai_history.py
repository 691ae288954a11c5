"""pydantic-ai: a capability that fits every request into the window. The agent's history stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, RunContext, TextPart, ToolReturnPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import RetryPromptPart, SystemPromptPart
from pydantic_ai.models import ModelRequestContext

import nca


@dataclass
class FitContext(AbstractCapability[Any]):
    """`Agent(capabilities=[FitContext(view)])`; `view.recall` answers a tool that reads what was compacted."""

    view: nca.ContextView

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        pieces = [piece for message in request_context.messages for piece in _pieces(message)]
        fitted = self.view.fit([_row(piece) for piece in pieces])
        request_context.messages = fitted.shown(pieces, _shortened, ModelRequest.user_text_prompt)
        return request_context


def _pieces(message: ModelMessage) -> Sequence[ModelMessage]:
    """A request in parts: nca counts a prompt and each tool result as a message of its own."""
    return [message] if isinstance(message, ModelResponse) else [replace(message, parts=[one]) for one in message.parts]


def _row(piece: ModelMessage) -> dict[str, Any]:
    if isinstance(piece, ModelResponse):
        functions = [(one.tool_call_id, one.tool_name, one.args_as_json_str()) for one in piece.tool_calls]
        calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in functions]
        return {"role": "assistant", "content": piece.text or "", **({"tool_calls": calls} if calls else {})}
    match piece.parts[0]:
        case SystemPromptPart(content=text):
            return {"role": "system", "content": text}
        case ToolReturnPart() as part:
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
        case RetryPromptPart(tool_name=str()) as part:
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
        case part:
            return {"role": "user", "content": str(getattr(part, "content", ""))}


def _shortened(piece: ModelMessage, text: str) -> ModelMessage:
    if isinstance(piece, ModelResponse):
        return replace(piece, parts=[TextPart(text), *piece.tool_calls])
    return replace(piece, parts=[replace(piece.parts[0], content=text)])
