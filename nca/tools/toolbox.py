"""The tools of a conversation: their definitions for the model, and running the calls that it makes.

A call ends with one outcome, whatever a model sends or a tool raises. Only its own cancellation passes through.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, get_args

from nca.context.admission import Limits
from nca.errors import NcaError, UsageError
from nca.file_history import Recorder
from nca.humanize import check_choice, check_kind, one_line
from nca.messages import ToolCall, clean_text
from nca.tools.fetch_url import FetchUrl
from nca.tools.files.edit import EditFile, WriteFile
from nca.tools.files.read import ListDirectory, ReadFile
from nca.tools.files.reading_rules import ANY_READING, FilesRead, Reading
from nca.tools.files.workspace import Workspace
from nca.tools.grep_and_glob import Glob, Grep
from nca.tools.planning import Compact, CompactionWish, Subtasks, Task, Todo
from nca.tools.programs import find_program
from nca.tools.recall import Archive, Recall
from nca.tools.shell.jobs import Jobs
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import JobTool, Shell
from nca.tools.skills import Skill, SkillFile
from nca.tools.tool import (
    Approval,
    Editor,
    Permission,
    Tool,
    ToolError,
    ToolOutcome,
    TypedTool,
    outcome_of,
    reason_of,
)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The tool names that OpenAI, Anthropic and Gemini all accept."""
_LONGEST_LINE_CHARS = 200
_SHORT_CHARS = 40
SMALL_BUDGET_TOKENS = 8_000
"""Below this, all definitions (about 1,000 tokens in every request) would take more than an eighth of the budget."""
LEAST_BUDGET_TOKENS = {"glob": 5_000, "todo": 5_000} | dict.fromkeys(
    ("list_directory", "fetch_url", "job", "task", "compact"), SMALL_BUDGET_TOKENS
)
"""Tools that others can replace, or that are of no use in a short context: the least budget for each."""


class Toolbox:
    """An ordered set of tools. The model sees them in this order."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        """Raises UsageError for what is no tool, two of one name, or a name that a provider would refuse."""
        for tool in tools:
            _check(tool)
        self._own = {tool.name: tool for tool in tools}
        self.outside: tuple[Tool, ...] = ()
        """The tools of MCP servers."""
        self._tools = dict(self._own)
        if len(self._tools) < len(tools):
            names = [tool.name for tool in tools]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"Two tools have the same name: {twice}.")
        for name in self._tools:
            if not _NAME.fullmatch(name):
                raise UsageError(f"Not a valid tool name: {name!r}.", advice="Use 1 to 64 of A-Z, a-z, 0-9, _ and -.")

    def with_tools(self, more: Sequence[Tool]) -> Toolbox:
        """These tools and more after them. Raises UsageError as `Toolbox` does."""
        return Toolbox([*self._own.values(), *more])

    def renewed(self, fresh: Toolbox, *, has: Callable[[str], bool]) -> Toolbox:
        """Those of the tools that `has` names. Those that `fresh` has too are taken from it, so they share no state."""
        renewed = Toolbox([fresh._own.get(name, tool) for name, tool in self._own.items() if has(name)])
        renewed.take_outside([tool for tool in self.outside if has(tool.name)])
        return renewed

    def take_outside(self, tools: Sequence[Tool]) -> None:
        """Replace the tools of MCP servers, which come after nca's own.

        A tool is skipped if one of nca's own has its name, or a provider would refuse it.
        """
        self.outside = tuple(tool for tool in tools if _NAME.fullmatch(tool.name) and tool.name not in self._own)
        self._tools = self._own | {tool.name: tool for tool in self.outside}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def definitions(self, budget_tokens: int | None = None) -> list[dict[str, Any]]:
        """The definitions for a request in OpenAI's shape; the same bytes every time.

        If the budget for a request is small, tools that others can replace are left out.
        """
        return [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in self._tools.values()
            if budget_tokens is None or budget_tokens >= LEAST_BUDGET_TOKENS.get(tool.name, 0)
        ]

    def simple(self, name: str) -> dict[str, Any]:
        """The definition of one of nca's own tools for a small model."""
        tool = self._own[name]
        assert isinstance(tool, TypedTool), f"{name} is not a tool of nca's"
        return {"type": "function", "function": tool.simple}

    def permission(self, name: str) -> Permission | None:
        """The permission of a tool; None if there is no such tool."""
        tool = self._tools.get(name)
        return tool.permission if tool is not None else None

    def needs(self, call: ToolCall) -> Permission | None:
        """The permission that this call needs; None if there is no such tool."""
        tool = self._tools.get(call.name)
        if tool is None:
            return None
        try:
            return tool.needs(_parse(call.arguments))
        except Exception:  # noqa: BLE001  a tool may be anyone's code: if it fails, assume the most it may need
            return tool.permission

    def approval(self, call: ToolCall) -> Approval:
        """The preview for a person who decides about the call. Raises ToolError if the call would fail anyway."""
        tool = self._tools[call.name]
        try:
            return tool.approval(_parse(call.arguments))
        except Exception as error:
            raise _in_one_line(error) from error

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call; empty if they cannot be parsed."""
        try:
            return _parse(call.arguments)
        except ValueError:
            return {}

    def describe(self, call: ToolCall) -> str:
        """One line for a person that says what the call does, whatever the model wrote."""
        try:
            return _one_line(self._tools[call.name].summarize(_parse(call.arguments)))
        except Exception:  # noqa: BLE001  a tool may be anyone's code, and the arguments are not checked yet
            return _one_line(f"{call.name} {call.arguments}")

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call. A tool may return text in place of an outcome. Raises nothing but CancelledError, if the call
        is cancelled; a tool may also wait for a task of its own that is."""
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return failed(ToolError(f"there is no tool {call.name!r}; the tools are: {known}"))
        try:
            return _cleaned(outcome_of(call.name, await tool.run(_parse(call.arguments))))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return failed(ToolError("a task that the tool waited for was cancelled"))
        except (Exception, SystemExit) as error:  # noqa: BLE001  anyone's code: its failure is for the model to read
            return failed(error)


