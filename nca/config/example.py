"""The example of a settings file, generated from the schema, and values as TOML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from nca.config.schema import KEYS, Key, about_section
from nca.config.tables import Row

_WIDTH = 110

_EXAMPLE_HEAD = """\
# All settings of nca with their defaults. Remove the `#` in front of a line to change it.
# `nca config init` writes this file as .nca/config.toml, for one project; ~/.config/nca/config.toml is for all.
# `nca config show` lists the current values and where they come from.
"""

_EXAMPLE_TAIL = """\
# Settings of model and context for one model, or for all models whose name matches:
#
#     [for."anthropic/*".context]
#     compact_threshold = 0.9
"""


def render_example() -> str:
    """The text of `.nca/config.toml.example`: valid TOML that sets nothing."""
    parts = [_EXAMPLE_HEAD]
    for section, keys in sections():
        if section:
            parts.append(f"\n\n# {about_section(section)}.\n[{section}]\n")
        parts += [_example_entry(key) for key in keys]
    return "".join(parts) + "\n\n" + _EXAMPLE_TAIL


def toml_value(value: Any) -> str:
    """A setting's value as TOML, on one line and without control characters."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value:_}" if abs(value) >= 10_000 else str(value)
        case float():
            return repr(value)
        case Row():
            return toml_value(value.plain())
        case dict():
            return "{" + ", ".join(f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items()) + "}"
        case str():
            return '"' + "".join(_escaped(char) for char in value) + '"'
        case _:
            return "[" + ", ".join(toml_value(item) for item in value) + "]"


def toml_key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else toml_value(name)


def sections() -> Iterator[tuple[str, list[Key]]]:
    for section, keys in groupby(KEYS.values(), key=lambda key: key.name.rpartition(".")[0]):
        yield section, list(keys)


def _example_entry(key: Key) -> str:
    unit = f" In {key.unit}." if key.unit else ""
    own = " Only your own file may set it." if key.user_only else ""
    own = f" In a project's file: {key.trust_note}." if key.trust_note else own
    valid = "" if key.value_type.valid == "text" else f" Valid: {key.value_type.valid}."
    text = f"{key.about}{unit}{valid}{own}"
    lines = textwrap.wrap(text, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    last = key.name.rpartition(".")[2]
    if key.value_type.row is not None:
        # Indented: an example, not a default.
        example = [table_head(key), *key.value_type.row.EXAMPLE]
        return "\n" + "".join(f"# {line}\n" for line in lines) + "".join(f"#     {line}\n" for line in example)
    return "\n" + "".join(f"# {line}\n" for line in lines) + f"# {last} = {toml_value(key.default)}\n"


def table_head(key: Key) -> str:
    return f"[{key.name}.NAME]" if key.value_type.is_named else f"[[{key.name}]]"


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
