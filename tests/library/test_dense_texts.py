"""No result of the library is above its budget by o200k, whatever the text is made of."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import nca
from nca.context.budget import Budget
from nca.errors import ContextDoesNotFit
from nca.vocabulary import _o200k
from nca.wire import message_to_dict
from tests.context.test_transcripts import CONVERSATIONS, conversation

Rows = list[dict[str, Any]]
RANDOM = random.Random(7)
DENSE = {
    "hexadecimal": RANDOM.randbytes(150_000).hex(),
    "base64": base64.b64encode(RANDOM.randbytes(200_000)).decode(),
    "minified": "".join(f"var a{n}=function(b,c){{return b[{n}]?c({n * 7}):d}};" for n in range(6_000)),
    "chinese": "会议讨论了调查结果，没有人同意它的说法。那么明天再来吧！" * 6_000,
    "emoji": "🦀👩‍👩‍👧‍👦🇪🇺🏳️‍🌈" * 9_000,
    "russian": "Результаты опроса обсуждали долго, и никто с ними не согласился. " * 5_000,
    "numbers": " ".join(f"{RANDOM.random():.9f};{n}" for n in range(20_000)),
    "spaces": "\t \n   }" * 40_000,
}


def spoken(text: str, size: int) -> Rows:
    """Questions, calls, results and answers that are made of a text."""
    parts = [text[at : at + size] for at in range(0, min(len(text), 24 * size), size)]
    rows: Rows = [{"role": "system", "content": "You are a test. " + parts[0][:200]}]
    for number, part in enumerate(parts):
        call = {"name": "shell", "arguments": f'{{"command":"{part[: size // 4].translate({10: 32, 9: 32, 34: 39})}"}}'}
        rows += [
            {"role": "user", "content": f"{number} {part[: size // 2]}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": part},
            {"role": "assistant", "content": part[: size // 3]},
        ]
    return [*rows, {"role": "user", "content": "Go on. " + parts[-1][:100]}]


def real_tokens(rows: Rows) -> int:
    """Counted by tiktoken, from the texts that are sent: no count of nca's is asked."""
    return sum(4 + sum(len(_o200k().encode_ordinary(text)) for text in _texts(row)) for row in rows)


def _texts(row: dict[str, Any]) -> Iterator[str]:
    content = row.get("content") or ""
    yield from [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
    for call in row.get("tool_calls") or ():
        yield from (call["function"]["name"], call["function"]["arguments"])


@cache
def counted(kind: str, size: int) -> tuple[Rows, int]:
    """Rows and their tokens, which take longer to count than to be compacted."""
    rows = spoken(DENSE[kind], size)
    return rows, real_tokens(rows)


@pytest.mark.parametrize("window", [4_000, 32_000, 200_000])
@pytest.mark.parametrize("size", [600, 9_000])
@pytest.mark.parametrize("kind", DENSE)
def test_dense_text_is_within_its_budget(kind: str, size: int, window: int) -> None:
    rows, tokens = counted(kind, size)
    try:
        result = nca.compact(rows, context_window=window)
    except ContextDoesNotFit:
        fixed = [rows[0], rows[-1]]
        assert real_tokens(fixed) > Budget.of(window).budget_tokens // 2, "what must stay leaves no room"
        return
    assert real_tokens(result.messages) <= result.tokens_after <= result.budget_tokens
    assert tokens <= result.tokens_before


@pytest.mark.parametrize("window", [4_000, 8_000, 16_000])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_real_session_is_within_its_budget(name: str, window: int) -> None:
    rows = [message_to_dict(message) for message in conversation(name)]
    try:
        result = nca.compact(rows, context_window=window)
    except ContextDoesNotFit:
        return
    assert real_tokens(result.messages) <= result.tokens_after <= result.budget_tokens


@pytest.mark.parametrize("kind", DENSE)
def test_a_view_of_dense_text_is_within_its_budget(kind: str) -> None:
    view = nca.ContextView(context_window=16_000)
    rows = spoken(DENSE[kind], 3_000)
    for end in range(2, len(rows) + 1, 7):
        fitted = view.fit(rows[:end])
        assert real_tokens(fitted.messages) <= fitted.used_tokens <= fitted.budget_tokens
