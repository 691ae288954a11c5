"""A conversation through LiteLLM, in a process of its own: its callbacks and clients are global.

Each line that it reads is an order:

    callback PROVIDER_URL
    guardrail NCA_SERVE_URL

The first talks with the callback of docs/examples, and writes how many messages its caller has. The second gives a long
conversation to LiteLLM's own guardrail, and writes what it makes of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import litellm
from litellm.proxy.guardrails.guardrail_hooks.headroom.headroom import HeadroomGuardrail

from tests.library.framework_talks import LOG, QUESTIONS, RULE, WINDOW

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
WORK = 12


async def with_callback(url: str) -> dict[str, Any]:
    """Every other request streams. The caller's own messages stay whole."""
    sys.path.insert(0, str(EXAMPLES))
    from litellm_callback import FittedRequests  # type: ignore[import-not-found]

    litellm.callbacks = [FittedRequests(context_window=WINDOW)]
    messages: list[dict[str, Any]] = []
    for number, question in enumerate(QUESTIONS):
        messages.append({"role": "user", "content": f"{question}\n\n```\n{LOG[: len(LOG) // 4]}```"})
        reply: Any = await litellm.acompletion(
            model="openai/test-model",
            api_base=url,
            api_key="x",
            messages=messages,
            stream=bool(number % 2),
            litellm_session_id="alice-1",
        )
        if number % 2:
            text = "".join([piece.choices[0].delta.content or "" async for piece in reply])
        else:
            text = reply.choices[0].message.content
        messages.append({"role": "assistant", "content": text})
    return {"kept": len(messages), "texts": [row["content"] for row in messages if row["role"] == "assistant"]}


def work() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": RULE}]
    for number in range(WORK):
        call = {"name": "read_log", "arguments": json.dumps({"number": number})}
        rows += [
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": LOG},
            {"role": "assistant", "content": f"Log {number} is fine."},
            {"role": "user", "content": [{"type": "text", "text": f"Go on with log {number + 1}."}]},
        ]
    return rows


async def with_guardrail(url: str) -> dict[str, Any]:
    guardrail = HeadroomGuardrail(api_base=url, model="gpt-4", guardrail_name="nca", unreachable_fallback="fail_closed")
    rows = work()
    data: dict[str, Any] = {"messages": rows, "model": "gpt-4", "metadata": {}, "litellm_call_id": "1"}
    inputs: Any = {"structured_messages": rows}
    made: Any = await guardrail.apply_guardrail(inputs, data, "request", None)
    [said] = data["metadata"]["standard_logging_guardrail_information"]
    return {"before": rows, "after": made["structured_messages"], "said": said["guardrail_response"]}


async def main() -> None:
    for line in sys.stdin:
        what, url = line.split()
        found = await {"callback": with_callback, "guardrail": with_guardrail}[what](url)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    await litellm.close_litellm_async_clients()


if __name__ == "__main__":
    asyncio.run(main())
