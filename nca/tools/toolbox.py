"""The tools that a conversation has: what the model is told of them, and running what it asks for.

Whatever a model sends and whatever a tool raises ends as one outcome; only cancellation passes through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nca.messages import ToolCall, clean_text
from nca.tools.tool import Permission, Tool, ToolOutcome

if TYPE_CHECKING:
    from nca.tools.recall import Archive

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What OpenAI, Anthropic and Gemini all accept as a tool's name."""
_LONGEST_LINE_CHARS = 200


class Toolbox:
    """An ordered set of tools; the order is the order in which the model sees them."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        """Raises ValueError for two tools of one name, or a name that a provider would refuse."""
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("two tools have the same name")
        for name in self._tools:
            if not _NAME.fullmatch(name):
                raise ValueError(f"not a name for a tool: {name!r}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def definitions(self) -> list[dict[str, Any]]:
        """The tools as an OpenAI-shaped request lists them; the same bytes every time."""
        return [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in self._tools.values()
        ]

    def permission(self, name: str) -> Permission | None:
        """What the tool needs; None for a tool that there is not."""
        tool = self._tools.get(name)
        return tool.permission if tool is not None else None

    def describe(self, call: ToolCall) -> str:
        """One line for a person: what the call is about to do, whatever the model wrote."""
        tool = self._tools.get(call.name)
        try:
            if tool is not None:
                return _one_line(tool.summarize(_parse(call.arguments)))
        except Exception:  # noqa: BLE001  a tool may be anyone's code, and the arguments are not checked yet
            return _one_line(f"{call.name} {call.arguments}")
        return _one_line(f"{call.name} {call.arguments}")

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call. Never raises, except that a cancelled task stays cancelled."""
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return _error(f"there is no tool {call.name!r}; the tools are: {known}")
        try:
            outcome = await tool.run(_parse(call.arguments))
        except Exception as error:  # noqa: BLE001  a tool may be anyone's code: its failure is for the model to read
            return _error(_reason(error))
        summary = outcome.summary or ("failed" if outcome.is_error else f"{len(outcome.text):,} characters")
        return ToolOutcome(clean_text(outcome.text), outcome.is_error, _one_line(summary))


def default_toolbox(root: Path, archive: Archive | None = None) -> Toolbox:
    """The tools that read the project under `root`, and nothing outside it; with an archive, `recall` of it too."""
    from nca.tools.files import ListDirectory, ReadFile
    from nca.tools.find import Grep
    from nca.tools.workspace import Workspace

    workspace = Workspace(root)
    tools: list[Tool] = [ReadFile(workspace), ListDirectory(workspace), Grep(workspace)]
    if archive is not None:
        from nca.tools.recall import Recall

        tools.append(Recall(archive))
    return Toolbox(tools)


def _parse(arguments: str) -> dict[str, Any]:
    """The arguments' JSON object; nothing at all counts as an empty one. Raises ValueError in one line."""
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON at column {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"the arguments must be a JSON object, not {type(value).__name__}")
    return value


def _error(line: str) -> ToolOutcome:
    shown = _one_line(line)
    return ToolOutcome(f"Error: {shown}", is_error=True, summary=shown)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    return str(error) or type(error).__name__


def _one_line(text: str) -> str:
    line = " ".join(clean_text(text[: 10 * _LONGEST_LINE_CHARS]).split())
    return line if len(line) <= _LONGEST_LINE_CHARS else line[: _LONGEST_LINE_CHARS - 1] + "…"
