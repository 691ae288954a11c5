"""Events of a session as hypothesis strategies: texts, calls, turns, settings and models."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from nca.config.extensions import STAGES
from nca.config.loaded import LoadedSettings, defaults
from nca.messages import Message, ToolCall, clean_text
from nca.models.catalog import ModelFacts, describe
from tests.context.moods import MOODS

SYSTEM = "You are a test of the engine. 日本語 🦀"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("grep", "shell")
]
KNOWN = (
    ModelFacts("tiny/model", "tiny", 1_000),
    ModelFacts("anthropic/small", "anthropic", 3_000),
    ModelFacts("embedded/usual", "embedded", 8_000, reuses_prefix=True),
    ModelFacts("mistral/usual", "mistral", 16_000),
    describe("nobody/knows-its-window"),
    ModelFacts("gemini/large", "gemini", 2_000_000),
)
MODELS = {facts.name: facts for facts in KNOWN}
PIECES = (
    "a",
    "word ",
    "x = f(y)\n",
    "日本語",
    "🦀🎉",
    "A sentence. Another one.\n\n",
    "Error: no such file\n",
    "src/a.py#123 ",
)
short = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    st.sampled_from(["", "  ", "a\0b", "Always use tabs.", "\ud83e half of a crab", "[Tool result cleared]", "Go on."]),
)
texts = st.one_of(
    short, st.builds(lambda piece, n: piece * n, st.sampled_from(PIECES), st.sampled_from([5, 60, 400, 2_000]))
)
huge = st.sampled_from([20_000, 20_000, 20_000, 60_000, 60_000, 60_000, 200_000, 2_000_000])
"""Bytes in one line or message, which may be more than a window."""
names = st.sampled_from(["read_file", "write_file", "grep", "shell", "skill", "bad name!"])
arguments = st.one_of(
    st.sampled_from(
        ["{}", "not json", "[1]", "", '{"path": "src/a.py"}', '{"path": "./src/a.py"}', '{"command": "make"}']
    ),
    st.builds(lambda n: f'{{"path": "src/b.py", "offset": {n}, "limit": 10}}', st.integers(1, 30)),
    st.just('{"path": "src/a.py", "content": "' + "z" * 900 + '"}'),
)
ids = st.one_of(st.just(""), st.just(""), st.sampled_from(["a", "b", "with space", "x" * 60, "\ud83e"]))
"""An empty one is made unique."""
calls = st.lists(st.tuples(ids, names, arguments), min_size=1, max_size=5)
reading = st.sampled_from(["src/a.py", "src/b.py"]).map(lambda path: [("", "read_file", f'{{"path": "{path}"}}')])
Wanted = tuple[str, str, str]
Turn = tuple[str, list[tuple[list[Wanted], str]], str]
rounds = st.lists(st.tuples(st.one_of(reading, calls), texts), max_size=4)
turns: st.SearchStrategy[list[Turn]] = st.lists(st.tuples(texts, rounds, texts), min_size=1, max_size=4)
biases = st.sampled_from([None, 0.6, 0.8, 1.0, 1.2, 1.4])
"""What a provider reports, over what it would be believed to count; None: it reports nothing."""
moods = st.sampled_from(MOODS)
models = st.sampled_from(sorted(MODELS))
settings_of_a_session = st.fixed_dictionaries(
    {
        "context.stages": st.one_of(
            st.just(STAGES), st.permutations(STAGES).map(tuple), st.sampled_from([(stage,) for stage in STAGES])
        ),
        "context.max_turns": st.sampled_from([0, 0, 3]),
        "context.max_messages": st.sampled_from([0, 0, 4]),
        "context.summarize.role": st.sampled_from(["user", "user", "system"]),
        "context.target_ratio": st.sampled_from([0.5, 0.5, 0.3]),
    }
)


@cache
def configured(values: tuple[tuple[str, Any], ...]) -> LoadedSettings:
    return defaults().with_values(dict(values), "the test")


def cleaned(message: Message) -> Message:
    """What is stored of a message: the same without lone surrogates."""
    content = message.content
    if isinstance(content, str):
        content = clean_text(content)
    elif content is not None:
        content = tuple(msgspec.structs.replace(part, text=clean_text(part.text)) for part in content)  # type: ignore[union-attr]
    calls = tuple(ToolCall(clean_text(c.id), c.name, clean_text(c.arguments)) for c in message.tool_calls)
    return msgspec.structs.replace(
        message, content=content, tool_calls=calls, tool_call_id=clean_text(message.tool_call_id)
    )
