"""Whose tokenizer a model has, how its tokens follow from those that nca counts, and tool definitions as it reads them.

Everything is counted in o200k (`nca.vocabulary`). Samples of the text show how another vocabulary differs, if litellm
ships it; for all other models a factor is used until the model has reported. OpenAI's models get tool definitions as
TypeScript declarations, others as the JSON of their schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nca.context.tokens import text_tokens
from nca.vocabulary import Name


class Tokenizer(msgspec.Struct, frozen=True):
    """The known facts about a model's tokenizer before the model has reported.

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
"""The excess of the vocabularies of Llama, Qwen, DeepSeek and Mistral over o200k; docs/decisions.md has the table."""

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


CLAUDE_PREAMBLE_TOKENS = 346
"""Tokens that Anthropic adds to every request with tools ("Tool use with Claude", pricing): up to 346 tokens."""
_TYPES = {"integer": "number", "number": "number", "boolean": "boolean", "null": "null", "string": "string"}
_MOST_DEEP = 8


def tools_tokens(text: str, tokenizer: Tokenizer) -> int:
    """Tokens of tool definitions as `tools_text` returns them, with the provider's addition; 0 for none."""
    preamble = CLAUDE_PREAMBLE_TOKENS if text and tokenizer.vocabulary == "claude" else 0
    return preamble + text_tokens(text)


def tools_text(tools: Sequence[Mapping[str, Any]], tokenizer: Tokenizer) -> str:
    """Tool definitions as a model with this tokenizer reads them; "" for none."""
    if not tools:
        return ""
    return _declarations(tools) if tokenizer.reads_declarations else _json(list(tools))


def _declarations(tools: Sequence[Mapping[str, Any]]) -> str:
    """As OpenAI's models render them: a namespace with a type for each function, and comments for descriptions."""
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for tool in tools:
        function = tool.get("function", tool)
        if not isinstance(function, Mapping):
            lines.append(_json(tool))
            continue
        lines += _comment(function)
        parameters = function.get("parameters") or function.get("input_schema")
        has_some = isinstance(parameters, Mapping) and parameters.get("properties")
        shape = f"_: {_type(parameters, 0)}" if has_some else ""
        lines += [f"type {function.get('name', '')} = ({shape}) => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _comment(schema: Mapping[str, Any]) -> Iterator[str]:
    for line in str(schema.get("description") or "").splitlines():
        yield f"// {line}"


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > _MOST_DEEP:
        return _json(schema)
    if isinstance(values := schema.get("enum"), list):
        return " | ".join(map(_json, values))
    for key in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(key), list):
            return " | ".join(_type(choice, depth + 1) for choice in choices)
    match schema.get("type"):
        case "object" if isinstance(schema.get("properties"), Mapping):
            return _object(schema, depth)
        case "array":
            return f"{_type(schema.get('items', {}), depth + 1)}[]"
        case str(name) if name in _TYPES:
            return _TYPES[name]
        case _:
            # A reference, a pattern or anything else that has no short form.
            return _json(schema) if schema else "any"


def _object(schema: Mapping[str, Any], depth: int) -> str:
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set[str]()
    lines = ["{"]
    for name, one in schema["properties"].items():
        if isinstance(one, Mapping):
            lines += _comment(one)
        default = f" // default: {_json(one['default'])}" if isinstance(one, Mapping) and "default" in one else ""
        lines.append(f"{name}{'' if name in needed else '?'}: {_type(one, depth + 1)},{default}")
    return "\n".join([*lines, "}"])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
