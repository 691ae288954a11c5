"""Counting in o200k, and the beginnings and ends of texts that fit."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from nca import vocabulary
from nca.errors import NcaError
from nca.vocabulary import count, count_in, fitting_end, fitting_start, within

KNOWN = [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("1234567", 3), ("你好，世界", 3), ("\ud800", 1)]
texts = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="abcdef0123456789", max_size=9_000),
    st.builds(lambda word, times: word * times, st.text(min_size=1, max_size=12), st.integers(0, 2_000)),
)


@pytest.mark.parametrize(("text", "tokens"), KNOWN)
def test_texts_whose_tokens_are_known(text: str, tokens: int) -> None:
    assert count(text) == tokens


@given(texts)
def test_a_count_is_that_of_tiktoken_and_stays(text: str) -> None:
    encoding = vocabulary._o200k()
    assert isinstance(encoding, tiktoken.Encoding)
    assert count(text) == count(text) == len(encoding.encode_ordinary(text))


@pytest.fixture(scope="module")
def own() -> tiktoken.Encoding:
    """tiktoken's own o200k, from the same file."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"))
        return tiktoken.get_encoding("o200k_base")


@given(st.one_of(texts, st.text(alphabet=" \t\n\r\u00a0aZé\u0301你1½'sſ.-/🦀", max_size=400)))
def test_a_text_is_split_as_tiktoken_splits_it(own: tiktoken.Encoding, text: str) -> None:
    assert vocabulary._o200k().encode_ordinary(text) == own.encode_ordinary(text)


@pytest.mark.parametrize("text", ["a" * 300_000, " " * 300_000, "é" * 300_000, "word " * 60_000])
def test_long_texts_are_counted_in_pieces(text: str) -> None:
    pieces = [text[at : at + 100_000] for at in range(0, len(text), 100_000)]
    assert count(text) == sum(map(count, pieces))


@given(texts, st.integers(0, 3_000))
@example("🦀" * 50, 1)
def test_what_fits_is_within_the_tokens_and_nothing_is_left_that_does(text: str, tokens: int) -> None:
    start, end = fitting_start(text, tokens), fitting_end(text, tokens)
    assert text.startswith(start)
    assert text.endswith(end)
    assert max(count(start), count(end)) <= tokens
    if count(text) <= tokens and len(text) <= 4_096:
        assert start == end == text
    # Steps are counted one by one, so a little may be left.
    assert start == text or count(start) >= 0.9 * tokens - 9


@given(texts, st.integers(1, 500))
def test_what_is_joined_is_within_the_tokens(text: str, tokens: int) -> None:
    joined = within(tokens, tokens, lambda room: fitting_start(text, room // 2) + "…" + fitting_end(text, room // 2))
    assert count(joined) <= tokens or joined == "…"


@pytest.mark.parametrize(("name", "tokens"), [("o200k", 2), ("cl100k", 2), ("claude", 2)])
def test_other_vocabularies_are_there_too(name: vocabulary.Name, tokens: int) -> None:
    assert count_in(name, ["hello world"]) == tokens
    assert count_in(name, []) == 0
    assert count_in(name, ["<|endoftext|>"]) > 1


def test_a_missing_vocabulary_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary._counting.cache_clear()
    monkeypatch.setitem(vocabulary._FILES, "cl100k", "nowhere")
    with pytest.raises(NcaError, match="Tokens cannot be counted: litellm's file nowhere cannot be read"):
        count_in("cl100k", ["a"])


def test_nothing_is_loaded_before_something_is_counted() -> None:
    code = (
        "import sys, nca, nca.vocabulary as v; assert 'tiktoken' not in sys.modules and not v.is_loaded();"
        "v.load_behind(); print(v.count('hello world'), v.is_loaded())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "2 True\n"
