"""/permissions: show and change the permission mode and rules.

In plan mode, once a plan is written: ask whether to carry it out, and leave the mode with the answer.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from nca.config.claude_permissions import HeldRule
from nca.config.paths import user_config_file
from nca.config.saving import ALLOW, ASK, DENY, RuleList
from nca.config.schema import KEYS
from nca.config.tables import PermissionRule
from nca.context.todo import is_open, newest_list
from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, number_to_remove, takes_no
from nca.terminal.render.layout import WHOLE, fitting_table
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place
from nca.tools.mcp.tool import rule_in_words

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.messages import Entry
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output

MODES = {
    "ask": "asks before it changes a file or runs a command, unless the command only reads",
    "accept-edits": "changes files without asking; asks before it runs a command, unless the command only reads",
    "plan": "only reads",
    "auto": "does everything without asking",
}
MODES_BY_FREEDOM = ("plan", "ask", "accept-edits", "auto")
MODES_BY_KEY = ("ask", "accept-edits", "plan")
"""The modes that Shift-Tab goes through, as in Claude Code; `auto` has to be named."""
_REMOVE = "remove"
_CLAUSE = re.compile("[;,]")


class _Listed(NamedTuple):
    """A rule, and as it is written in another program's settings if it comes from there."""

    name: RuleList
    rule: PermissionRule
    origin: str
    written: str = ""

    @property
    def verb(self) -> str:
        return self.name.rpartition(".")[2]

    def cells(self, directory: Path) -> tuple[str, str, str, str]:
        """As a person in this directory reads them."""
        rule, origin = self.rule, place(self.origin, directory)
        if self.written:
            return "", one_line(self.written), "here", origin
        subject = rule_in_words(rule.tool, rule.subject) or rule.paths or rule.pattern or "any"
        where = "here" if rule.directory == str(directory) else place(rule.directory, directory) or "everywhere"
        return one_line(rule.tool), place(subject, directory), where, origin


def set_next_mode(conversation: Conversation) -> str:
    """Set the mode that Shift-Tab leads to; returns what holds now."""
    if conversation.session.is_read_only:
        return "This session is read-only."
    mode = conversation.approvals.mode
    following = MODES_BY_KEY.index(mode) + 1 if mode in MODES_BY_KEY else 0
    return set_mode(conversation, MODES_BY_KEY[following % len(MODES_BY_KEY)])


def set_mode(conversation: Conversation, mode: str) -> str:
    """Returns what holds now."""
    conversation.set("agent.permission", mode)
    # The first clause is enough for a line that is shown for a moment.
    return f"{mode}: nca {_CLAUSE.split(MODES[mode])[0]}"


