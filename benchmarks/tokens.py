"""Count with a real tokenizer: nobody's own estimate, and no code of nca."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.side import text_of

Row = dict[str, Any]
CL100K, O200K = "cl100k_base", "o200k_base"
"""The vocabularies of OpenAI's older and newer models."""
MESSAGE_TOKENS = 4
"""What a message takes beside its text, as OpenAI's cookbook counts."""


def tokens(rows: Sequence[Row], vocabulary: str = CL100K) -> int:
    """Tokens of what is said, and four for each message."""
    return sum(message_tokens(row, vocabulary) for row in rows)


def message_tokens(row: Row, vocabulary: str = CL100K) -> int:
    """Tokens of one message."""
    return MESSAGE_TOKENS + _text_tokens(text_of(row), vocabulary)


@cache
def _text_tokens(text: str, vocabulary: str) -> int:
    return len(_encoding(vocabulary).encode(text, disallowed_special=()))


@cache
def _encoding(vocabulary: str) -> Any:
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tokenizers()))
    import tiktoken

    return tiktoken.get_encoding(vocabulary)


def tokenizers() -> Path:
    """A folder with tiktoken's vocabularies, which comes with litellm: nobody has to fetch them."""
    found = find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "litellm_core_utils" / "tokenizers"
