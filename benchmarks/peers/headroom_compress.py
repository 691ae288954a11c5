"""headroom: `compress`, called in the process as intended before every request.

It has no target. Its model for prose is on no package index; all else of it runs.
"""

from __future__ import annotations

import os

os.environ["HEADROOM_OFFLINE"] = "1"

from typing import Any

from headroom import compress
from headroom.tokenizers import get_tokenizer
from side import Adapter, Row, plain_row, serve

MODEL = "gpt-4o"


class Headroom(Adapter):
    variants = ("compress",)
    each_request = ("compress",)
    counter = "its tokenizer"

    def native(self, rows: list[Row]) -> Any:
        return [plain_row(row) for row in rows]

    def plain(self, native: Any) -> list[Row]:
        return list(native)

    def count(self, native: Any) -> int:
        return int(get_tokenizer(MODEL).count_messages(native))

    def compact(self, native: Any, task: Row) -> Any:
        return compress(native, MODEL, task["window_tokens"], kompress_model="disabled").messages


if __name__ == "__main__":
    serve(Headroom())
