"""A tool's typed signature as a JSON schema, and a model's arguments checked against it.

Understood: str, int, float, bool, Literal of texts, list of these, and `| None`; `Annotated[str, "…"]` describes.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_NAMES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Any
    about: str
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is _MISSING


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a tool's `call`, in order."""

    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, method: Callable[..., Any]) -> Signature:
        """Read a method's annotations. Raises TypeError for a type that a schema cannot state."""
        hints = get_type_hints(method, include_extras=True)
        parameters = []
        for name, parameter in inspect.signature(method).parameters.items():
            kind, about = hints[name], ""
            if get_origin(kind) is Annotated:
                kind, about = get_args(kind)[:2]
            _schema(kind)
            parameters.append(Parameter(name, kind, about, parameter.default))
        return cls(tuple(parameters))

    def schema(self) -> dict[str, Any]:
        """A JSON schema object; a new one each time. `read` refuses unknown arguments without a word of it here."""
        properties = {}
        for parameter in self.parameters:
            entry = _schema(parameter.kind)
            if parameter.about:
                entry["description"] = parameter.about
            # An empty default says nothing that "not required" does not, and costs tokens in every request.
            if not parameter.is_required and parameter.default not in (None, "", False):
                entry["default"] = parameter.default
            properties[parameter.name] = entry
        required = [parameter.name for parameter in self.parameters if parameter.is_required]
        return {"type": "object", "properties": properties, "required": required}

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Typed arguments for the call. Raises ValueError with one line that says which argument is wrong.

        Lenient where models are loose and the meaning is plain: "10" and 10.0 for 10, null for "not given".
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if unknown := [name for name in arguments if name not in known]:
            raise ValueError(f"unknown argument {_shown(unknown[0])}; the arguments are: {', '.join(known) or 'none'}")
        typed = {}
        for name, parameter in known.items():
            value = arguments.get(name)
            if value is None:
                if parameter.is_required:
                    raise ValueError(f"missing argument {name} ({_words(parameter.kind)})")
                continue
            try:
                typed[name] = _read(parameter.kind, value)
            except (ValueError, OverflowError):
                raise ValueError(f"argument {name} must be {_words(parameter.kind)}, not {_shown(value)}") from None
        return typed


def _schema(kind: Any) -> dict[str, Any]:
    if kind in _NAMES:
        return {"type": _NAMES[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _schema(inner[0])}
    if origin in (Union, types.UnionType) and len(inner) == 2 and type(None) in inner:
        return _schema(_not_none(inner))
    raise TypeError(f"no JSON schema for {kind!r}")


def _read(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _read(_not_none(inner), value)
    if origin is list and isinstance(value, list):
        return [_read(inner[0], item) for item in value]
    if origin is Literal and isinstance(value, str) and value in inner:
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind is bool and isinstance(value, bool):
        return value
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind in (int, float) and not isinstance(value, bool) and isinstance(value, int | float | str):
        number = float(value)
        if not math.isfinite(number) or (kind is int and number != int(number)):
            raise ValueError("not valid")
        return kind(value) if isinstance(value, int) else kind(number)
    raise ValueError("not valid")


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is list:
        return f"a list ({_words(inner[0])} each)"
    if origin in (Union, types.UnionType):
        return _words(_not_none(inner))
    return {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[kind]


def _not_none(inner: tuple[Any, ...]) -> Any:
    return next(one for one in inner if one is not type(None))


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "something too long to show"
    return text if len(text) <= 80 else text[:79] + "…"
