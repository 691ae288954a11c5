"""What holds after a stretch of the log: kept by code, merged by set arithmetic, stored with its summary.

A `Ledger` maps a category to lines. A line is `SEQ<tab>text`, where SEQ is the message that says it (0: not known), so
that a model can ask for the original. What was said keeps the order of the log. State has one line for each file or
kind of command, of which the latest holds. Lists are sets.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from nca.context.file_reads import file_use
from nca.context.record.call_facts import CHANGE, call_facts, changes_of
from nca.context.record.changes import COUNTED, Change
from nca.context.record.command_changes import REPORTED, complains
from nca.context.record.commits import drop_old_commits, logged_commits, quiet_commit, reported_commits
from nca.context.record.known import Known
from nca.context.record.outcomes import (
    JOB,
    Outcome,
    command_of,
    ended_call,
    essence_of,
    kind_of_command,
    kinds_of_command,
    outcome_of,
)
from nca.context.record.statements import NOTHING_STATED, Names, Stated
from nca.messages import AttachmentPart, Entry, Message, ToolCall

Ledger = dict[str, list[str]]

RULES, WORDS, DECISIONS, FILES, OUTCOMES, FAILING, ANSWERS, STEPS, READ, URLS, NAMES, FIXED = CATEGORIES = (
    "rules",
    "words",
    "decisions",
    "files",
    "outcomes",
    "failing",
    "answers",
    "steps",
    "read",
    "urls",
    "names",
    "fixed",
)
SUCCEEDED = "succeeded"
"""What a stretch of the log did without a failure: only to end what an earlier one left failing; not kept."""
ALL = (*CATEGORIES, SUCCEEDED)
"""What is looked for in messages that a record stands for."""
STATED = (RULES, WORDS, DECISIONS, ANSWERS, URLS)
"""The categories of the texts in a `Stated`, in its order."""
SHORT = (RULES, WORDS, FILES)
"""What is looked for where the person's words fill a record: nothing else has room there."""
STATE = (SUCCEEDED, OUTCOMES, FAILING)
"""What is looked for in messages that stay behind a record, to bring it up to date."""
SAID = (RULES, WORDS, DECISIONS, ANSWERS, STEPS, FIXED)
"""Kept in the order of the log, each text once (`_say`)."""
MAX_FACT_CHARS = 160
COMMAND_CHARS = 100
_OLD_CATEGORIES = {
    "Rules the user stated": RULES,
    "User": WORDS,
    "Decisions": DECISIONS,
    "Files modified": FILES,
    "Files read": READ,
    "URLs": URLS,
    "Hashes": NAMES,
    "Identifiers": NAMES,
}
"""Categories of ledgers that were stored by nca 0.1; what they held of errors and commands was no state."""


