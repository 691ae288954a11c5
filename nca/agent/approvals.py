"""Whether a call may run: the mode, the person's rules, and where those leave it open, the person's word.

The order, each stronger than what follows: the mode where it denies · a rule that denies · nca's own files, which are
never written · the mode and the rules that allow · the person. Decided anew for each call, from what it would do.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from nca.config.paths import FILE_NAME, PROJECT_FOLDER, data_dir, user_config_file
from nca.config.schema import Settings
from nca.config.tables import PermissionRule
from nca.errors import ConfigError
from nca.events import ApprovalAsked, ApprovalGiven, Listener, Notice
from nca.messages import ToolCall
from nca.tools.permissions import decide, matching, refusal
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome
from nca.tools.toolbox import Toolbox

DENIED = "[not run: the person said no{word}]"
RULE = "[not run: a rule of the person's denies it ({rule})]"
OWN_FILES = "[not run: {path} is nca's own; settings are for the person to change]"
STOPPED = "[not run: the person stopped the turn]"
_PATH_ARGUMENTS = ("path", "file_path", "directory")
_ACTING_FOLDERS = frozenset({".git", ".hg", ".svn"})
"""What stands in these runs with the next command there (hooks, settings), so no mode but `auto` writes it unasked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The person's word. `session` and `always` are only given where the approval has something a rule can name."""

    choice: Literal["once", "session", "always", "deny"]
    word: str = ""
    """With a denial: something for the model."""


class Approver(Protocol):
    """Who can be asked. One question at a time; cancelled while it asks, the turn is interrupted."""

    async def ask(self, asked: ApprovalAsked) -> Answer: ...


