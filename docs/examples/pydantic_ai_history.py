"""pydantic-ai: a capability that fits every request into the window. The agent's history stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from pydantic_ai import FunctionToolset, ModelMessage, ModelRequest, ModelResponse, RunContext, TextPart, ToolReturnPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import BinaryContent, FileUrl, RetryPromptPart, SystemPromptPart

import nca


class FitContext(AbstractCapability[Any]):
    """states: `view.state` by conversation id, a dict or your database; arguments: as for `nca.ContextView`."""

    def __init__(self, states: Any = None, **arguments: Any) -> None:
        self.states, self.arguments = {} if states is None else states, arguments

    async def for_run(self, ctx: RunContext[Any]) -> FitContext:
        """Each run has a view of its own, which goes on from the last run of the same conversation."""
        run = copy(self)
        run.view = nca.ContextView(state=self.states.get(ctx.conversation_id), **self.arguments)
        return run

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset([self.recall])

    async def recall(self, query: str = "", expand: str = "") -> str:
        """Search what was said before, or show message 57 or 57-60 whole (expand)."""
        return await self.view.arecall(query=query, expand=expand)

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        pieces = [piece for message in request_context.messages for piece in _pieces(message)]
        fitted = await self.view.afit([_row(piece) for piece in pieces])
        self.states[ctx.conversation_id] = self.view.state
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
    part = piece.parts[0]
    if isinstance(part, ToolReturnPart | RetryPromptPart) and part.tool_name:
        text = part.model_response_str() if isinstance(part, ToolReturnPart) else part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
    role = "system" if isinstance(part, SystemPromptPart) else "user"
    content = getattr(part, "content", "")
    return {"role": role, "content": content if isinstance(content, str) else [*map(_part, content)]}


def _part(one: Any) -> dict[str, Any]:
    """A text, or a picture or file in its kind of part, so that it is counted and named as one."""
    if not isinstance(one, BinaryContent | FileUrl):
        return {"type": "text", "text": one if isinstance(one, str) else str(getattr(one, "content", ""))}
    where = one.url if isinstance(one, FileUrl) else one.data_uri
    if one.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": where}}
    return {"type": "file", "file": {"filename": one.identifier, "file_data": where}}


def _shortened(piece: ModelMessage, text: str) -> ModelMessage:
    if isinstance(piece, ModelResponse):
        return replace(piece, parts=[TextPart(text), *piece.tool_calls])
    return replace(piece, parts=[replace(piece.parts[0], content=text)])
