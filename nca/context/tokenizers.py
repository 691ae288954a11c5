"""Whose tokenizer a model has, and how its tokens follow from those that nca counts.

Everything is counted in o200k (`nca.vocabulary`). Samples of the text show how another vocabulary differs, if litellm
ships it; for all other models a factor is used until the model has reported.
"""

from __future__ import annotations

import re

import msgspec

from nca.vocabulary import Name


class Tokenizer(msgspec.Struct, frozen=True):
    """A model's tokenizer as far as it is known before the model has reported.

    vocabulary          the known one that is nearest to it
    factor              its tokens for each of that vocabulary, rather too many than too few
    usual               tokens of that vocabulary for each of o200k, in code and English prose
    is_exact            the vocabulary is the model's own
    reads_declarations  tool definitions reach the model as TypeScript declarations, not as JSON
    """

    vocabulary: Name = "o200k"
    factor: float = 1.0
    usual: float = 1.0
    is_exact: bool = False
    reads_declarations: bool = False


O200K = Tokenizer(is_exact=True, reads_declarations=True)
CL100K = Tokenizer("cl100k", 1.0, 1.01, is_exact=True, reads_declarations=True)
CLAUDE = Tokenizer("claude", 1.06, 1.11)
"""Claude 3 to 4.6 reported 1.01 to 1.11 times what the published tokenizer counts, over two sets of real sessions."""
NEW_CLAUDE = Tokenizer("claude", 1.38, 1.11)
"""Anthropic's documentation of Claude Opus 4.7: its tokenizer makes up to 1.35 times the tokens of the one before."""
MISTRAL = Tokenizer(factor=1.2)
OTHER = Tokenizer(factor=1.15)
"""How far the vocabularies of Llama, Qwen, DeepSeek and Mistral are above o200k; docs/decisions.md has the table."""

_FIRST_NEW_CLAUDE = (4, 7)
_CLAUDE_VERSION = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_GPT = re.compile(r"gpt|codex|chatgpt|\bo\d\b")
_CL100K = re.compile(r"gpt-?3\.?5|gpt-?35|gpt-4(?![.o\d])(?!-?5)")
_MISTRAL = ("stral", "xtral")
"""Mistral, Codestral, Devstral, Magistral, Ministral; Mixtral, Pixtral, Voxtral."""


def tokenizer_of(provider: str = "", model: str = "") -> Tokenizer:
    """The tokenizer of a model; without one, of the provider's own models. Nothing named: o200k itself."""
    provider, name = provider.lower(), f"{provider}/{model}".lower()
    if "claude" in name or provider == "anthropic":
        return _claude(name)
    if _GPT.search(name) if model else provider in ("", "openai", "azure"):
        return CL100K if _CL100K.search(name) else O200K
    return MISTRAL if any(part in name for part in _MISTRAL) else OTHER


def _claude(name: str) -> Tokenizer:
    found = _CLAUDE_VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return NEW_CLAUDE if version >= _FIRST_NEW_CLAUDE else CLAUDE