class PermissionsCommand(Command):
    name = "permissions"
    shows = "alone"

    def needs_person(self, app: App, argument: str) -> str:
        order = MODES_BY_FREEDOM
        is_stricter = argument in order and order.index(argument) <= order.index(app.conversation.approvals.mode)
        return "" if not argument or is_stricter else "loosens what tools may do"

    async def run(self, app: App, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        match word.lower():
            case "":
                _show(app)
            case mode if mode in MODES and not rest.strip():
                app.conversation.set("agent.permission", mode)
                app.output.show(f"{mode}: nca {MODES[mode]}, in this chat.")
            case "remove":
                _remove(app, rest.strip())
            case _:
                raise takes_no(self.name, argument, f"Valid: {', '.join(MODES)}, remove NUMBER, or nothing.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        word, blank, rest = argument.partition(" ")
        if not blank:
            return beginning_with(word.lower(), (*MODES.items(), (_REMOVE, "remove a rule, by its number")))
        if word.lower() != _REMOVE:
            return ()
        return beginning_with(
            rest, ((str(number), f"{one.verb} {one.written or one.rule}") for number, one in enumerate(_listed(app), 1))
        )


def _listed(app: App) -> list[_Listed]:
    """All rules, the strongest first, as they are numbered."""
    loaded, approvals = app.conversation.loaded, app.conversation.approvals
    listed = [_Listed(name, rule, loaded.origin(name)) for name in (DENY, ASK, ALLOW) for rule in loaded.value(name)]
    names: dict[str, RuleList] = {"deny": DENY, "ask": ASK, "allow": ALLOW}
    listed += [_Listed(names[one.decision], PermissionRule("*"), one.file, _as_held(one)) for one in loaded.held]
    listed.sort(key=lambda one: (DENY, ASK, ALLOW).index(one.name))
    return listed + [_Listed(ALLOW, rule, "this session") for rule in approvals.session_rules]


def _as_held(rule: HeldRule) -> str:
    return rule.written if rule.is_exact else f"{rule.written} (not clear, so nca asks)"


def _show(app: App) -> None:
    approvals = app.conversation.approvals
    app.output.show(f"{approvals.mode}: nca {MODES[approvals.mode]}. Another mode: /permissions {'|'.join(MODES)}.")
    rules = _listed(app)
    if not rules:
        app.output.show(f"No rules. Add them when nca asks you, or in {place(str(user_config_file(os.environ)))}.")
        return
    cells = [one.cells(app.conversation.directory) for one in rules]
    columns = {
        "": [Text(str(number)) for number in range(1, len(rules) + 1)],
        "rule": [Text(one.verb, "failure" if one.name == DENY else "") for one in rules],
        "tool": [Text(tool) for tool, _, _, _ in cells],
        "subject": [Text(subject) for _, subject, _, _ in cells],
        "directory": [Text(directory) for _, _, directory, _ in cells],
        "from": [Text(origin, "quiet") for _, _, _, origin in cells],
    }
    app.output.show(fitting_table(columns, gives_way="from", least=WHOLE, wraps=True))


def _remove(app: App, wanted: str) -> None:
    rules = _listed(app)
    number = number_to_remove("permissions", wanted, len(rules))
    gone = rules[number - 1]
    if gone.written:
        raise UsageError(f"Rule {number} is in {place(gone.origin)}.", advice="Remove it there and start nca again.")
    app.conversation.approvals.saved_rules.remove(gone.name, gone.rule)
    if gone.name == ALLOW:
        session = app.conversation.approvals.session_rules
        session[:] = [one for one in session if one != gone.rule]
    app.output.show(f"Removed: {gone.verb} {one_line(str(gone.rule), 200)}.")


assert set(MODES) == set(KEYS["agent.permission"].value_type.choices)


CARRY_OUT = "Carry the plan out."
"""The message that is sent for a yes."""
_QUESTION = "Carry this plan out?"
_KEYS = (("y", "yes, ask before each change"), ("e", "yes, edit without asking"), ("n", "no: say what to change"))
_MODE_BY_ANSWER = {"y": "ask", "e": "accept-edits"}
_STEP = re.compile(r"(?m)^ {0,3}(?:#+ |\*\*)?([12])[.)] ")
_BOX = re.compile(r"(?m)^[^\S\n]*(?:[-*+]|\d{1,3}[.)]) \[([ xX])\] ")
_CODE = re.compile(r"(?ms)^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)")


def is_plan_written(conversation: Conversation) -> bool:
    """Whether the last turn, in plan mode, ended with numbered steps or boxes to tick, or left open ones in its list.

    Points without numbers or boxes are no plan: an explanation has the same shape.

    An answer that ends with a question waits for another answer than yes or no.
    """
    if conversation.approvals.mode != "plan" or conversation.session.is_read_only:
        return False
    turn = [*takewhile(_is_of_turn, conversation.context.backwards())][::-1]
    answer = turn[-1].message.text if turn and turn[-1].message.role == "assistant" else ""
    _, todo = newest_list(turn) or (0, {})
    return not _asks(answer) and (_has_steps(answer) or is_open(todo))


def _is_of_turn(entry: Entry) -> bool:
    """Whether it is not the message of the person with which a turn begins."""
    return entry.message.role != "user" or entry.message.is_synthetic


def _has_steps(answer: str) -> bool:
    prose = _CODE.sub("", answer)
    boxes = _BOX.findall(prose)
    return {"1", "2"} <= set(_STEP.findall(prose)) or (len(boxes) > 1 and " " in boxes)


def _asks(answer: str) -> bool:
    """Whether a text ends with a question mark of any script, except for what marks or closes it."""
    signs = takewhile(lambda char: not char.isalnum(), reversed(answer))
    return any("QUESTION MARK" in unicodedata.name(char, "") for char in signs)


async def carry_out(conversation: Conversation, reader: Reader, output: Output) -> bool:
    """Ask. True: the plan is to be carried out, in the mode that the person chose; else they say what to change."""
    mode = _MODE_BY_ANSWER.get(await reader.choose_or_type(_QUESTION, _KEYS))
    if mode is not None:
        output.notice(f"{set_mode(conversation, mode)}.")
    return mode is not None
