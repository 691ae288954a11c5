"""Approve or refuse a tool call: by the permission mode, by the permission rules, or by asking the person.

The first of these that decides wins: the mode, if it denies · a rule that denies · nca's own files, which are never
written · a rule or hook that asks · the mode and the rules that allow · the person. Each call is decided again, from
what it would do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import msgspec

from nca.agent.hooks import Ruling
from nca.agent.sandbox_notices import SandboxNotices
from nca.agent.state import SessionState
from nca.agent.window import Window
from nca.config.saving import ALLOW, RuleList, add_rule, remove_rule
from nca.config.tables import PermissionRule
from nca.errors import ConfigError, UsageError
from nca.events import ApprovalAsked, ApprovalGiven, Listener, Notice
from nca.humanize import shown_value
from nca.messages import ToolCall
from nca.tools.files.workspace import why_asked
from nca.tools.mcp.forms import Field
from nca.tools.mcp.requests import Filled
from nca.tools.permissions import about, asking, decide, matching, may_hide, names_of, refusal, widened
from nca.tools.shell.command_rules import UNASKED
from nca.tools.tool import Approval, Editor, Permission, ToolError, ToolOutcome
from nca.tools.toolbox import Toolbox, failed
from nca.words import Words

DENIED = "[not run: the person said no]"
RULE = "[not run: a rule of the person's denies it ({rule})]"
OWN_FILES = "[not run: {path} is nca's own; settings are for the person to change]"
BY_HOOK = "[not run: a hook refused it: {reason}]"
UNCLEAR = (
    "A shell computes words of it, so this rule may apply: {rule}. Written without variables, patterns and escapes,"
    " nca can tell."
)
SHOWS_HIDDEN = "It may show files that a rule protects from reading."
AFTER_FAILURE = "[not run: {name} before it in the same message failed; call it again when that is right]"
STOPPED = "[not run: the person stopped the turn]"
WHOLE, PARTS = "write_file", "edit_file"
"""What may write a file whole may change parts of it."""
_PATH_ARGUMENTS = ("path", "file_path", "directory")


_Choice = Literal["once", "session", "always", "deny", "unanswered"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The person's answer. Raises UsageError for a choice that there is not.

    choice  `session` and `always` are valid only if the approval names a subject for a rule; `unanswered`: nobody
            could be asked
    word    with a denial: a message for the model
    """

    choice: _Choice
    word: str = ""

    def __post_init__(self) -> None:
        if self.choice not in get_args(_Choice):
            raise _no_answer(f"Answer({shown_value(self.choice)})")

    @property
    def allows(self) -> bool:
        return self.choice in ("once", "session", "always")


def _no_answer(given: str) -> UsageError:
    valid = ", ".join(f'Answer("{choice}")' for choice in get_args(_Choice))
    return UsageError(f"{given} answers no approval; valid: {valid}.", advice="The call was not run.")


class Person:
    """The person who uses the conversation. The base class is nobody: nothing is approved and nothing typed.

    can_choose  whether `choose` can ask
    can_type    whether `type_answer` can ask, and nca may open a page
    editor      the editor that the person works in: nca's own tools read and write its open files
    """

    can_choose = False
    editor: Editor | None = None

    @property
    def can_type(self) -> bool:
        return self.can_choose

    async def ask(self, asked: ApprovalAsked) -> Answer:
        """Approve or deny a call. One question at a time; if cancelled, the turn is interrupted.

        What is no Answer allows nothing, and the turn fails.
        """
        return Answer("unanswered")

    def typed_ahead(self) -> Sequence[Words]:
        """The messages typed while a turn runs, each returned once; they join the turn between two steps."""
        return ()

    async def choose(self, question: str, keys: Sequence[tuple[str, str]]) -> str:
        """Ask a question that one of the keys answers, each with its meaning. "" if the person gives no answer."""
        return ""

    async def type_answer(self, question: str) -> str | None:
        """Ask for a line of text. None if the person gives none."""
        return None

    async def fill_form(self, question: str, fields: Sequence[Field]) -> Filled | None:
        """Ask with a form for all fields at once. None if no form can be shown."""
        return None

    async def open_page(self, question: str, url: str) -> Filled | None:
        """Ask whether to open a page, and open it. None if the person's program does not do both."""
        return None


class Nobody(Person):
    """No person is there."""


