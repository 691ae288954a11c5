"""A conversation in a real framework with the example of docs/embed.md, in a process of its own.

    python -m tests.library.framework_talks langchain|openai_agents|pydantic_ai

Each line of standard input is a conversation: `run|stream|sync URL [USER …]`. Without users, one person states a rule,
asks a question in each turn, and at last for the first log. With users, each of them says a word and then asks for it,
all at the same time with one agent. Answers with a line of JSON, a list with an object for each person: `kept`, the
number of messages that the framework still has, and `recalled`, what the tool found.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PICTURE = bytes(range(256)) * 1_000
WINDOW = 9_000
TURNS = 10
RULE = "Always answer with the unit in parentheses."
QUESTIONS = [
    f"{RULE} This is question 0",
    *(f"This is question {number}" for number in range(1, TURNS)),
    "What did the first log say?",
]
LOG = "".join(f"sensor {number} reads {number * 7 % 101} degrees\n" for number in range(250))
TELL, ASK = "My word is", "What is my word?"

Talk = Callable[[str, list[str]], Awaitable[tuple[int, str]]]
"""Has one conversation, of this id and with these questions."""


def read_log(number: int) -> str:
    """Read a log."""
    return f"log {number}\n{LOG}"


def langchain(url: str, how: str) -> Talk:
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

    async def talk(user: str, questions: list[str]) -> tuple[int, str]:
        state: dict[str, Any] = {}
        for text in questions:
            asked = {"messages": [("user", text)]}
            config = {"configurable": {"thread_id": user}}
            if how == "sync":
                state = await asyncio.to_thread(agent.invoke, asked, config)
            elif how == "stream":
                modes = [mode async for mode, _ in agent.astream(asked, config, stream_mode=["messages", "values"])]
                assert modes.count("messages") > 1
                state = (await agent.aget_state(config)).values
            else:
                state = await agent.ainvoke(asked, config)
        return len(state["messages"]), state["messages"][-2].content

    return talk


def openai_agents(url: str, how: str) -> Talk:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(disabled=True)
    example = import_module("openai_agents_session")
    model = OpenAIChatCompletionsModel("test-model", AsyncOpenAI(base_url=url, api_key="x", max_retries=0))
    agent = Agent("test", model=model, tools=[function_tool(read_log), example.recall])

    async def talk(user: str, questions: list[str]) -> tuple[int, str]:
        session = example.FittedSession(user, context_window=WINDOW)
        for text in questions:
            if how == "stream":
                streamed = Runner.run_streamed(
                    agent, text, session=session, context=session, run_config=session.run_config
                )
                assert len([event async for event in streamed.stream_events()]) > 1
            else:
                await Runner.run(agent, text, session=session, context=session, run_config=session.run_config)
        items = await session.get_items()
        return len(items), str(items[-2])

    return talk


def pydantic_ai(url: str, how: str) -> Talk:
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(
        OpenAIChatModel("test-model", provider=OpenAIProvider(base_url=url, api_key="x")),
        capabilities=[import_module("pydantic_ai_history").FitContext(context_window=WINDOW)],
        tools=[read_log],
    )

    async def talk(user: str, questions: list[str]) -> tuple[int, str]:
        history: list[Any] = []
        for text in questions:
            if how == "stream":
                async with agent.run_stream(text, message_history=history) as streamed:
                    assert [piece async for piece in streamed.stream_text(delta=True)]
                    history = streamed.all_messages()
            else:
                picture = [] if history else [BinaryContent(PICTURE, media_type="image/png")]
                history = (await agent.run([*picture, text], message_history=history)).all_messages()
        return len(history), str(history[-2])

    return talk


async def main(talk: Talk, users: list[str]) -> list[tuple[int, str]]:
    if not users:
        return [await talk("one", QUESTIONS)]
    return await asyncio.gather(*(talk(user, [f"{TELL} {user}.", ASK]) for user in users))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "examples"))
    framework = {"langchain": langchain, "openai_agents": openai_agents, "pydantic_ai": pydantic_ai}[sys.argv[1]]
    for line in sys.stdin:
        how, address, *users = line.split()
        found = asyncio.run(main(framework(address, how), users))
        answer = json.dumps([{"kept": kept, "recalled": recalled} for kept, recalled in found])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
