"""litellm: `trim_messages`, `compress` without an embedder, and how its exceptions tell an overflow."""

from __future__ import annotations

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from typing import Any

import httpx
import litellm
from litellm.compression import compress
from litellm.utils import exception_type, token_counter, trim_messages
from side import Adapter, Row, plain_row, serve

MODEL = "gpt-4o"
PROVIDERS = {"google": "gemini", "google-ai": "gemini", "vertex": "vertex_ai", "together": "together_ai"}


class Refused(Exception):
    """A provider's answer, as its client raises it."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body)
        self.status_code, self.message, self.body = status, body, body
        request = httpx.Request("POST", "https://provider.invalid/v1/chat/completions")
        self.request = request
        self.response = httpx.Response(status, text=body, request=request)


class Litellm(Adapter):
    variants = ("trim_messages", "compress")
    each_request = ("trim_messages", "compress")
    counter = "token_counter"

    def native(self, rows: list[Row]) -> Any:
        return [plain_row(row) for row in rows]

    def plain(self, native: Any) -> list[Row]:
        return list(native)

    def count(self, native: Any) -> int:
        return int(token_counter(model=MODEL, messages=native))

    def first_estimate(self, native: Any, model: str) -> int:
        return int(token_counter(model=model, messages=native))

    def compact(self, native: Any, task: Row) -> Any:
        if task["variant"] == "compress":
            target = task["target_tokens"]
            # It fails at a message without text, as one of calls alone is.
            native = [{**row, "content": row.get("content") or ""} for row in native]
            return compress(native, MODEL, compression_trigger=target, compression_target=target)["messages"]
        return trim_messages(native, model=MODEL, max_tokens=task["target_tokens"])

    def is_overflow(self, error: Row) -> bool:
        provider = error["provider"]
        try:
            exception_type(
                model="model",
                original_exception=Refused(error["status"] or 400, error["body"]),
                custom_llm_provider=PROVIDERS.get(provider, provider),
            )
        except litellm.ContextWindowExceededError:
            return True
        except Exception:  # noqa: BLE001 - any other class means: not an overflow
            return False
        return False


if __name__ == "__main__":
    litellm.suppress_debug_info = True
    serve(Litellm())