class Approvals:
    """Decides each call before it runs.

    saved_rules    rules in the person's settings
    session_rules  what the person allowed for this chat
    unanswered     calls of this turn, and requests of servers, that needed an approval when nobody could be asked
    one_at_a_time  held while the person is asked
    """

    def __init__(
        self, state: SessionState, directory: Path, saved_rules: SavedRules, emit: Listener, person: Person
    ) -> None:
        self.person, self.saved_rules = person, saved_rules
        self.unanswered: list[ApprovalAsked] = []
        self.session_rules: list[PermissionRule] = []
        self._state, self._directory, self._emit = state, directory.resolve(), emit
        self._reading = state.reading(directory)
        self._sandbox = SandboxNotices(state, self._directory, emit)
        self.one_at_a_time = asyncio.Lock()

    @property
    def mode(self) -> str:
        return self._state.settings.agent.permission

    async def check(self, call: ToolCall, toolbox: Toolbox, ruling: Ruling | None = None) -> ToolOutcome | None:
        """Decide one call: why it must not run, for the model, or None if it may.

        A call of an unknown tool is allowed: running it tells the model which tools there are.

        ruling  of the person's hooks: to ask, or to allow what would be asked; it allows nothing that is denied
        """
        by_hook = ruling.decision if ruling is not None else ""
        needed = toolbox.needs(call)
        if needed is None:
            return None
        if (not_allowed := self.refused_by_mode(call, toolbox)) is not None:
            return not_allowed
        permissions = self._state.settings.permissions
        deny = about(widened(permissions.deny), call.name, needed)
        ask = about(asking(permissions.deny, permissions.ask), call.name, needed)
        if needed == "read" and not (deny or ask) and by_hook != "ask":
            return None
        try:
            approval = await asyncio.to_thread(toolbox.approval, call)
        except ToolError as error:
            if needed == "read":
                approval = Approval()
            else:
                return failed(error)
        if found := self._matching(deny, call, needed, approval, toolbox):
            return refused(RULE.format(rule=found), f"not allowed by your rule {found}")
        if needed != "read" and approval.path and self._state.loaded.is_own(Path(approval.path)):
            return refused(OWN_FILES.format(path=approval.path), "a file of nca's own")
        reasons = await self._why_a_rule_asks(ask, call, needed, approval, toolbox)
        reasons += [_why_a_hook_asks(ruling)] if ruling is not None and by_hook == "ask" else []
        if reasons:
            approval = replace(approval, warning=" ".join(filter(None, (approval.warning, *reasons))))
            async with self.one_at_a_time:
                return await self._ask(call, needed, approval, toolbox.describe(call), is_by_person=True)
        hidden = [rule for rule in (*deny, *ask) if may_hide(rule, approval)]
        if is_unclear := bool(hidden):
            warning = UNCLEAR.format(rule=hidden[0])
            approval = replace(approval, warning=" ".join(filter(None, (approval.warning, warning))))
        if by_hook == "allow" and not is_unclear:
            return None
        return await self._by_mode(call, needed, approval, toolbox.describe(call), is_unclear=is_unclear)

    def refused_by_mode(self, call: ToolCall, toolbox: Toolbox) -> ToolOutcome | None:
        """The reason why the settings never allow the call. Asked first, even before the person's hooks."""
        needed = toolbox.needs(call)
        if needed is not None and self._state.settings.tools.is_off(call.name):
            return refused(f"{call.name} is switched off (tools.off)", "switched off")
        if needed is not None and decide(self.mode, needed) == "deny":
            return refused(refusal(self.mode, needed, "deny"), f"not allowed in mode {self.mode}")
        return None

    async def refusal_of(self, asked: ApprovalAsked) -> str:
        """Decide, by the mode or the person, about something that is not a tool call. "" if it may happen."""
        decision = decide(self.mode, asked.needs)
        if decision == "deny":
            return f"the permission mode {self.mode} does not allow it"
        if decision == "allow":
            return ""
        async with self.one_at_a_time:
            answer = await self._answer(asked)
        if answer.choice == "unanswered":
            return "it needs the person's approval, and nobody can give it here"
        is_denied = not answer.allows
        self._emit(ApprovalGiven(asked.call_id, asked.name, "denied" if is_denied else "once", answer.word))
        return f"the person said no{f': {answer.word}' if answer.word else ''}" if is_denied else ""

    async def _answer(self, asked: ApprovalAsked) -> Answer:
        """The answer. The caller says what was decided, unless nobody could be asked."""
        self._emit(asked)
        try:
            answer = await self.person.ask(asked)
            if not isinstance(answer, Answer):
                raise _no_answer(shown_value(answer))
        except BaseException:
            self._emit(ApprovalGiven(asked.call_id, asked.name, "stopped"))
            raise
        if answer.choice == "unanswered":
            self.unanswered.append(asked)
            self._emit(ApprovalGiven(asked.call_id, asked.name, "unanswered"))
        return answer

    async def _why_a_rule_asks(
        self, rules: Sequence[PermissionRule], call: ToolCall, needed: Permission, approval: Approval, toolbox: Toolbox
    ) -> list[str]:
        """Lines for the person about the rules that ask about the call; [] if none does."""
        if found := self._matching(rules, call, needed, approval, toolbox):
            return [f"A rule asks about it: {found}."]
        shown = [(folder, "") for folder in approval.searched]
        for folder, besides in shown + [(folder, ".git") for folder in approval.shown_by_git]:
            if await asyncio.to_thread(self._reading.is_hidden_below, Path(folder), besides):
                return [SHOWS_HIDDEN]
        return []

    async def _by_mode(
        self, call: ToolCall, needed: Permission, approval: Approval, summary: str, *, is_unclear: bool
    ) -> ToolOutcome | None:
        """is_unclear: a denying rule may mean this call (a chain of commands, say), so the person is asked."""
        is_plain = self.mode == "auto" or not self._is_unusual(approval)
        if decide(self.mode, needed) == "allow" and (needed == "read" or (is_plain and not is_unclear)):
            if needed == "execute" and approval.directory:
                await self._sandbox.before_command(is_asked=False)
            return None
        async with self.one_at_a_time:
            # Read inside the lock: the answer to one call of a reply may cover the next.
            rules = (*self._state.settings.permissions.allow, *self.session_rules)
            if not approval.is_masked and self._is_allowed(rules, call, approval, is_unclear=is_unclear):
                return None
            return await self._ask(call, needed, approval, summary, is_unclear=is_unclear)

    async def _ask(
        self,
        call: ToolCall,
        needed: Permission,
        approval: Approval,
        summary: str,
        *,
        is_by_person: bool = False,
        is_unclear: bool = False,
    ) -> ToolOutcome | None:
        """The answer makes no rule for two: is_by_person, a rule or hook asks about each such call; is_unclear, a rule
        may deny it."""
        rules = [] if is_by_person or is_unclear or approval.is_masked else self._rules(call, approval)
        subject = "; ".join(rule.subject for rule in rules)
        shown = approval.path, approval.command, approval.diff, approval.warning
        asked = ApprovalAsked(call.id, call.name, needed, summary, *shown, subject, approval.directory)
        allowed_by = "subject" if rules else "person" if is_by_person else "mode" if approval.is_masked else "tool"
        subjects = tuple(rule.subject for rule in rules) if len(rules) > 1 else ()
        if is_unclear:
            allowed_by = "person" if approval.is_masked else "text"
        if allowed_by == "text" or (allowed_by == "tool" and approval.directory):
            # `--allow` with all of the command allows it; the answer makes no such rule.
            subjects = (approval.command,)
        asked = msgspec.structs.replace(asked, subjects=subjects, allowed_by=allowed_by)
        if approval.directory:
            await self._sandbox.before_command(is_asked=True)
        answer = await self._answer(asked)
        if answer.choice == "unanswered":
            why = f" {approval.warning}" if is_by_person or is_unclear else ""
            return refused(f"{refusal(self.mode, None if why else needed, 'ask')}{why}", "nobody could be asked")
        is_denied = not answer.allows or (answer.choice != "once" and not subject)
        self._emit(ApprovalGiven(call.id, call.name, "denied" if is_denied else answer.choice, answer.word))  # type: ignore[arg-type]
        if is_denied:
            word = f": {answer.word}" if answer.word else ""
            return ToolOutcome(DENIED, is_error=True, summary=f"not allowed{word}", typed=answer.word)
        if answer.choice != "once":
            for rule in rules:
                self._remember(rule, for_good=answer.choice == "always")
        return None

    def _is_allowed(
        self, rules: Sequence[PermissionRule], call: ToolCall, approval: Approval, *, is_unclear: bool
    ) -> bool:
        """Whether a rule allows the call, or each command of a list that needs one; an unclear one, if it has all."""
        place, steps = self._place(approval), [set(names) for names in approval.steps]
        whole = [rule for rule in rules if approval.directory and rule.subject == approval.command]
        is_whole = matching(whole, call.name, {approval.command}, place) is not None
        if is_whole or is_unclear:
            return is_whole
        tools = (call.name, WHOLE) if call.name == PARTS and approval.path else (call.name,)
        if any(matching(rules, tool, _about(approval), place) for tool in tools):
            return True
        return bool(steps) and all(UNASKED in names or matching(rules, call.name, names, place) for names in steps)

    def _remember(self, rule: PermissionRule, *, for_good: bool) -> None:
        if for_good:
            try:
                self.saved_rules.add(rule)
            except ConfigError as error:
                self._emit(Notice(f"The rule holds for this session only: {error}"))
            else:
                return
        self.session_rules.append(rule)

    def _rules(self, call: ToolCall, approval: Approval) -> list[PermissionRule]:
        """The narrowest rules that cover the call, where it acts: its path or subject, or each command of a list that
        needs one."""
        subjects = [names[0] for names in approval.steps if UNASKED not in names]
        subjects = subjects or [approval.path or approval.subject]
        place = str(self._place(approval))
        return [PermissionRule(call.name, subject, place) for subject in dict.fromkeys(filter(None, subjects))]

    def _place(self, approval: Approval) -> Path:
        """The place in which a rule holds: a command may run other code in another folder."""
        return Path(approval.directory) if approval.directory else self._directory

    def _is_unusual(self, approval: Approval) -> bool:
        """Whether even a mode that allows edits asks."""
        path = Path(approval.path)
        inside = path.relative_to(self._directory) if path.is_relative_to(self._directory) else path
        return bool(approval.warning) or bool(why_asked(inside.parts))

    def _matching(
        self, rules: Sequence[PermissionRule], call: ToolCall, needed: Permission, approval: Approval, toolbox: Toolbox
    ) -> PermissionRule | None:
        """The first rule that denies the call or asks about it."""
        subjects, only_reads = self._subjects(call, approval, toolbox), needed == "read"
        return matching(rules, call.name, subjects, self._directory, approval.commands, only_reads=only_reads)

    def _subjects(self, call: ToolCall, approval: Approval, toolbox: Toolbox) -> set[str]:
        """Everything that a denial may name; a path by its real name, and as it is written."""
        written = (toolbox.arguments(call).get(name) for name in _PATH_ARGUMENTS)
        paths = [path for path in written if isinstance(path, str) and path]
        named = {approval.path, approval.command, approval.subject, *approval.names, *approval.parts}
        return {name for path in paths for name in names_of(path, self._directory)} | named - {""}


