"""Count the tokens of a text with OpenAI's o200k vocabulary, the one unit of every count in nca.

litellm ships the vocabularies as files, so nothing is downloaded. o200k takes 50 MB of memory and 0.3 seconds to load,
so it is loaded when something is first counted; the chat loads it behind the prompt.
"""

from __future__ import annotations

from binascii import a2b_base64
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Literal

from nca.errors import NcaError, system_reason

if TYPE_CHECKING:
    import tiktoken

Name = Literal["o200k", "cl100k", "claude"]

_FILES: dict[Name, str] = {
    "o200k": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "claude": "anthropic_tokenizer.json",
}
"""Files of litellm's `litellm_core_utils/tokenizers`. claude is the tokenizer that Anthropic published for Claude 2."""
_SIMPLE = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
    )
)
_PATTERNS = {
    "o200k": rf"(?:{_SIMPLE})|\s+(?!\S)|\s+",
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
}
"""How a text is split before it is encoded, from `tiktoken_ext.openai_public`.

The alternatives of o200k without a look ahead are one group: they are tried at once, which saves an eighth of a count.
"""
_PIECE_CHARS = 100_000
"""Longer texts are encoded in pieces: the pattern's stack and a single word's merging have limits."""
_STEP_CHARS = 4_096
_STRETCHES, _STRETCH_CHARS = 4, 128
_MOST_KEPT = 65_536

_counts: dict[int, int] = {}
"""Counts of texts by their hash: a log is counted again where another draft or view looks at it."""
_lock = Lock()


def count(text: str) -> int:
    """Tokens of a text. Raises NcaError if the vocabulary is not installed."""
    known = _counts.get(hash(text))
    return _known(hash(text), text, _count) if known is None else known


def about(text: str) -> int:
    """About how many tokens a text has: of a long one, some stretches are counted."""
    if len(text) <= _STRETCHES * _STRETCH_CHARS:
        return count(text)
    return _known(hash((text, _STRETCHES)), text, _about)


def count_in(name: Name, texts: Iterable[str]) -> int:
    """Tokens of all texts together in another vocabulary."""
    return sum(map(count if name == "o200k" else _counting(name), texts))


def fitting_start(text: str, tokens: int) -> str:
    """As much of the text's beginning as has at most this many tokens."""
    return text[: _fitting(text, tokens, lambda first, last: text[first:last], lambda length: text[:length])]


def fitting_end(text: str, tokens: int) -> str:
    """As much of the text's end as has at most this many tokens."""
    size = len(text)

    def ending(length: int) -> str:
        return text[size - length :]

    return ending(_fitting(text, tokens, lambda first, last: text[size - last : size - first], ending))


def within(tokens: int, room: int, cut: Callable[[int], str]) -> str:
    """What `cut` makes of at most `room` tokens, or of less room until the whole has no more than `tokens`.

    The parts of a text may have fewer tokens than the text that they are joined to.
    """
    while True:
        text = cut(max(0, room))
        over = _count(text) - tokens
        if over <= 0 or room <= 0:
            return text
        room -= over


def is_loaded() -> bool:
    """Whether counting needs no load first."""
    return _o200k.cache_info().currsize > 0


def load() -> None:
    """Load the vocabulary, if it is not loaded. Raises NcaError if it is not installed."""
    with _lock:
        _o200k()


def load_behind() -> None:
    """Load the vocabulary in a thread. What fails there is said by the first count."""

    def try_to_load() -> None:
        with suppress(NcaError):
            load()

    Thread(target=try_to_load, name="vocabulary", daemon=True).start()


def _known(key: int, text: str, counted: Callable[[str], int]) -> int:
    known = _counts.get(key)
    if known is None:
        known = counted(text)
        if len(_counts) >= _MOST_KEPT:
            _counts.clear()
        _counts[key] = known
    return known


def _about(text: str) -> int:
    apart = (len(text) - _STRETCH_CHARS) // (_STRETCHES - 1)
    sample = (text[place * apart : place * apart + _STRETCH_CHARS] for place in range(_STRETCHES))
    return round(sum(map(_count, sample)) * len(text) / (_STRETCHES * _STRETCH_CHARS))


def _count(text: str) -> int:
    if not is_loaded():
        load()
    encode = _o200k().encode_ordinary
    if len(text) <= _PIECE_CHARS:
        return len(encode(text))
    return sum(len(encode(text[at : at + _PIECE_CHARS])) for at in range(0, len(text), _PIECE_CHARS))


def _fitting(text: str, tokens: int, part: Callable[[int, int], str], kept: Callable[[int], str]) -> int:
    """How many characters fit, from either end: whole steps first, then a part of the next one."""
    if len(text) <= _STEP_CHARS and count(text) <= tokens:
        return len(text)
    length, left = 0, tokens
    while length < len(text) and (step := _count(part(length, min(len(text), length + _STEP_CHARS)))) <= left:
        length = min(len(text), length + _STEP_CHARS)
        left -= step
    more = range(1, min(_STEP_CHARS, len(text) - length) + 1)
    length += bisect_left(more, True, key=lambda chars: _count(part(length, length + chars)) > left)
    # The steps are counted one by one, and their joins may add tokens.
    while length and (over := _count(kept(length)) - tokens) > 0:
        length = max(0, length - over)
    return length


@cache
def _o200k() -> tiktoken.Encoding:
    return _load("o200k")


@cache
def _counting(name: Literal["cl100k", "claude"]) -> Callable[[str], int]:
    """How a text is counted in another vocabulary, which takes 60 ms to load and stops every thread so long."""
    if name == "claude":
        from tokenizers import Tokenizer

        claude = Tokenizer.from_str(_read(name).decode())
        return _kept(name, lambda text: len(claude.encode(text, add_special_tokens=False).ids))
    encode = _load(name).encode_ordinary
    return _kept(name, lambda text: len(encode(text)))


def _kept(name: Name, counted: Callable[[str], int]) -> Callable[[str], int]:
    return lambda text: _known(hash((name, text)), text, counted)


def _load(name: Literal["o200k", "cl100k"]) -> tiktoken.Encoding:
    import tiktoken

    words = _read(name).split()
    # The file numbers its tokens from 0 on, so only the last number is read.
    ranks = dict(zip(map(a2b_base64, words[::2]), range(int(words[-1]) + 1), strict=True))
    # Special tokens are text where a person or a tool writes them.
    encoding = tiktoken.Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    # The encoder has its own copy, and nothing here asks for this one: it is half of the memory.
    ranks.clear()
    return encoding


def _read(name: Name) -> bytes:
    spec = find_spec("litellm")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    file = folder / "litellm_core_utils" / "tokenizers" / _FILES[name]
    try:
        return file.read_bytes()
    except OSError as error:
        raise NcaError(
            f"Tokens cannot be counted: litellm's file {file.name} cannot be read ({system_reason(error)})",
            advice="Install nca again, so that it gets the litellm that it was made for.",
        ) from error
