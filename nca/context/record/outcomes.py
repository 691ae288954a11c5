"""What became of a tool call: whether it failed, how a command ended, and the lines that report an error.

A failure is known by its mark, by an exit status, or by what the text says, so transcripts without any marks are read
as well. A search without hits, a refused permission and a missing file are outcomes: nothing waits for a fix.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from posixpath import basename

import msgspec

from nca.context.file_reads import CALLS_REMEMBERED, arguments_of, file_use, says_failed
from nca.messages import Message, ToolCall

MAX_LINE_CHARS = 160
MOST_ERROR_LINES = 4
"""Of one failure: the first says what was wrong, the others where."""
SCANNED_CHARS = 50_000
# Searching is most of a compaction's time. Python's `re` skips what cannot match only where an expression begins with
# letters of one case: so what it searches is lowered, and the beginning of a line is the end of the one before.
_STATUS = re.compile(r"(?:exit(?:ed with)?(?: code| status)?|returncode|return code)[: =]+(-?\d+)")
_FAILURE = re.compile(
    r"""(?mx)\n(?:
    Traceback\ \(most\ recent\ call\ last\)
    | (?:\S+:\ )?(?:fatal|panic|error|ERROR|Error)(?:\[\w+\])?:
    | (?P<raised>(?:[A-Za-z_][\w.]*)?(?:Error|Exception)(?::|$))
    | FAILED\b | FAIL:?\s | npm\ ERR! | Segmentation\ fault | .*:\ command\ not\ found$
    | make(?:\[\d+\])?:\ \*\*\*
    | [^\s:]+:\d+(?::\d+)?:\ (?:fatal\ )?error\b    # file.c:3:5: error
    | \S+\(\d+,\d+\):\ error\                          # file.ts(3,5): error
    | E\ \ \ \S                                          # pytest
    | (?:=+\ .*)?\b[1-9]\d*\ (?:failed|errors?)\b
    )"""
)
"""How programs report a failure, at the beginning of a line: searched for behind the end of the line before."""
_OWN_SCRIPT = re.compile("(?:python|node)(?: .*)?")
"""A kind of command that runs what somebody wrote, which may print an error that it has caught."""
_PIPE = re.compile(r"[^|]\|[^|]")
_STACK = re.compile(r'(?m)^ *(?:File ".*", line \d|at \S.*:\d+:\d+\)?$)')
"""Where an error was raised that nobody caught."""
_ERROR_LINE = re.compile(
    r"error\b|exception\b|fatal\b|panic\b|failed(?<!\wfailed)\b|: command not found|cannot |undefined |unexpected "
)
_ERROR_WORDS = re.compile(rf"e  |{_ERROR_LINE.pattern}")
"""In every line that reports an error, and now and then in another."""
_REPORT = re.compile(
    r"e  |(?:\S+: )?(?:fatal|panic|error)\b|[\w.]*(?:error|exception)(?::|\Z)|fail(?:ed)?\b"
    r"|=* ?[1-9]\d* (?:failed|errors?)\b|npm err!|make(?:\[\d+\])?: \*\*\*|.*: command not found\Z"
    r"|\S+:\d+(?::\d+)?: (?:fatal )?error\b|\S+\(\d+,\d+\): error\b"
)
"""How a line begins that is there for the error; a line of code that names an exception only speaks of it."""
_FAILED_TEST = re.compile(r"failed \S+::")
"""How pytest ends with each failed test and what was wrong."""
_NOT_RUN = "[not run"
"""How a result begins of a call that nca did not make."""
_STILL_RUNS = re.compile(r"(?:\A|\n)\[job \d+ is running\b[^\n]*\]")
"""How a result ends that a command in the background has not ended."""
JOB = "job"
_JOB_ENDED = re.compile(r"(?:\A|\n)\[job \d+ has ended [^\n]*?; it ran: ([^\n]+)\](?=\n|\Z)")
"""How a result of the tool `job` tells that a command in the background has ended, and which one."""
_TAG = r"(?i)\A\W*(?:(?:tool_use_error|error:)\W*)?"
"""How a result begins, in Claude Code with a tag."""
MOST_REFUSAL_CHARS = 2_000
"""A longer result that begins so is a file or an output."""
_REFUSED = re.compile(
    _TAG + r"(?:not run\b|denied|refused|sibling tool call errored"
    r"|the user (?:refused|declined|rejected|doesn't want to (?:take this action|proceed)))"
)
_NOT_THERE = re.compile(
    _TAG + r"(?:no (?:matches|results|files)|nothing found|0 matches|permission denied|.{0,80}no such file"
    r"|.{0,80}(?:does not exist|not found)(?::[^\n]{0,200})?\W*\Z|enoent)"
)
"""What a search or a read says that found nothing."""
_COUNTS = re.compile(r"\d\d* (?:passed|failed|errors?|skipped|warnings?|deselected|xfailed)\b.*")
_UNITTEST = re.compile(r"(?m)\n(Ran \d+ tests?) in .*\s+^((?:OK|FAILED)\b.*)$")
_LOOKS = re.compile("grep|rg|ag|find|fd|ls|cat|head|tail|sed|awk|wc|which|test|diff|sort|pwd|jq|tr|cut|tree|stat|du")
"""Programs that only look: what they did not find is no error, and their last outcome says nothing about the work."""
_SMALL_STEP = re.compile(
    "cd|cp|mv|mkdir|rm|touch|echo|printf|export|chmod|sleep|true|set|source|xargs|tee|curl|wget"
    "|git (?:status|diff|log|show|add|mv|rm|restore|branch|blame|remote|fetch|rev-parse|ls-files|ls-remote)"
    "|gh (?:api|auth)"
)
_HAS_SUBCOMMANDS = re.compile("git|gh|npm|yarn|pnpm|cargo|go|make|uv|pip|docker|kubectl|poetry|dotnet")
_INTERPRETER = re.compile("python|node|ruby|perl|bash|sh")
_WRAPPER = re.compile("sudo|env|time|timeout|nohup|nice|xvfb-run|command|exec")
_LAUNCHER = re.compile("(?:uv|poetry|pipenv|hatch|pdm|rye|pipx) run|(?:bundle|npm|pnpm|yarn) exec|npx|bunx|uvx")
"""What runs another program in a project's environment: of `uv run pytest` it is pytest that fails."""
_WRAPPER_VALUES = frozenset({"-u"})
_LAUNCHER_VALUES = frozenset({"-p", "--with", "--python", "--extra", "--group", "--package", "--directory", "--from"})
"""Options behind which a value stands that is no program."""
_SCRIPTS = re.compile("(?:npm|pnpm|yarn|bun) run")
_SECONDS = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_VERSION = re.compile(r"[\d.]+\Z")
_HERE_DOCUMENT = re.compile(r"(?ms)<<-?\s*(['\"]?)(\w+)\1(.*?)\n.*?^\s*\2\s*$")
_MESSAGE = re.compile(r"(?ms)\"\$\(cat\s*<<-?\s*(['\"]?)(\w+)\1\s*\n.*?^\s*\2\s*\)\"")
"""A long text for an option of a command: `git commit -m "$(cat <<'EOF' …)"`."""
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_CONTINUED = re.compile(r"\\\n\s*")
"""The end of a line that goes on in the next one."""
_CHANGE_FOLDER = re.compile(r"\A(?:cd\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;)\s*)+")