def _check(tool: Any) -> None:
    """Raise UsageError for what is no tool: a class in place of its object, parameters that no schema can state, a
    permission that there is not, a method that cannot be awaited."""
    wanted = "tools, such as an object of a subclass of nca.TypedTool"
    if isinstance(tool, type):
        raise UsageError(f"tools: expected {wanted}, found the class {tool.__name__}.")
    try:
        check_kind(tool, Tool, "tools", wanted)
        check_kind(tool.name, str, "tools", "a tool's name as text")
        check_kind(tool.description, str, f"The tool {tool.name}: description", "text")
        check_kind(tool.parameters, dict, f"The tool {tool.name}: parameters", "a JSON schema of type object")
    except (TypeError, NameError) as error:
        raise UsageError(f"The tool {tool.name}: {error}.") from None
    check_choice(tool.permission, get_args(Permission), f"The tool {tool.name}: permission")
    method = tool.call if isinstance(tool, TypedTool) else tool.run
    if not iscoroutinefunction(method):
        raise UsageError(f"The tool {tool.name}: {method.__name__} is not asynchronous; valid: `async def`.")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The parts of a conversation that nca's own tools need. Callables are asked at each call.

    can_see        whether the model takes images
    is_small       whether it is a small model
    private_hosts  hosts that fetch_url may reach although they are not public
    last_todo      the arguments of the newest todo call in the log
    protected      folders and files that no tool may write, in addition to every `.nca`
    readable       folders outside of the project with files that read_file may read
    limits         of one result; read_file ends its pages within them
    runner         runs commands; without it there is no shell
    jobs           commands in the background
    files_read     the files that the model has read
    skills         the skills that can be read; without any there is no skill tool
    recorder       records what is changed; without it nothing is
    wish           takes the model's wish to compact; without it there is no compact tool
    subtasks       answers the questions of the task tool; without it there is no task tool
    editor         the editor that the person works in, if it has files open
    reading        the rules about reading files
    """

    can_see: Callable[[], bool] = lambda: False
    is_small: Callable[[], bool] = lambda: False
    private_hosts: Callable[[], Collection[str]] = tuple
    last_todo: Callable[[], dict[str, Any]] = dict
    protected: Sequence[Path] = ()
    readable: Callable[[], Sequence[Path]] = tuple
    limits: Callable[[], Limits] = Limits
    runner: CommandRunner | None = None
    jobs: Jobs = field(default_factory=Jobs)
    files_read: FilesRead = field(default_factory=FilesRead)
    skills: Sequence[SkillFile] = ()
    recorder: Recorder = field(default_factory=Recorder)
    subtasks: Subtasks | None = None
    wish: CompactionWish | None = None
    editor: Editor | None = None
    reading: Reading = ANY_READING


def default_toolbox(root: Path, archive: Archive | None = None, context: ToolContext | None = None) -> Toolbox:
    """nca's own tools, for the project under `root`; `recall` only with an archive.

    To add a tool, write its module (nca.tools.planning is a short example) and add one line to the list below.
    """
    context = context or ToolContext()
    files_read = context.files_read
    open_files = context.editor.files if context.editor else None
    workspace = Workspace(root, context.protected, context.readable, files_read.attached, open_files, context.reading)
    tools: list[Tool | None] = [
        ReadFile(workspace, files_read, context.can_see, context.limits),
        EditFile(workspace, files_read, context.recorder, context.is_small),
        WriteFile(workspace, files_read, context.recorder),
        Grep(workspace, find_program("rg", os.environ.get("PATH", ""), outside=workspace.root)),
        Glob(workspace),
        ListDirectory(workspace),
        Shell(context.runner, context.recorder, files_read, context.jobs) if context.runner is not None else None,
        JobTool(context.jobs) if context.runner is not None else None,
        FetchUrl(context.private_hosts),
        Todo(context.last_todo),
        Recall(archive) if archive is not None else None,
        Skill(context.skills) if any(skill.is_listed for skill in context.skills) else None,
        Task(context.subtasks) if context.subtasks is not None else None,
        Compact(context.wish) if context.wish is not None else None,
    ]
    return Toolbox([tool for tool in tools if tool is not None])


def _parse(arguments: str) -> dict[str, Any]:
    """Parse the arguments, a JSON object; an empty string is an empty object. Raises ValueError in one line."""
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


def _cleaned(outcome: ToolOutcome) -> ToolOutcome:
    summary = outcome.summary or (_reason_in(outcome.text) if outcome.is_error else _size_of(outcome.text))
    text, diff, printed = clean_text(outcome.text), clean_text(outcome.diff), clean_text(outcome.printed)
    return replace(outcome, text=text, summary=_one_line(summary), diff=diff, printed=printed)


def failed(error: BaseException) -> ToolOutcome:
    """The result of a call that raised this."""
    shown = _in_one_line(error)
    return ToolOutcome(shown.for_model(), is_error=True, summary=str(shown), asks_to_read=shown.asks_to_read)


def _in_one_line(error: BaseException) -> ToolError:
    """The message; with the kind of the error, if that may say little alone, as with `KeyError: 'boom'`."""
    says_all = isinstance(error, ToolError | ValueError | OSError | NcaError) or not str(error)
    line = _one_line(reason_of(error) if says_all else f"{type(error).__name__}: {error}")
    if not isinstance(error, ToolError):
        return ToolError(line)
    return ToolError(line, clean_text(error.excerpt), asks_to_read=error.asks_to_read)


def _reason_in(text: str) -> str:
    """Why a call failed, by what the tool answered: its first line that says anything."""
    return next(filter(None, map(str.strip, text[: 10 * _LONGEST_LINE_CHARS].splitlines())), "failed")


def _size_of(text: str) -> str:
    """How much a tool answered; the answer itself where that is as short."""
    answered = text.strip()
    is_short = 0 < len(answered) <= _SHORT_CHARS and answered.isprintable()
    return answered if is_short else f"{len(text):,} characters"


def _one_line(text: str) -> str:
    return one_line(clean_text(text[: 10 * _LONGEST_LINE_CHARS]), _LONGEST_LINE_CHARS)