def _about(approval: Approval) -> set[str]:
    """The subject that an allowing rule may name: the effect of the call, never its wording."""
    if approval.path:
        return {approval.path}
    # Not a command's path: a rule for a folder does not allow the programs in it.
    named = {approval.subject, approval.command, *approval.names}
    return {name for name in named if name and not Path(name).is_absolute()}


def _why_a_hook_asks(ruling: Ruling) -> str:
    """A line for the person, and for the model if nobody can be asked."""
    return f"A hook asks about it: {f'{ruling.reason} ({ruling.by})' if ruling.reason else ruling.by}."


def refused(text: str, summary: str) -> ToolOutcome:
    """The outcome with the text for the model, and a few words for a person."""
    return ToolOutcome(text, is_error=True, summary=summary)


class SavedRules:
    """The rules that outlive the chat. Both methods raise ConfigError if the file cannot be written."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def add(self, rule: PermissionRule) -> None:
        """Allow it from now on."""
        file = self._window.loaded.user_file
        add_rule(file, ALLOW, rule)
        rules = [*self._window.loaded.value(ALLOW), rule]
        self._window.use(self._window.loaded.with_value(ALLOW, rules, str(file)), self._window.facts)

    def remove(self, name: RuleList, rule: PermissionRule) -> None:
        """Remove a rule, wherever it came from."""
        loaded = self._window.loaded
        remove_rule(loaded.user_file, name, rule)
        rest = [one for one in loaded.value(name) if one != rule]
        self._window.use(loaded.with_value(name, rest, loaded.origin(name)), self._window.facts)
