"""OpenAI Agents SDK: the session keeps the whole conversation, and every request of a run fits the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import RunConfig, RunContextWrapper, SQLiteSession, function_tool
from agents.run import CallModelData, ModelInputData

import nca


class FittedSession(SQLiteSession):
    """`Runner.run(agent, text, session=session, context=session, run_config=session.run_config)`.

    db_path    the database of the SDK's session; ":memory:" keeps nothing
    arguments  as for `nca.ContextView`: model, context_window, tools, summarizer …, and `state`, the `view.state` of an
               earlier process; without it the view begins anew, and nothing is lost
    """

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **arguments: Any) -> None:
        super().__init__(session_id, db_path)
        self._arguments = arguments
        self.view = nca.ContextView(**arguments)

    @property
    def run_config(self) -> RunConfig:
        """For one run: its view goes on from the last run. Items may have been taken back (`pop_item`) meanwhile."""
        self.view = nca.ContextView(**{**self._arguments, "state": self.view.state})
        return RunConfig(call_model_input_filter=self._fitted)

    async def _fitted(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of one request. It begins with all items of the session, and ends with those of this run."""
        fitted = await self.view.afit({"input": data.model_data.input})
        return ModelInputData(input=fitted.messages, instructions=data.model_data.instructions)


@function_tool
async def recall(ctx: RunContextWrapper[FittedSession], query: str = "", expand: str = "") -> str:
    """Search what was said before, or show message 57 or 57-60 whole (expand)."""
    return await ctx.context.view.arecall(query=query, expand=expand)
