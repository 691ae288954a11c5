"""OpenAI Agents SDK: the session keeps the whole conversation, and every request of a run fits the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import FunctionTool, RunConfig, SQLiteSession, function_tool
from agents.run import CallModelData, ModelInputData

import nca


class FittedSession(SQLiteSession):
    """A session for `Runner.run(agent, text, session=session, run_config=session.run_config)`.

    db_path    the database of the SDK's session; ":memory:" keeps nothing
    state      `view.state` of an earlier process; without it the view begins anew, and nothing is lost
    arguments  as for `nca.ContextView`: model, context_window, system_prompt, tools, summarizer …
    """

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **arguments: Any) -> None:
        super().__init__(session_id, db_path)
        self.view = nca.ContextView(**arguments)
        self.run_config = RunConfig(call_model_input_filter=self._fitted)

    def recall_tool(self) -> FunctionTool:
        """The tool with which the agent reads what was compacted. Give it to the agent beside its other tools."""

        @function_tool
        def recall(query: str = "", expand: str = "") -> str:
            """Search what was said before, or show message 57 or 57-60 whole (expand)."""
            return self.view.recall(query=query, expand=expand)

        return recall

    def _fitted(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of one request. It begins with all items of the session, and ends with those of this run."""
        fitted = self.view.fit({"input": data.model_data.input})
        return ModelInputData(input=fitted.messages, instructions=data.model_data.instructions)