class Outcome(msgspec.Struct, gc=False):
    """What one call came to. Its words are looked for when they are asked for: of most calls only the failure counts.

    is_failure   it failed, and something has to be mended
    is_command   it is one of a command line, which says how it ended
    was_run      it ran to its end
    """

    result: str
    is_failure: bool
    is_command: bool
    was_run: bool
    _text: str | None = None

    @property
    def text(self) -> str:
        """One line: "582 passed", "exit 1", "ok"."""
        if self._text is None:
            self._text = self._in_a_line()
        return self._text

    def _in_a_line(self) -> str:
        if not self.was_run:
            return "running" if _still_runs(self.result) else "not run"
        is_plain = not self.is_failure and not self.is_command
        return "ok" if is_plain else _last_word(self.result, is_failure=self.is_failure)

    @property
    def errors(self) -> tuple[str, ...]:
        """The lines that report the failure, the first first."""
        return error_lines(self.result) if self.is_failure else ()


def command_of(call: ToolCall) -> str:
    """The shell command of a call; empty where it is no command."""
    return _command(call.name, call.arguments)


@lru_cache(maxsize=CALLS_REMEMBERED)
def _command(name: str, text: str) -> str:
    call = ToolCall("", name, text)
    arguments = arguments_of(call)
    for key in ("command", "cmd", "script"):
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            # Codex gives the words of a command, of which the last is a script where a shell runs it.
            value = value[-1] if value[1:2] in (["-c"], ["-lc"]) else shlex.join(value)
        if isinstance(value, str) and value.strip() and file_use(call) is None:
            return value.strip()
    return ""


