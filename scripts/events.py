"""Write `docs/events.md` from the definitions of what `nca run` prints for programs. A test compares them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from nca import events, messages
from nca.agent import stats
from nca.cli import run
from nca.sessions import view_rows

FILE = Path(__file__).resolve().parents[1] / "docs" / "events.md"
_HEAD = """\
# Output for programs

This page is written from the definitions in the code by `python scripts/events.py`. It says what `nca run --json` and
`nca run --stream ndjson` print on standard output, as UTF-8. The two options exclude each other. Notices for people go
to standard error. Programs in Python get the same events as objects (`nca.events`, [the library](library.md)).

Every field is there, also if it is empty; only a `response` leaves out what the provider did not report. Later
versions may add fields and types of events: ignore those that you do not know.

## One object

`nca run --json "What is in a.txt?"` prints one line when the turn is over. If nothing could begin (a wrong option, an
unknown session, no key), it has only `reason` (`failed`), `text` (`""`) and `error`. The exit code is that of
[every command](tour.md#8-without-a-terminal). All other commands with `--json` print `{"error": …}` when they fail.

"""
_STREAM = """\
## A stream of events

`nca run --stream ndjson` prints one object a line, as it happens; `type` says which. The stream ends in one of these
ways:

- `turn_finished` is the last event of a turn, however it ended: its `exit_code` is that of the process.
- `error_raised` alone: nothing could begin, as with a wrong option or an unknown session. During a turn it comes before
  `turn_finished`, whose `error` says what ended the turn.
- With neither, the process was killed or its output was closed. What the turn did until then is in the session.

A turn with a call that nobody could approve:

"""
_SERVER = messages.Server("127.0.0.1", 40427)
_EXAMPLE = (
    events.TurnStarted("01a39661", turn=1),
    events.RequestStarted(1, "openai/gpt-4.1", used_tokens=1_708, budget_tokens=128_000, server=_SERVER),
    events.TextDelta("I create it."),
    events.UsageReported(messages.Usage(1_844, 21), "openai/gpt-4.1"),
    events.ToolStarted("call_1", "shell", '{"command": "touch x"}', "$ touch x"),
    events.ApprovalAsked(
        *("call_1", "shell", "execute", "$ touch x"),
        command="touch x",
        subject="touch x",
        directory="/home/ada/project",
        allowed_by="subject",
    ),
    events.ApprovalGiven("call_1", "shell", "unanswered"),
    events.ToolFinished("call_1", "shell", is_error=True, summary="nobody could be asked", seconds=0.0),
    events.RequestStarted(2, "openai/gpt-4.1", used_tokens=1_903, budget_tokens=128_000, server=_SERVER),
    events.TextDelta("I may not."),
    events.TurnFinished("answered", "I may not.", steps=2, seconds=1.5, exit_code=1, is_unanswered=True),
)
_BESIDE = "## Parts of both\n\n"
_TABLE = "| field | type | meaning |\n| --- | --- | --- |\n"
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", NoneType: "null"}
_NAMES = {name: found for one in (events, messages, stats, view_rows) for name, found in vars(one).items()}
_ROW = re.compile(r"(?P<names>[a-z_]+(?:, [a-z_]+)*) {2,}(?P<meaning>\S.*)")


def render() -> str:
    """The text of `docs/events.md`."""
    beside = dict[str, type]()
    parts = [_HEAD, *_fields(run.RunResult, beside), "\n", _STREAM, "```json\n"]
    parts += [f"{msgspec.json.encode(event).decode()}\n" for event in _EXAMPLE]
    parts.append("```\n\n")
    for event in get_args(events.Event):
        parts += [f"### `{event.__struct_config__.tag}`\n\n", *_described(event), *_fields(event, beside), "\n"]
    parts.append(_BESIDE)
    done = set[str]()
    while waiting := [name for name in beside if name not in done]:
        for name in waiting:
            parts += [f"### {_title(name)}\n\n", *_described(beside[name]), *_fields(beside[name], beside), "\n"]
            done.add(name)
    return "".join(parts).rstrip("\n") + "\n"


def _fields(record: type, beside: dict[str, type]) -> Iterator[str]:
    yield _TABLE
    meanings = {name: text for one in reversed(record.__mro__) for name, text in _meanings(one).items()}
    for name, hint in get_type_hints(record, localns=_NAMES).items():
        if not name.startswith("_"):
            yield f"| `{name}` | {_kind(hint, beside)} | {_in_json(meanings.get(name, ''))} |\n"


def _kind(hint: Any, beside: dict[str, type]) -> str:
    """The type of a value in JSON. A record is put `beside`, to be described once."""
    inner, kind = get_args(hint), get_origin(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if kind is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if kind in (Union, UnionType):
        return " or ".join(_kind(one, beside) for one in inner)
    if kind is dict:
        return f"object of {_kind(inner[1], beside)}"
    if kind is list or (kind is tuple and inner[1:] == (...,)):
        return f"list of {_kind(inner[0], beside)}"
    if kind is tuple:
        return f"[{', '.join(_kind(one, beside) for one in inner)}]"
    beside.setdefault(hint.__name__, hint)
    return f"[{_title(hint.__name__)}](#{_title(hint.__name__).replace(' ', '-')})"


def _title(name: str) -> str:
    """The words of a class's name."""
    return re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()


def _described(record: type) -> list[str]:
    """What the record is: the paragraphs of its docstring that are no list of fields."""
    paragraphs = [one for one in (inspect.getdoc(record) or "").split("\n\n") if not _ROW.match(one)]
    return [f"{_in_json(' '.join(one.split()))}\n\n" for one in paragraphs]


def _meanings(record: type) -> dict[str, str]:
    """The meaning of each field: from the list in the class's docstring, or the string below the field."""
    if record.__module__.partition(".")[0] != "nca":
        return {}
    found: dict[str, str] = {}
    for paragraph in inspect.cleandoc(record.__doc__ or "").split("\n\n"):
        names: list[str] = []
        for line in paragraph.splitlines() if _ROW.match(paragraph) else ():
            if row := _ROW.fullmatch(line):
                names = row["names"].split(", ")
            for name in names:
                found[name] = f"{found.get(name, '')} {row['meaning'] if row else line.strip()}".strip()
    [body] = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _in_json(text: str) -> str:
    """Words of the code as a reader of JSON knows them."""
    text = re.sub(r"\bNone\b", "null", re.sub(r" \(`?nca\.[a-zA-Z_.]+`?\)", "", text))
    for event in get_args(events.Event):
        text = re.sub(rf"\b{event.__name__}\b", f"`{event.__struct_config__.tag}`", text)
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    if sys.argv[1:]:
        sys.exit("usage: python scripts/events.py")
    FILE.write_text(render(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
