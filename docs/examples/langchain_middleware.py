"""LangChain and LangGraph: every request fits the window, and the graph's state keeps the whole conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_openai_messages
from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import InjectedState
from langgraph.runtime import Runtime

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

    def before_model(self, state: FittedState, runtime: Runtime[Any]) -> dict[str, Any]:
        view, _ = self._fitted(state)
        return {"context_view": view.state}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        _, fitted = self._fitted(request.state)
        shown: list[AnyMessage] = fitted.shown(request.messages, _shortened, HumanMessage)
        return handler(request.override(messages=shown))

    def _fitted(self, state: Any) -> tuple[nca.ContextView, nca.FittedRequest]:
        view = nca.ContextView(state=state.get("context_view"), **self._arguments)
        return view, view.fit(convert_to_openai_messages(state["messages"]))

    def _recall_tool(self) -> BaseTool:
        @tool
        def recall(state: Annotated[dict[str, Any], InjectedState], query: str = "", expand: str = "") -> str:
            """Search what was said before, or show message 57 or 57-60 whole (expand)."""
            return self._fitted(state)[0].recall(query=query, expand=expand)

        return recall


def _shortened(message: AnyMessage, text: str) -> AnyMessage:
    return message.model_copy(update={"content": text})