class Reading:
    """What holds after messages that are read in the order of the log, judged by them alone."""

    def __init__(self, known: Known | None = None, *, only: Collection[str] = ALL) -> None:
        """Nothing is read yet.

        only  the categories that are looked for: ALL, SHORT or STATE
        """
        self._known = known or Known()
        self._only = only
        self._calls: dict[str, tuple[int, ToolCall]] = {}
        self._lines: dict[str, dict[str, str]] = {category: {} for category in ALL}
        self._changes: dict[str, list[tuple[int, Change]]] = {}
        """By file what was done to it, oldest first, each with its message; the file that was changed last is last."""
        self._named: dict[str, int] = {}
        """How many messages speak of each name."""
        self._outcomes: dict[str, tuple[int, str, Outcome]] = {}
        """Of each kind of command the last call: its message, the command and what it came to."""

    def copy(self) -> Reading:
        """The same so far, to be read on from."""
        other = Reading(self._known, only=self._only)
        other._calls, other._named, other._outcomes = self._calls.copy(), self._named.copy(), self._outcomes.copy()
        other._changes = {path: calls.copy() for path, calls in self._changes.items()}
        other._lines = {category: lines.copy() for category, lines in self._lines.items()}
        return other

    def read(self, entries: Iterable[Entry]) -> Reading:
        calls, known = self._calls, self._known
        has_words, has_answers, has_state = (one in self._only for one in (WORDS, ANSWERS, OUTCOMES))
        for entry in entries:
            message = entry.message
            content = message.content
            if type(content) is tuple:
                for part in message.attachments:
                    self._note_attachment(part, entry.seq)
            if message.role == "tool":
                # The person may have said why they refused the call.
                if has_words and type(content) is tuple and (found := known.stated(message)) is not NOTHING_STATED:
                    self._note_said(entry.seq, found)
                # What a result names can be had again; it counts once somebody speaks of it.
                if (made := calls.pop(message.tool_call_id, None)) is not None:
                    self._note_call(*made, message)
                continue
            is_said = has_answers if message.role == "assistant" else has_words
            if is_said and content and (found := known.stated(message)) is not NOTHING_STATED:
                self._note_said(entry.seq, found)
            if has_answers and content:
                self._note_names(entry.seq, known.names(message))
            for call in message.tool_calls:
                if has_state or call.name == JOB or "commit" in call.arguments or changes_of(call):
                    calls[call.id] = (entry.seq, call)
        return self

    def ledger(self) -> Ledger:
        names = {name: line for name, line in self._lines[NAMES].items() if self._named[name] > 1}
        outcomes = {kind: _outcome_line(kind, *noted) for kind, noted in self._outcomes.items()}
        files = {path: _change_line(path, made) for path, made in self._changes.items()}
        drop_old_commits(files)
        found = self._lines | {NAMES: names, OUTCOMES: outcomes, FILES: files}
        return {category: list(found[category].values()) for category in self._only if found[category]}

    def _note_attachment(self, part: AttachmentPart, seq: int) -> None:
        """A file that came with a message, or a command that the person ran, named `$ command`."""
        if not part.path.startswith("$ "):
            self._lines[READ].setdefault(part.path, f"{seq}\t{part.path}")
            return
        command = part.path[2:]
        self._note_outcome(kind_of_command(command), seq, command, outcome_of(None, Message("tool", part.text)))

    def _note_outcome(self, kind: str, seq: int, command: str, outcome: Outcome) -> None:
        """The last outcome of this kind of command, in place of the one before."""
        self._outcomes.pop(kind, None)
        self._outcomes[kind] = seq, command, outcome

    def _note_call(self, seq: int, call: ToolCall, result: Message) -> None:
        outcome = self._known.outcome(call, result)
        ended = ended_call(call, result.text)
        changes = changes_of(ended)
        logged = logged_commits(command_of(ended), result.text)
        if outcome.was_run and (changes or logged):
            is_command = file_use(ended) is None
            is_unsure = is_command and complains(result.text)
            has_failed = outcome.is_failure or result.is_error
            for change in changes:
                if change.verb == REPORTED and not change.new:
                    for commit in reported_commits(result.text):
                        self._note_change(seq, commit)
                elif change.verb == REPORTED:
                    if not (is_unsure or has_failed):
                        self._note_change(seq, quiet_commit(change, result.text))
                elif not is_unsure and (change.is_first or not has_failed):
                    self._note_change(seq, change)
                    if is_command:
                        _fix(f"{CHANGE} {change.path}", self._lines)
            for commit in logged:
                self._note_change(seq, commit)
        if OUTCOMES in self._only:
            self._note_state(seq, ended, outcome, result)

    def _note_state(self, seq: int, call: ToolCall, outcome: Outcome, result: Message) -> None:
        """What a call read, what it came to, and what fails since or fails no more."""
        lines = self._lines
        use, command, key, says_little = call_facts(call)
        if use is not None:
            if outcome.is_failure:
                if use.is_write:
                    _note_failure(key, f"{call.name} {use.path}", seq, outcome, lines)
                return
            _succeed(key, lines)
            if not (use.is_write or result.is_error or use.path in self._changes):
                lines[READ].setdefault(use.path, f"{seq}\t{use.path[:MAX_FACT_CHARS]}")
            return
        if command and outcome.was_run and (outcome.is_failure or not says_little):
            self._note_outcome(key, seq, command, outcome)
        if outcome.is_failure:
            _note_failure(key, essence_of(command)[:COMMAND_CHARS] or call.name, seq, outcome, lines)
        elif outcome.was_run:
            _succeed(key, lines)

    def _note_change(self, seq: int, change: Change) -> None:
        made = self._changes.pop(change.path, [])
        made.append((seq, change))
        self._changes[change.path] = made
        self._lines[READ].pop(change.path, None)

    def _note_said(self, seq: int, found: Stated) -> None:
        lines = self._lines
        for category, sayings in zip(STATED, found, strict=True):
            for text in sayings:
                _say(lines[category], category, text, f"{seq}\t{text}")

    def _note_names(self, seq: int, found: Names) -> None:
        lines = self._lines
        for name, around in found:
            self._named[name] = self._named.get(name, 0) + 1
            lines[NAMES].setdefault(name, f"{seq}\t{name}\t{around}")


