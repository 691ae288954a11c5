"""LangChain and LangGraph: every request fits the window, and the graph's state keeps the whole conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_openai_messages
from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

import nca


class FittedState(AgentState[Any]):
    """The view is a part of the state, so a checkpoint keeps it too."""

    context_view: NotRequired[dict[str, Any]]


class FitContext(AgentMiddleware[FittedState, Any]):
    """Arguments as for `nca.ContextView`: model, context_window, system_prompt, tools, summarizer …"""

    state_schema = FittedState

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._arguments = arguments
        self.tools = [self._recall_tool()]

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> ExtendedModelResponse[Any]:
        view = self._view(request.state)
        fitted = view.fit(convert_to_openai_messages(request.messages))
        return _answered(view, handler(_fitting(request, fitted)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]
    ) -> ExtendedModelResponse[Any]:
        view = self._view(request.state)
        fitted = await view.afit(convert_to_openai_messages(request.messages))
        return _answered(view, await handler(_fitting(request, fitted)))

    def _view(self, state: Any) -> nca.ContextView:
        return nca.ContextView(state=state.get("context_view"), **self._arguments)

    def _recall_tool(self) -> BaseTool:
        @tool
        def recall(state: Annotated[dict[str, Any], InjectedState], query: str = "", expand: str = "") -> str:
            """Search what was said before, or show message 57 or 57-60 whole (expand)."""
            view = self._view(state)
            view.fit(convert_to_openai_messages(state["messages"]))
            return view.recall(query=query, expand=expand)

        return recall


def _fitting(request: ModelRequest[Any], fitted: nca.FittedRequest) -> ModelRequest[Any]:
    shown: list[AnyMessage] = fitted.shown(request.messages, _shortened, HumanMessage)
    return request.override(messages=shown)


def _answered(view: nca.ContextView, response: Any) -> ExtendedModelResponse[Any]:
    return ExtendedModelResponse(response, Command(update={"context_view": view.state}))


def _shortened(message: AnyMessage, text: str) -> AnyMessage:
    return message.model_copy(update={"content": text})
