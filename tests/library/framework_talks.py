"""A conversation in a real framework with the example of docs/embed.md, in a process of its own.

    python -m tests.library.framework_talks langchain URL

The person states a rule, asks a question in each turn, and at last for the first log. Writes JSON: `kept`, the number
of messages that the framework still has, and `recalled`, what the tool found.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

WINDOW = 9_000
TURNS = 10
RULE = "Always answer with the unit in parentheses."
QUESTIONS = [
    f"{RULE} This is question 0",
    *(f"This is question {number}" for number in range(1, TURNS)),
    "What did the first log say?",
]
LOG = "".join(f"sensor {number} reads {number * 7 % 101} degrees\n" for number in range(250))


def read_log(number: int) -> str:
    """Read a log."""
    return f"log {number}\n{LOG}"


async def langchain(url: str) -> tuple[int, str]:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver

    agent: Any = create_agent(
        ChatOpenAI(model="test-model", base_url=url, api_key=lambda: "x", max_retries=0),
        [tool(read_log)],
        middleware=[import_module("langchain_middleware").FitContext(context_window=WINDOW)],
        checkpointer=InMemorySaver(),
    )
    state: dict[str, Any] = {}
    for text in QUESTIONS:
        state = agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    return len(state["messages"]), state["messages"][-2].content


async def openai_agents(url: str) -> tuple[int, str]:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(disabled=True)
    session = import_module("openai_agents_session").FittedSession("1", context_window=WINDOW)
    model = OpenAIChatCompletionsModel("test-model", AsyncOpenAI(base_url=url, api_key="x", max_retries=0))
    agent = Agent("test", model=model, tools=[function_tool(read_log), session.recall_tool()])
    for text in QUESTIONS:
        await Runner.run(agent, text, session=session, run_config=session.run_config)
    items = await session.get_items()
    return len(items), str(items[-2])


async def pydantic_ai(url: str) -> tuple[int, str]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    import nca

    view = nca.ContextView(context_window=WINDOW)

    def recall(query: str = "", expand: str = "") -> str:
        """Search what was said before, or show message 57 whole (expand)."""
        return view.recall(query=query, expand=expand)

    agent = Agent(
        OpenAIChatModel("test-model", provider=OpenAIProvider(base_url=url, api_key="x")),
        capabilities=[import_module("pydantic_ai_history").FitContext(view)],
        tools=[read_log, recall],
    )
    history: list[Any] = []
    for text in QUESTIONS:
        history = (await agent.run(text, message_history=history)).all_messages()
    return len(history), str(history[-2])


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "examples"))
    talk = {"langchain": langchain, "openai_agents": openai_agents, "pydantic_ai": pydantic_ai}[sys.argv[1]]
    kept, recalled = asyncio.run(talk(sys.argv[2]))
    sys.stdout.write(json.dumps({"kept": kept, "recalled": recalled}) + "\n")