def ended_call(call: ToolCall, result: str) -> ToolCall:
    """The call whose outcome a result tells: itself, or the command in the background that has ended, as a call."""
    if call.name == JOB and (ended := _JOB_ENDED.search(result)):
        return ToolCall(call.id, "shell", json.dumps({"command": ended[1].strip()}))
    return call


@lru_cache(maxsize=4_096)
def kind_of_command(command: str) -> str:
    """The program that a command line is about, with its subcommand: "pytest", "git commit".

    The last program that does more than look; paths, versions, assignments and wrappers are left out.
    """
    return (kinds_of_command(command) or ("",))[-1]


@lru_cache(maxsize=4_096)
def kinds_of_command(command: str) -> tuple[str, ...]:
    """The programs of a command line that do more than look; where none does, those that look."""
    plain = _QUOTED.sub("_", _HERE_DOCUMENT.sub(r"\3", _CONTINUED.sub(" ", command)))
    kinds = [kind for part in re.split(r"&&|\|\||[;|\n]", plain) if (kind := _kind_of_part(part.split()))]
    return tuple(kind for kind in kinds if not says_little(kind)) or tuple(kinds)


def essence_of(command: str) -> str:
    """The line of a command that it is about, in one line, without the change of folder before it."""
    command = _HERE_DOCUMENT.sub(r"\3", _CONTINUED.sub(" ", _MESSAGE.sub('"…"', command)))
    command = _QUOTED.sub(lambda quoted: '"…"' if "\n" in quoted[0] else quoted[0], command)
    lines = [line.strip() for line in command.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")] or [command.strip()]
    telling = [line for line in lines if not says_little(kind_of_command(line))] or lines[:1]
    kind = kind_of_command(command)
    line = next((line for line in telling if kind_of_command(line) == kind), telling[0])
    return " ".join(_CHANGE_FOLDER.sub("", line).split())


def says_little(kind: str) -> bool:
    """Whether a kind of command only looks or takes a small step, so that its success says nothing about the work."""
    return bool(_LOOKS.fullmatch(kind.split(" ")[0]) or _SMALL_STEP.fullmatch(kind))


def _kind_of_part(words: list[str]) -> str:
    rest = _unwrapped(words)
    if not rest:
        return ""
    program = _VERSION.sub("", basename(rest[0].strip("'\"()"))) or rest[0]
    if _INTERPRETER.fullmatch(program):
        if "-m" in rest[:-1]:
            return rest[rest.index("-m") + 1]
        if "-c" in rest or "-e" in rest:
            return f"{program} -c"
        script = next((one for one in rest[1:] if not one.startswith("-")), "")
        return f"{program} {basename(script)}" if script and len(script) < 80 else program
    if _HAS_SUBCOMMANDS.fullmatch(program):
        plain = [one for one in rest[1:] if not one.startswith("-")]
        kind = " ".join([program, *plain[:1]])
        if _SCRIPTS.fullmatch(kind) and len(plain) > 1:
            # A script that passes says nothing about another one; the one named test has a short form.
            return f"{program} test" if plain[1] == "test" else f"{kind} {plain[1]}"
        return kind
    return program


def _unwrapped(words: list[str]) -> list[str]:
    """The words from the program's name on, without assignments and without what only runs it."""
    rest, values = list(words), frozenset[str]()
    is_wrapped = False
    while rest:
        if launcher := _LAUNCHER.match(" ".join(rest[:2])):
            named = len(launcher[0].split())
            if rest[:named] != launcher[0].split():
                break
            del rest[:named]
            is_wrapped, values = True, _LAUNCHER_VALUES
        elif _WRAPPER.fullmatch(rest[0]):
            del rest[0]
            is_wrapped, values = True, _WRAPPER_VALUES
        elif is_wrapped and rest[0].startswith("-"):
            del rest[: 1 + (rest[0] in values)]
        elif _ASSIGNMENT.fullmatch(rest[0]) or _SECONDS.fullmatch(rest[0]):
            del rest[0]
        else:
            break
    return rest


def outcome_of(call: ToolCall | None, result: Message) -> Outcome:
    """What a call came to, by its mark, its exit status or its text."""
    text = result.text
    call = ended_call(call, text) if call is not None else None
    command = command_of(call) if call is not None else ""
    is_refused = text.startswith(_NOT_RUN) or (len(text) < MOST_REFUSAL_CHARS and _REFUSED.match(text) is not None)
    was_run = not is_refused and not _still_runs(text)
    is_failure = was_run and _is_failure(call, command, result, text)
    return Outcome(text, is_failure, bool(command), was_run)


def _still_runs(text: str) -> bool:
    tail = text[-400:]
    return "[job " in tail and _STILL_RUNS.search(tail) is not None


def is_failed(call: ToolCall | None, result: Message) -> bool:
    """Whether a result shows nothing of what was asked for: marked, or a failure by its text."""
    return result.is_error or _is_failure(call, command_of(call) if call is not None else "", result, result.text)


def _is_failure(call: ToolCall | None, command: str, result: Message, text: str) -> bool:
    text = text[:SCANNED_CHARS]
    is_looking = not command or _looks(kind_of_command(command))
    if call is not None and not command:
        # A file may speak of errors; only a result that begins with one is one.
        seems_failed = result.is_error or says_failed(text)
    elif command and is_looking:
        seems_failed = result.is_error and _reports_failure(text, "")
    elif statuses := _statuses(text[-400:]) or _statuses(text[:200]):
        seems_failed = statuses[-1] != "0"
    else:
        # Behind a pipe the beginning of what was raised may be cut away.
        kind = "" if _PIPE.search(command) else kind_of_command(command)
        seems_failed = result.is_error or _reports_failure(text, kind)
    return seems_failed and not (_REFUSED.match(text) or (is_looking and _NOT_THERE.match(text)))


@lru_cache(maxsize=1_024)
def _looks(kind: str) -> bool:
    return bool(_LOOKS.fullmatch(kind.split(" ")[0]))


def _reports_failure(text: str, kind: str) -> bool:
    """Whether the output of this kind of command reports a failure. A script may print an error that it expected."""
    is_printed = _OWN_SCRIPT.fullmatch(kind) is not None and _STACK.search(text) is None
    return any(not (is_printed and match["raised"]) for match in _FAILURE.finditer(f"\n{text}"))


def _statuses(text: str) -> list[str]:
    lowered = text.lower()
    return _STATUS.findall(lowered) if "exit" in lowered or "return" in lowered else []


def error_lines(text: str) -> tuple[str, ...]:
    """The lines of a failed tool's output that report the error; its first line where none does."""
    scanned = text[:SCANNED_CHARS]
    found = list(_lines_with_errors(scanned))
    if not found:
        first = next((stripped for line in scanned.splitlines() if (stripped := line.strip())), "")
        return (first[:MAX_LINE_CHARS],) if first else ()
    found = [line for line in found if _REPORT.match(line.lower())] or found
    if tests := [line for line in found if _FAILED_TEST.match(line.lower())]:
        # How many failed comes first: it is all that a short line has room for.
        found = [*found[-1:], *tests]
    # The last lines of a traceback or a test run say most; the very first says what it was.
    unique = list(dict.fromkeys(found))
    return tuple(unique if len(unique) <= MOST_ERROR_LINES else [*unique[: MOST_ERROR_LINES - 1], unique[-1]])


def _lines_with_errors(text: str) -> Iterator[str]:
    """The lines that report an error, stripped and cut: those with a telling word are looked at one by one."""
    lowered, begin = text.lower(), 0
    # A letter whose small form is two characters would move every place behind it.
    is_aligned = len(lowered) == len(text)
    while match := _ERROR_WORDS.search(lowered, begin):
        first = text.rfind("\n", 0, match.start()) + 1 if is_aligned else 0
        end = text.find("\n", match.end()) if is_aligned else -1
        begin = end if end >= 0 else len(lowered)
        for line in map(str.strip, text[first:begin].splitlines()):
            if line and len(line) <= 400 and _is_error_line(line.lower()):
                yield line[:MAX_LINE_CHARS]


def _is_error_line(lowered: str) -> bool:
    return lowered.startswith("e  ") or _ERROR_LINE.search(lowered) is not None


def _last_word(text: str, *, is_failure: bool) -> str:
    """One line on how it ended: counts of a test run, an exit status, else "ok" or "failed"."""
    tail = text[-2_000:]
    if ran := _UNITTEST.findall(f"\n{tail}"):
        return " ".join(": ".join(ran[-1]).split())
    if counts := next(filter(None, map(_COUNTS.search, reversed(tail.split("\n")))), None):
        return " ".join(counts[0].strip(" =").split())[:80]
    if statuses := _statuses(text[-400:]):
        return f"exit {statuses[-1]}" if statuses[-1] != "0" else "ok"
    return "failed" if is_failure else "ok"
