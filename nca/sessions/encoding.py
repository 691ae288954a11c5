"""Encode structs as JSON text and decode them. Lone surrogates are cleaned; NUL is an escape in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from nca.errors import StoreDamaged, StoreError
from nca.messages import Message, clean_text

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)


def encode(value: msgspec.Struct) -> str:
    """JSON text that decodes to an equal struct. Raises StoreError if JSON cannot hold the value."""
    return encode_bytes(value).decode()


def encode_bytes(value: msgspec.Struct) -> bytes:
    """The same in UTF-8."""
    try:
        try:
            return _encoder.encode(value)
        except UnicodeEncodeError:
            text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
            return clean_text(text).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"A {type(value).__name__.lower()} cannot be stored: {error}") from error


def decode(text: str | bytes, kind: type[T], what: str) -> T:
    """Decode JSON text as a value of this kind. Raises StoreDamaged, which names `what` was read."""
    try:
        value: T = _decoder(kind).decode(text)
        return value
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError) as error:  # TypeError: damage made it no text
        raise StoreDamaged(f"Cannot read {what}: {error}") from error


def upgraded(body: str) -> str:
    """A stored message as this version writes it. An older nca marked its own text with a flag instead of a source."""
    return body.replace('"is_synthetic":true', '"source":"nca"')


def decode_message(body: str, what: str) -> Message:
    """Decode a stored message. Raises StoreDamaged, which names `what` was read."""
    return decode(body, Message, what)
