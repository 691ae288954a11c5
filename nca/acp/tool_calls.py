"""Tool calls as the protocol shows them: kind, places in files, changes, output; and the order in which all is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from acp import helpers, schema
from acp.meta import CLIENT_METHODS

from nca.context import todo
from nca.context.file_reads import arguments_of
from nca.context.todo import PARTS, marked
from nca.events import ApprovalAsked
from nca.messages import ToolCall
from nca.terminal.render.sanitize import to_terminal

Content = schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent

_KINDS: dict[schema.ToolKind, tuple[str, ...]] = {
    "read": ("read_file", "list_directory", "skill"),
    "edit": ("edit_file", "write_file"),
    "search": ("grep", "glob", "recall"),
    "execute": ("shell", "job"),
    "fetch": ("fetch_url",),
    "think": ("todo", "task"),
}
"""nca's tools by kind. One that is not here, such as an MCP server's, is of the kind `other`."""
_NO_END = "\\ No newline at end of file"


class CallIds:
    """Ids of calls for the client. A model may use an id again; the protocol may not."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def begin(self, call_id: str) -> str:
        """The id of a call that begins."""
        self._count[call_id] = self._count.get(call_id, 0) + 1
        return self.of(call_id)

    def of(self, call_id: str) -> str:
        """The id of the newest call with this one."""
        count = self._count.get(call_id, 1)
        return call_id if count == 1 else f"{call_id}#{count}"


def kind_of(name: str) -> schema.ToolKind:
    return next((kind for kind, names in _KINDS.items() if name in names), "other")


def started(call: ToolCall, call_id: str, title: str, directory: Path) -> schema.ToolCallStart:
    """The update for a call that begins. `call_id`: its id for the client."""
    arguments = arguments_of(call)
    places = locations_of(arguments, directory) or None
    kind = kind_of(call.name)
    return helpers.start_tool_call(
        call_id, title, kind=kind, status="in_progress", locations=places, raw_input=arguments
    )


def locations_of(arguments: dict[str, Any], directory: Path) -> list[schema.ToolCallLocation]:
    """The file that a call is about, so that the editor can follow."""
    path, offset = arguments.get("path"), arguments.get("offset")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        return []
    line = offset if isinstance(offset, int) and offset > 0 else None
    return [schema.ToolCallLocation(path=str(directory / path), line=line)]


def output_content(text: str) -> list[Content]:
    """A call's output, with none of it read as Markdown."""
    return [words(fenced(text))] if text.strip() else []


def words(text: str) -> schema.ContentToolCallContent:
    return helpers.tool_content(helpers.text_block(to_terminal(text)))


def fenced(text: str, language: str = "") -> str:
    """The text as a block of code that it cannot end itself."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def asked_content(asked: ApprovalAsked) -> list[Content]:
    """Exactly what a call that needs approval would do."""
    shown: list[Content] = []
    if asked.command:
        shown.append(words(fenced(asked.command, "sh")))
    elif asked.diff:
        shown += diff_content(asked.diff, asked.path)
    elif not asked.path:
        shown.append(words(fenced(asked.summary)))
    about = [f"in {asked.directory}"] if asked.directory else []
    about += [asked.warning] if asked.warning else []
    return [*shown, *([words("\n\n".join(about))] if about else [])]


def diff_content(diff: str, path: str) -> list[Content]:
    """A unified diff (nca.file_history.changes), hunk by hunk."""
    lines = diff.split("\n")
    is_new = lines[0] == "--- /dev/null"
    return [helpers.tool_diff_content(path, new, None if is_new else old) for old, new in _hunks(lines[2:])]


def edit_content(name: str, arguments: dict[str, Any], directory: Path) -> list[Content]:
    """A change from the arguments of its call, for one that was made long ago."""
    path, old = arguments.get("path"), arguments.get("old_text")
    new = arguments.get("new_text") if name == "edit_file" else arguments.get("content")
    if kind_of(name) != "edit" or not isinstance(path, str) or not isinstance(new, str):
        return []
    return [helpers.tool_diff_content(str(directory / path), new, old if isinstance(old, str) else None)]


def is_plan(name: str) -> bool:
    """Whether calls of the tool are shown as the client's plan, and not as calls."""
    return name == todo.NAME


def plan_of(arguments: dict[str, Any]) -> list[schema.PlanEntry] | None:
    """The steps of a todo list; None if the call only asked for it."""
    if all(arguments.get(part) is None for part in PARTS):
        return None
    statuses: tuple[schema.PlanEntryStatus, ...] = ("completed", "in_progress", "pending")
    steps = marked(arguments, *statuses)
    return [schema.PlanEntry(content=one, priority="medium", status=status) for status, one in steps]


def _hunks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The texts of each hunk, before and after. Lines with no sign of a diff are not part of it."""
    old: list[str] = []
    new: list[str] = []
    signs = ""
    for line in [*lines, "@@ "]:
        if line.startswith("@@ "):
            if old or new:
                yield "".join(old), "".join(new)
            old, new = [], []
        elif line == _NO_END:
            for side, marks in ((old, " -"), (new, " +")):
                if signs in marks and side:
                    side[-1] = side[-1].removesuffix("\n")
        elif line[:1] in (" ", "-", "+"):
            signs = line[:1]
            old += [f"{line[1:]}\n"] if signs != "+" else []
            new += [f"{line[1:]}\n"] if signs != "-" else []


Update = helpers.SessionUpdate | schema.ConfigOptionUpdate | schema.UsageUpdate


class Outlet:
    """Sends updates in their order. Those from before `open` wait, because the client does not know the session yet."""

    def __init__(self, put: Callable[[dict[str, Any]], None]) -> None:
        self._put = put
        self._waiting: list[Update] | None = []
        self.session_id = ""

    def open(self) -> None:
        """The client knows the session by its id now."""
        waiting, self._waiting = self._waiting or [], None
        for update in waiting:
            self.send(update)

    def send(self, update: Update) -> None:
        if self._waiting is not None:
            self._waiting.append(update)
            return
        notification = schema.SessionNotification(session_id=self.session_id, update=update)
        params = notification.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._put({"jsonrpc": "2.0", "method": CLIENT_METHODS["session_update"], "params": params})

    def say(self, text: str) -> None:
        """A piece of the answer."""
        if text:
            self.send(helpers.update_agent_message_text(text))

    def think(self, text: str) -> None:
        if text:
            self.send(helpers.update_agent_thought_text(text))

    def note(self, text: str) -> None:
        """A line of nca's own, apart from the answer."""
        if text:
            self.say(f"\n\n> {text}\n\n")
