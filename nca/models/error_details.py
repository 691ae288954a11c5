"""Extract status, codes and messages from a provider's error, wherever providers, gateways and libraries put them.

An error is an exception (with a body, a response, causes), a text (often JSON in text in JSON), or a mapping.
`read_error` flattens all of it; `failures` decides what it means.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 60
"""Gateways nest errors; each of up to eight gateways adds two objects and a text."""

_MAX_BODY_CHARS = 200_000
_MAX_SENTENCE_CHARS = 4_000
_MAX_SENTENCES = 40
"""The first sentences say what is wrong; a page or a dump after them must not cost time."""
_MAX_OPENINGS = 8

_CODE_KEYS = frozenset(
    {"code", "type", "status", "error_type", "errorcode", "error_code", "reason", "__type", "finish_reason"}
)
_ECHO_KEYS = frozenset({"messages", "input", "inputs", "prompt", "contents", "request", "headers", "tools", "stack"})
"""Keys of echoed input: a user's message about overflows is not an overflow."""

_NAME_KEYS = frozenset({"id", "request_id", "requestid", "object", "domain", "model", "@type", "metadata_type"})
"""Keys of identifiers, which are not messages."""

_ECHO = re.compile(r"\{\s*\\*['\"](?:role|content|parts)\\*['\"]\s*:", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'](\w{3,60})\\*[\"']")
_STATUS_IN_TEXT = re.compile(
    r"(?:error code|status code|status|http(?:/\d(?:\.\d)?)?|response code)\s*[:=]?\s*\(?([45]\d\d)\b", re.IGNORECASE
)
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class ErrorDetails:
    """One error, flattened.

    statuses    HTTP statuses, the outermost first
    codes       lower-case codes, types and reasons; a parameter's name as "param:NAME"
    texts       messages, the innermost last, without echoed input
    counts      integers by key (n_ctx, prompt_tokens)
    classes     names of the exception classes and their bases
    headers     of the response, lower-case
    """

    statuses: list[int] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    headers: dict[str, str] = field(default_factory=dict)
    provider: str = ""
    answers: int = 0
    """Number of answers (choices) in the body: the provider did not see an error."""
    answered_chars: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def read_error(error: object, *, status: int | None = None, provider: str = "") -> ErrorDetails:
    """The details of an exception, a response body or a mapping. Never raises on odd input."""
    details = ErrorDetails(provider=provider.lower() if isinstance(provider, str) else "")
    if isinstance(status, int):
        details.statuses.append(status)
    if isinstance(error, BaseException):
        for link in causes(error):
            _from_exception(link, details)
    else:
        _walk(error, "", 0, details)
    if not details.statuses:
        details.statuses += [int(found) for found in _STATUS_IN_TEXT.findall(details.text)[:1]]
    # A chain of exceptions repeats messages; the last place is the innermost.
    details.texts = list(dict.fromkeys(reversed(details.texts)))[::-1]
    return details


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, the original exception, its cause and its context, and theirs."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < MAX_DEPTH:
        link = waiting.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        original = getattr(link, "original_exception", None)
        waiting.append(original if isinstance(original, BaseException) else None)
        waiting.append(link.__cause__)
        waiting.append(None if link.__suppress_context__ else link.__context__)


def _from_exception(error: BaseException, details: ErrorDetails) -> None:
    details.classes.update(kind.__name__ for kind in type(error).__mro__)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and not isinstance(status, bool):
        details.statuses.append(status)
    provider = getattr(error, "llm_provider", None)
    if isinstance(provider, str) and not details.provider:
        details.provider = provider.lower()
    for name, value in _headers(error):
        details.headers.setdefault(name.lower(), value)
    _walk(str(error), "", 0, details)
    _walk(getattr(error, "body", None), "", 0, details)
    # The body of a response, if it was read.
    content = getattr(getattr(error, "response", None), "_content", None)
    _walk(content if isinstance(content, bytes) else None, "", 0, details)


def _headers(error: BaseException) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for holder in (getattr(error, "response", None), error):
        headers: Any = getattr(holder, "headers", None) or getattr(holder, "litellm_response_headers", None)
        if hasattr(headers, "items"):
            found += [(str(name), str(value)) for name, value in headers.items()]
    return found


