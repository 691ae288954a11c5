"""The front matter of a Markdown file: YAML between two lines of `---`, as skills and custom commands have it.

People write it by hand, so a value with a colon need not be quoted, and fields that nca does not know are ignored.
"""

from __future__ import annotations

import re
from typing import Any

from nca.tools.tool import ToolError

_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN_VALUE = re.compile(r"""(?m)^([\w-]+:[ \t]+)(?!["'|>])(\S.*?)[ \t]*\r?$""")
"""A value on the line of its name that has no quotes: people write `Use it for: this` and `[branch] [words]`."""


def split(text: str) -> tuple[str | None, str]:
    """The front matter and the text after it; None where the text has none."""
    match = _FRONT.match(text)
    return (match[1], text[match.end() :]) if match else (None, text)


def fields(front: str) -> dict[str, Any]:
    """The fields by name. Raises ToolError where it is no YAML, or no list of fields."""
    # Imported here: most projects have no such file, and a start without one does not pay for it.
    import yaml

    for text in (front, _PLAIN_VALUE.sub(_quoted, front)):
        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
    raise ToolError("its front matter is not valid YAML")


def line(found: dict[str, Any], name: str) -> str:
    """A field as one line of text; "" if it is missing or is no text. Of `[words]` the brackets stay."""
    value = found.get(name)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = f"[{', '.join(value)}]"
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and value is not False else ""


def _quoted(match: re.Match[str]) -> str:
    return match[1] + "'" + match[2].replace("'", "''") + "'"
