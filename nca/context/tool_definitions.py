"""Tool definitions as a model reads them, to count their tokens.

OpenAI's models get them as TypeScript declarations, others as the JSON of their schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nca.context.tokenizers import Tokenizer
from nca.context.tokens import text_tokens

CLAUDE_PREAMBLE_TOKENS = 346
"""What Anthropic adds to every request with tools ("Tool use with Claude", pricing): up to 346 tokens."""
_TYPES = {"integer": "number", "number": "number", "boolean": "boolean", "null": "null", "string": "string"}
_MOST_DEEP = 8


def tools_tokens(text: str, tokenizer: Tokenizer) -> int:
    """Tokens of tool definitions as `tools_text` gives them, with what the provider adds; 0 for none."""
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