def _walk(value: object, key: str, depth: int, details: ErrorDetails) -> None:
    if depth > MAX_DEPTH:
        return
    match value:
        case bool() | None:
            return
        case int():
            details.counts.setdefault(key, value)
            if key in {"code", "status", "status_code", "statuscode"}:
                _take_status(value, details)
        case str() | bytes():
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            _take_text(text[:_MAX_BODY_CHARS], key, depth, details)
        case Mapping():
            _take_mapping(value, depth, details)
        case list() | tuple() if key == "loc":
            # pydantic's way to a field, without "body".
            way = ".".join(str(step) for step in value[:8]).lower()
            details.codes.add(f"param:{way.removeprefix('body.')}")
        case list() | tuple():
            for item in value[:50]:
                _walk(item, key, depth + 1, details)
        case _:
            return


def _take_status(value: int, details: ErrorDetails) -> None:
    if 400 <= value <= 599:
        details.statuses.append(value)
    else:
        details.codes.add(str(value))


def _take_text(text: str, key: str, depth: int, details: ErrorDetails) -> None:
    stripped = text.strip()
    if key in _CODE_KEYS and len(stripped) <= 100:
        if stripped.isascii() and stripped.isdecimal():
            _take_status(int(stripped), details)
        elif stripped:
            details.codes.add(stripped.lower())
            details.texts[:0] = [stripped] if " " in stripped else []
        return
    if key == "param":
        details.codes.add(f"param:{stripped.lower()}")
        return
    if key == "retrydelay":
        # Gemini's: a bare "37s" means nothing without its key.
        details.texts.insert(0, f"retryDelay: {stripped[:20]}")
        return
    place = len(details.texts)
    rest = " ".join(_take_nested(stripped, depth, details).split())
    echo = _ECHO.search(rest)
    rest = rest[: echo.start()].strip() if echo else rest
    rest = rest[:_MAX_SENTENCE_CHARS]
    if rest and key not in _NAME_KEYS and len(details.texts) < _MAX_SENTENCES:
        # The text around a nested body is the gateway's; the innermost message comes last.
        details.texts.insert(place, rest)
        if "{" in rest:
            details.codes.update(word.lower() for word in _QUOTED.findall(rest))


def _take_nested(text: str, depth: int, details: ErrorDetails) -> str:
    """Read the first JSON object, array or Python literal in a text, and return the text around it."""
    for opening in list(re.finditer(r"[{\[]|\"(?=[\[{\"\\])", text))[:_MAX_OPENINGS]:
        start = opening.start()
        nested, end = _read(text, start)
        # A list of names in a sentence is a part of it.
        kinds = Mapping if start else Mapping | str
        if isinstance(nested, Mapping | str) or (isinstance(nested, list) and nested and isinstance(nested[0], kinds)):
            if not _is_echo(nested):
                _walk(nested, "", depth + 1, details)
            return f"{text[:start]} {text[end:]}".strip()
    return text


def _read(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    end = max(text.rfind("}"), text.rfind("]")) + 1
    try:
        return ast.literal_eval(text[start:end]), end
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None, start


def _is_echo(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    keys = _lowered(value).keys()
    return "role" in keys and bool(keys & {"content", "parts"})


def _take_mapping(value: Mapping[Any, Any], depth: int, details: ErrorDetails) -> None:
    if _is_echo(value):
        return
    for name, item in value.items():
        key = str(name).lower()
        if key == "choices" and isinstance(item, list | tuple):
            _take_choices(item, depth, details)
        elif key not in _ECHO_KEYS:
            _walk(item, key, depth + 1, details)


def _take_choices(choices: list[Any] | tuple[Any, ...], depth: int, details: ErrorDetails) -> None:
    """Read the text of an answer only if all of it is an error: relays put errors there."""
    for choice in choices[:4]:
        if not isinstance(choice, Mapping):
            continue
        fields = _lowered(choice)
        details.answers += 1
        _walk(fields.get("finish_reason"), "finish_reason", depth + 1, details)
        holder = fields.get("message") or fields.get("delta")
        content = _lowered(holder).get("content") if isinstance(holder, Mapping) else None
        if isinstance(content, str):
            details.answered_chars += len(content.strip())
            if looks_like_error(content):
                _walk(content, "", depth + 1, details)


def _lowered(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).lower(): item for key, item in value.items()}


def looks_like_error(answer: str) -> bool:
    """Whether a whole answer is a provider's error: a JSON error object, or one line that begins with ERROR."""
    text = answer.strip()
    if text.startswith("{") and text.endswith("}"):
        value, end = _read(text, 0)
        is_error = isinstance(value, Mapping) and bool({"error", "message", "error_message"} & _lowered(value).keys())
        return is_error and end == len(text)
    return text.lower().startswith("error:") and "\n" not in text and len(text) < 400
