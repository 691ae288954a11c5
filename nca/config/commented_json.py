"""Read JSON as people write it: with comments, and with commas after the last entry.

Both become blanks, so every place in the text stays. Any text is read, or refused in a time that grows with its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# What is never closed reaches to the end: looking for its end again from each place would take quadratic time.
_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\Z|\\\Z)'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*(?:.*?\*/|.*+(?P<open>))", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|[{{\[]\s*+,|,(?=\s*+[}}\]])", re.DOTALL)


class NotJson(ValueError):
    """The text is not JSON. The message is a few words."""


def without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(_without_comment, text)


def without_last_commas(text: str) -> str:
    return _LAST_COMMA.sub(lambda found: " " if found[0] == "," else found[0], text)


def parsed(text: str, *, pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] = dict) -> Any:
    """The value of a text. Raises NotJson.

    pairs: makes an object of its keys and values
    """
    try:
        return json.loads(without_last_commas(without_comments(text)), object_pairs_hook=pairs)
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("it is not whole JSON") from None
    except json.JSONDecodeError as error:
        raise NotJson(_reason(text, error)) from None
    except ValueError:
        # A number of five thousand digits.
        raise NotJson("a value of it cannot be read") from None


def _without_comment(found: re.Match[str]) -> str:
    is_comment = not found[0].startswith('"') and found["open"] is None
    return " " * len(found[0]) if is_comment else found[0]


def _reason(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "it is not one JSON value"
    if error.msg != "Expecting value" or error.pos >= len(text.rstrip()):
        return "it is not whole JSON"
    return f"line {text.count(chr(10), 0, error.pos) + 1} is not JSON"
