"""The JSON schema of a tool, read from its signature, and the check of a model's arguments against it.

Supported types: str, int, float, bool, Literal of strings, structs and lists of these, and `| None`.
`Annotated[str, "…"]` adds a description.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

_NAMES: dict[Any, tuple[str, str]] = {
    str: ("string", "a string"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    bool: ("boolean", "true or false"),
}
"""Each type's name in a schema, and in an error."""
_BOUNDED: dict[Any, Any] = {
    int: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)],
    float: Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)],
}
"""Numbers of 64 bits, neither infinite nor NaN."""
_VALID = "str, int, float, bool, Literal of texts, msgspec.Struct, lists of these, and | None"
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


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any], is_bound: bool) -> tuple[Parameter, ...]:
    hints = get_type_hints(function, include_extras=True)
    parameters = []
    for name, parameter in [*inspect.signature(function).parameters.items()][is_bound:]:
        is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if name not in hints or not is_named:
            raise TypeError(f"the parameter {parameter} cannot be in a schema; valid: a name with a type of {_VALID}")
        kind, about = hints[name], ""
        if get_origin(kind) is Annotated:
            kind, about = get_args(kind)[:2]
        if get_origin(kind) in (Union, types.UnionType):
            named = [one for one in get_args(kind) if one is not types.NoneType]
            kind = named[0] if len(named) == 1 else kind
        _schema(kind)
        parameters.append(Parameter(name, kind, about, parameter.default))
    return tuple(parameters)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a tool's `call`, in order."""

    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, method: Callable[..., Any]) -> Signature:
        """Read a method's annotations. Raises TypeError for a type that a schema cannot state."""
        # Each conversation has tools of its own, with the same methods.
        return cls(_parameters(getattr(method, "__func__", method), isinstance(method, types.MethodType)))

    def schema(self) -> dict[str, Any]:
        """A new JSON schema object. It does not mention that `read` refuses unknown arguments."""
        properties = {}
        for parameter in self.parameters:
            entry = _schema(parameter.kind)
            if parameter.about:
                entry["description"] = parameter.about
            # An empty default adds nothing to "not required", and would cost tokens in every request.
            if not parameter.is_required and parameter.default not in (None, "", False):
                entry["default"] = parameter.default
            properties[parameter.name] = entry
        required = [parameter.name for parameter in self.parameters if parameter.is_required]
        return {"type": "object", "properties": properties, "required": required}

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Typed arguments for the call. Raises ValueError with one line that names the wrong argument.

        Accepts what models often send if the meaning is clear: "10" and 10.0 for 10, 10 for "10", null for an omitted
        argument.
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
            if parameter.kind is str and type(value) is int:
                value = str(value)
            try:
                # Lax conversion would take 1 for true.
                is_strict = parameter.kind is bool and not isinstance(value, str)
                typed[name] = msgspec.convert(value, _BOUNDED.get(parameter.kind, parameter.kind), strict=is_strict)
            except (msgspec.ValidationError, ValueError):
                raise ValueError(f"argument {name} must be {_words(parameter.kind)}, not {_shown(value)}") from None
        return typed


def _schema(kind: Any) -> dict[str, Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal and all(isinstance(one, str) for one in inner):
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _schema(inner[0])}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        required = [one.name for one in fields if one.required]
        return {"type": "object", "properties": {one.name: _schema(one.type) for one in fields}, "required": required}
    if kind not in _NAMES:
        shown = kind.__name__ if isinstance(kind, type) else kind
        raise TypeError(f"the type {shown} cannot be in a schema; valid: {_VALID}")
    return {"type": _NAMES[kind][0]}


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is list:
        return f"a list ({_words(inner[0])} each)"
    if kind not in _NAMES:
        return "an object with " + ", ".join(one.name for one in msgspec.structs.fields(kind))
    return _NAMES[kind][1]


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "something too long to show"
    return text if len(text) <= 80 else text[:79] + "…"