class Permits:
    """Asked before each call. `session_rules` are the person's words for this chat; the other rules are settings.

    keep  takes a rule for good, into the person's own file, never a project's; raises ConfigError
    """

    def __init__(
        self,
        toolbox: Toolbox,
        directory: Path,
        settings: Callable[[], Settings],
        keep: Callable[[PermissionRule], None],
        emit: Listener,
    ) -> None:
        self.approver: Approver | None = None
        self.session_rules: list[PermissionRule] = []
        self.toolbox = toolbox
        self._directory = directory.resolve()
        self._settings = settings
        self._keep = keep
        self._emit = emit
        self._one_at_a_time = asyncio.Lock()

    def for_tools(self, toolbox: Toolbox) -> Permits:
        """The same person, mode and rules for other tools, such as a task's."""
        other = copy.copy(self)
        other.toolbox = toolbox
        return other

    @property
    def mode(self) -> str:
        return self._settings().agent.permission

    async def refused(self, call: ToolCall) -> ToolOutcome | None:
        """Why the call does not run, for the model; None: it may."""
        needed = self.toolbox.needs(call)
        if needed is None:
            return None
        if decide(self.mode, needed) == "deny":
            return _refused(refusal(self.mode, needed, "deny"), f"not allowed in mode {self.mode}")
        deny = [rule for rule in self._settings().permissions.deny if rule.tool in ("*", call.name)]
        if needed == "read" and not deny:
            return None
        try:
            approval = await asyncio.to_thread(self.toolbox.approval, call)
        except ToolError as error:
            if needed == "read":
                approval = Approval()
            else:
                return ToolOutcome(f"Error: {error}", is_error=True, summary=str(error))
        if found := matching(deny, call.name, self._subjects(call, approval), self._directory):
            return _refused(RULE.format(rule=found), f"not allowed by your rule {found}")
        if needed != "read" and approval.path and _is_own(Path(approval.path)):
            return _refused(OWN_FILES.format(path=approval.path))
        is_unclear = any(rule.subject for rule in deny) and not (approval.path or approval.subject)
        return await self._by_mode(call, needed, approval, is_unclear=is_unclear)

    async def _by_mode(
        self, call: ToolCall, needed: Permission, approval: Approval, *, is_unclear: bool
    ) -> ToolOutcome | None:
        """is_unclear: nobody can tell whether a denying rule means this call (a chain of commands, say): it asks."""
        is_plain = self.mode == "auto" or not _is_unusual(approval)
        if decide(self.mode, needed) == "allow" and (needed == "read" or (is_plain and not is_unclear)):
            return None
        async with self._one_at_a_time:
            # Inside: what was just allowed for the session may cover the next call of the same reply.
            allowing = () if is_unclear else self._allowing()
            if matching(allowing, call.name, _about(approval), self._directory):
                return None
            return await self._ask(call, needed, approval)

    async def _ask(self, call: ToolCall, needed: Permission, approval: Approval) -> ToolOutcome | None:
        subject = self._rule(call, approval).subject
        asked = ApprovalAsked(
            call.id,
            call.name,
            needed,
            self.toolbox.describe(call),
            approval.path,
            approval.command,
            approval.diff,
            approval.warning,
            subject,
            approval.directory,
        )
        self._emit(asked)
        if self.approver is None:
            self._emit(ApprovalGiven(call.id, call.name, "unanswered"))
            return _refused(refusal(self.mode, needed, "ask"))
        try:
            answer = await self.approver.ask(asked)
        except BaseException:
            self._emit(ApprovalGiven(call.id, call.name, "stopped"))
            raise
        is_denied = answer.choice == "deny" or (answer.choice != "once" and not subject)
        self._emit(ApprovalGiven(call.id, call.name, "denied" if is_denied else answer.choice, answer.word))  # type: ignore[arg-type]
        if is_denied:
            word = f": {answer.word}" if answer.word else ""
            return _refused(DENIED.format(word=word), f"not allowed{word}")
        if answer.choice != "once":
            self._remember(self._rule(call, approval), for_good=answer.choice == "always")
        return None

    def _remember(self, rule: PermissionRule, *, for_good: bool) -> None:
        if for_good:
            try:
                self._keep(rule)
            except ConfigError as error:
                self._emit(Notice(f"The rule holds for this session only: {error}"))
            else:
                return
        self.session_rules.append(rule)

    def _rule(self, call: ToolCall, approval: Approval) -> PermissionRule:
        """The narrowest rule that covers the call: its path or subject, in this directory."""
        return PermissionRule(call.name, approval.path or approval.subject, str(self._directory))

    def _allowing(self) -> tuple[PermissionRule, ...]:
        return (*self._settings().permissions.allow, *self.session_rules)

    def _subjects(self, call: ToolCall, approval: Approval) -> set[str]:
        """Everything that a denial may name. Paths as written too: a tool that reads may not resolve them."""
        written = (self.toolbox.arguments(call).get(name) for name in _PATH_ARGUMENTS)
        paths = [self._directory / Path(path).expanduser() for path in written if isinstance(path, str) and path]
        resolved = {form for path in paths if "\0" not in str(path) for form in _forms(path)}
        named = {approval.path, approval.command, approval.subject, *approval.names, *approval.parts}
        return resolved | named - {""}


def _about(approval: Approval) -> set[str]:
    """What a rule that allows may name: what the call will really touch, never how it was written."""
    if approval.path:
        return {approval.path}
    # A command that begins with a path is none: a rule for a folder is not for all that is run from there.
    named = {approval.subject, approval.command, *approval.names}
    return {name for name in named if name and not Path(name).is_absolute()}


def _is_unusual(approval: Approval) -> bool:
    """What even a mode that lets edits pass asks about."""
    return bool(approval.warning) or not _ACTING_FOLDERS.isdisjoint(Path(approval.path).parts)


def _is_own(path: Path) -> bool:
    """Settings and data of nca, whether they exist yet or not."""
    own = user_config_file(os.environ).resolve(), data_dir(os.environ).resolve()
    path = path.resolve()
    return (
        (path.parent.name.lower() == PROJECT_FOLDER and path.name.lower().startswith(FILE_NAME))
        or path == own[0]
        or path.is_relative_to(own[1])
    )


def _forms(path: Path) -> tuple[str, str]:
    return os.path.normpath(path), os.path.realpath(path)


def _refused(text: str, summary: str = "not allowed") -> ToolOutcome:
    return ToolOutcome(text, is_error=True, summary=summary)