def extract(entries: Iterable[Entry], known: Known | None = None) -> Ledger:
    """What holds after these messages, judged by them alone."""
    return Reading(known).read(entries).ledger()


def merge(ledgers: Iterable[Mapping[str, Sequence[str]]]) -> Ledger:
    """Earlier ledgers first. What was said is a union; of state the later line holds; a success ends what failed."""
    merged: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES}
    for ledger in ledgers:
        current = {_OLD_CATEGORIES.get(name, name): lines for name, lines in ledger.items()}
        is_old = any(name in _OLD_CATEGORIES for name in ledger)
        for line in current.get(OUTCOMES, ()):
            kind, _, rest = parted(line)[1].partition("\t")
            if rest.endswith("\tok"):
                _fix(kind, merged)
        for path in (text.partition("\t")[0] for _, text in texts(current, FILES)):
            _fix(f"{CHANGE} {path}", merged)
        for _, key in texts(current, SUCCEEDED):
            _fix(key, merged)
        for category in CATEGORIES:
            if found := current.get(category):
                _merge_lines(category, [f"0\t{line}" for line in found] if is_old else found, merged[category])
    drop_old_commits(merged[FILES])
    for path in merged[FILES]:
        merged[READ].pop(path, None)
    return {category: list(lines.values()) for category, lines in merged.items() if lines}


def _merge_lines(category: str, lines: Sequence[str], merged: dict[str, str]) -> None:
    """The lines of one category behind those that are merged already."""
    keys = [_text_of(line) for line in lines]
    if category not in SAID:
        keys = [text.partition("\t")[0] for text in keys]
    if not merged:
        merged |= zip(keys, lines, strict=True)
        if len(merged) == len(lines):
            return
        merged.clear()
    for key, line in zip(keys, lines, strict=True):
        if category in SAID or category in (READ, URLS):
            _say(merged, category, key, line)
        else:
            before = merged.pop(key, None)
            merged[key] = _added(before, line) if before is not None and category == FILES else line


def _say(said: dict[str, str], category: str, text: str, line: str) -> None:
    """Note a text once: of a rule or words where they were said last, as the newest wins; of others where first."""
    if category in (RULES, WORDS) and text in said and parted(line)[0] > parted(said[text])[0]:
        del said[text]
    said.setdefault(text, line)


def as_of_now(ledger: Ledger, later: Ledger, shown: Container[int]) -> Ledger:
    """The ledger with the state of the work that later messages left, less what these say themselves.

    later  of the messages that stay behind the record
    shown  those of them that are shown as they are
    """
    # The rest stays as it is: of a long session there are thousands of lines.
    before = {category: ledger[category] for category in (OUTCOMES, FAILING, FIXED) if category in ledger}
    state = {category: later[category] for category in STATE if category in later}
    now = ledger | {OUTCOMES: [], FAILING: []} | merge([before, state])
    for category in (OUTCOMES, FAILING):
        now[category] = [line for line in now[category] if parted(line)[0] not in shown]
    return {category: now[category] for category in CATEGORIES if now.get(category)}


def without_old_steps(ledger: Ledger, newest_user: int) -> Ledger:
    """The ledger without the steps of turns that are over."""
    if STEPS not in ledger:
        return ledger
    steps = [line for line in ledger[STEPS] if parted(line)[0] > newest_user]
    rest = {category: lines for category, lines in ledger.items() if category != STEPS}
    return {**rest, STEPS: steps} if steps else rest


def parted(line: str) -> tuple[int, str]:
    """The message that a line comes from, and its text."""
    seq, tab, text = line.partition("\t")
    return (int(seq), text) if tab and seq.isdecimal() else (0, line)


def _text_of(line: str) -> str:
    seq, tab, text = line.partition("\t")
    return text if tab and seq.isdecimal() else line


def texts(ledger: Mapping[str, Sequence[str]], category: str) -> Iterator[tuple[int, str]]:
    return (parted(line) for line in ledger.get(category, ()))


def _succeed(key: str, ledger: dict[str, dict[str, str]]) -> None:
    if ledger[FAILING]:
        _fix(key, ledger)
    if key not in ledger[SUCCEEDED]:
        ledger[SUCCEEDED][key] = f"0\t{key}"


def _fix(key: str, ledger: dict[str, dict[str, str]]) -> None:
    """What failed has succeeded since: it is no longer open, and what it said is kept only where there is room."""
    failing, fixed = ledger[FAILING], ledger[FIXED]
    if not failing:
        return
    for other, line in list(failing.items()):
        seq, kinds, errors = _failure(line)
        if other == key or key in kinds:
            del failing[other]
            for row in errors:
                if row not in fixed:
                    fixed[row] = f"{seq}\t{row}"


@lru_cache(maxsize=1_024)
def _failure(line: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Of a line on what fails: its message, the kinds of command whose success ends it, and the errors."""
    seq, text = parted(line)
    _, what, errors = (*text.split("\t", 2), "", "")[:3]
    return seq, kinds_of_command(what), tuple(filter(None, errors.split("\n")))


def _note_failure(key: str, what: str, seq: int, outcome: Outcome, ledger: dict[str, dict[str, str]]) -> None:
    _fix(key, ledger)
    ledger[SUCCEEDED].pop(key, None)
    ledger[FAILING][key] = f"{seq}\t{key}\t{' '.join(what.split())}\t" + "\n".join(outcome.errors)


def _outcome_line(kind: str, seq: int, command: str, outcome: Outcome) -> str:
    verdict = "failed" if outcome.is_failure else "ok"
    return f"{seq}\t{kind}\t{essence_of(command)[:COMMAND_CHARS]} → {outcome.text}\t{verdict}"


def _change_line(path: str, made: Sequence[tuple[int, Change]]) -> str:
    """The line of a file that was changed so, oldest first: changes are added up, the newest hint holds."""
    seq, newest = made[-1]
    count = sum(change.verb in COUNTED for _, change in made)
    hint = next(filter(None, (change.hint for _, change in reversed(made))), "")
    # A tab stands between the parts of a line.
    path, verb = path.replace("\t", " "), newest.verb.replace("\t", " ")
    return f"{seq}\t{path}\t{count}\t{verb}\t{hint}"


def _added(before: str, after: str) -> str:
    """Two lines about one file as one: changes are added up, the newest hint holds."""
    first, second = before.split("\t"), after.split("\t")
    if len(first) < 5 or len(second) < 5:
        return after if len(second) >= len(first) else before
    count = int(first[2]) + int(second[2])
    verb = first[3] if first[3] == "created" and second[3] == "edited" else second[3]
    return "\t".join((second[0], second[1], str(count), verb, second[4] or first[4]))
