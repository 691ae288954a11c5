"""Which files a shell command changes, where its text says so without doubt.

Only plain commands are read: words and quotes, joined by `&&`, `;`, `|` and ends of lines, with redirections and
here-documents. What comes out of a variable, a loop, a subshell or another program is not known, and nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import dropwhile
from posixpath import basename, join, normpath

from nca.context.record.changes import MOVED_TO, Change, changes_by_patch

_TOKEN = re.compile(
    r"""(?xs)(?:[ \t\r]|\\\n)+
    | (?P<comment>(?<![^\s;&|])\#[^\n]*)
    | (?P<operator>&>>?|>>|>&|>\||>|<<<|<<|<&|<|\|\||&&|\|&|[;&|\n])
    | (?P<word>(?:[^\s\\'"();<>|&]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)"""
)
_HERE_DOCUMENT = re.compile(r"(?ms)<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(.*?)^\s*\2\s*$")
_MAY_CHANGE = re.compile(
    r"mv\s|cp\s|rm\s|tee\s|touch\s|patch\s|sed\s[^|;&]*?-\S*i\S*\s|perl\s[^|;&]*?-\S*i\S*\s|>(?!&|\s*/dev/|=)"
    r"|git\s[^|;&]*?(?:commit|mv|rm|checkout|restore|reset|stash|apply)\b"
)
"""Without any of these a command changes nothing that is read here. Most commands end so."""
_WRITES, _ADDS = (">", "&>", ">|"), (">>", "&>>")
_SCRATCH = re.compile(r"/dev/.*|(?:/private)?(?:/var)?/tmp/[^/]+")
"""Devices, and files that a command leaves directly in a folder for what is not kept."""
_BEFORE_A_PROGRAM = re.compile(r"[A-Za-z_]\w*=.*|sudo|env|command|time", re.DOTALL)
_UNREADABLE = re.compile(r"for|while|until|if|case|select|function|\{|!|\[\[?|test|exit|return|eval|pushd|popd")
"""With these nobody can tell what runs, or in which folder."""
_HARMLESS = re.compile(r"(?:cat|set|export|echo|printf|mkdir|:|true)?")
"""What is expected to succeed."""
_IN_PLACE = re.compile(r"-[a-zA-Z0]*i.*|--in-place.*")
_QUOTED = re.compile(r"""(?s)'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""")
_ESCAPED = re.compile(r"""\\(["\\$`])""")
"""What a backslash stands before in double quotes that it takes the meaning from."""
_COMPLAINT = re.compile(
    r"\n(?:/\S+/)?(?:mv|cp|rm|tee|touch|sed|perl|patch|cat|ls|find|grep|cd|mkdir|fatal|\(eval\)|(?:ba|z|da|k)?sh):"
    r"(?!.*command not found)(?: line \d+:|\d+:)? ?\S"
)
COMMIT = "git commit"
UNDONE = "uncommitted changes undone"
_FOUND_BY = "files found by "
_SEARCH_CHARS = 80


@dataclass(slots=True)
class _Statement:
    """A simple command: what joins it to the one before, its words, where its output goes, its here-document."""

    before: str
    words: list[str] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    body: str = ""


def changes_by_command(command: str) -> tuple[Change, ...]:
    """The files that a command line changes when it succeeds, each with the last thing that is done to it."""
    if not _MAY_CHANGE.search(command):
        return ()
    statements, found = _statements(command), _Found()
    if any(one.before == "||" for one in statements) or not all(map(found.read, statements)):
        return ()
    return found.changes()


def complains(result: str) -> bool:
    """Whether a shell, or a program for files, says in a result that it could not do what it was told to do."""
    return _COMPLAINT.search(f"\n{result}") is not None


def _statements(command: str) -> list[_Statement]:
    """The simple commands of a line; none where a part of it cannot be read."""
    bodies: list[str] = []

    def without_body(match: re.Match[str]) -> str:
        bodies.append(match[4])
        return f"<<{len(bodies) - 1}{match[3]}\n"

    text = _HERE_DOCUMENT.sub(without_body, command)
    found, redirection, word_end, end = [_Statement("")], "", -1, 0
    while token := _TOKEN.match(text, end):
        statement, end = found[-1], token.end()
        word, operator = token["word"], token["operator"]
        if word is not None:
            word_end = end
            if redirection in (*_WRITES, *_ADDS):
                statement.outputs.append((redirection, word))
            elif redirection == "<<":
                statement.body = bodies[int(word)] if word.isdecimal() and int(word) < len(bodies) else ""
            elif not redirection:
                statement.words.append(word)
            redirection = ""
        elif operator and (">" in operator or "<" in operator):
            if token.start() == word_end and statement.words and statement.words[-1].isdecimal():
                # The number of the output that goes there.
                statement.words.pop()
            redirection = operator
        elif operator:
            found.append(_Statement(operator))
    return found if end == len(text) else []


class _Found:
    """What the statements of a command line change, read one by one."""

    def __init__(self) -> None:
        self._changes: dict[str, Change] = {}
        self._folder = ""
        self._source: list[str] = []
        """The words at the beginning of a pipeline."""
        self._is_first, self._has_others = True, False

    def changes(self) -> tuple[Change, ...]:
        if self._has_others:
            return tuple(self._changes.values())
        return tuple(change._replace(is_first=False) for change in self._changes.values())

    def read(self, statement: _Statement) -> bool:
        """Note what a statement changes; False where nobody can tell what runs, or in which folder."""
        words = list(dropwhile(_BEFORE_A_PROGRAM.fullmatch, statement.words)) or [""]
        program, arguments = basename(words[0]), words[1:]
        if program == "cd":
            self._folder = self._path(_plain(arguments[0])) if len(arguments) == 1 and arguments[0] != "-" else ""
            return bool(self._folder)
        if _UNREADABLE.fullmatch(program):
            return False
        if statement.before not in ("|", "|&"):
            self._source = words
        if program == "xargs" or (program == "find" and "-exec" in arguments):
            own = list(_by_search(self._source, arguments))
        else:
            by_program = _BY_PROGRAM.get(program)
            own = list(by_program(list(map(_plain, arguments)), statement.body)) if by_program else []
        for change in own:
            self._note(change)
        text = " ".join(map(_plain, arguments)) if program in ("echo", "printf") else statement.body
        for operator, path in statement.outputs:
            self._note(Change(_plain(path), "edited" if operator in _ADDS else "written", text))
        if not own and not _HARMLESS.fullmatch(program):
            self._is_first, self._has_others = False, True
        return True

    def _note(self, change: Change) -> None:
        path, verb = self._path(change.path), change.verb
        if change.path.startswith(("git ", _FOUND_BY)):
            path = change.path
        elif verb.startswith(MOVED_TO):
            target = self._path(verb.removeprefix(MOVED_TO))
            verb = f"{MOVED_TO}{target}" if target not in ("", path) else ""
            self._changes.pop(target, None)
            if self._is_own(path):
                self._changes.pop(path, None)
                path, verb = target, "written"
        elif verb == "deleted" and self._is_own(path):
            self._changes.pop(path, None)
            verb = ""
        if path and verb and not _SCRATCH.fullmatch(path):
            self._changes.pop(path, None)
            self._changes[path] = change._replace(path=path, verb=verb, is_first=self._is_first)

    def _is_own(self, path: str) -> bool:
        """Whether a file is this command's alone: in a folder for scratch, or written by a statement before."""
        before = self._changes.get(path)
        return _SCRATCH.fullmatch(path) is not None or (before is not None and before.verb == "written")

    def _path(self, text: str) -> str:
        """A path as seen from where the command begins; "" where the shell makes it."""
        if not text or "$" in text or "`" in text:
            return ""
        return normpath(text if text.startswith("~") else join(self._folder, text))


def _plain(word: str) -> str:
    """A word without its quotes."""
    return _QUOTED.sub(_without_quotes, word) if "'" in word or '"' in word or "\\" in word else word


def _without_quotes(match: re.Match[str]) -> str:
    single, double, escaped = match.groups()
    return _ESCAPED.sub(r"\1", double) if double is not None else single if single is not None else escaped


def _by_move(arguments: list[str], _body: str) -> Iterator[Change]:
    *sources, target = [one for one in arguments if not one.startswith("-")] or [""]
    if not any(one.startswith(("-t", "--target")) for one in arguments):
        is_folder = len(sources) > 1 or target.endswith("/") or basename(target) in (".", "..")
        for source in sources:
            place = join(target, basename(source.rstrip("/"))) if is_folder else target
            yield Change(source, f"{MOVED_TO}{place}")


def _by_copy(arguments: list[str], body: str) -> Iterator[Change]:
    for source, verb, *_ in _by_move(arguments, body):
        yield Change(verb.removeprefix(MOVED_TO), "written", f"copied from {source}")


def _by_remove(arguments: list[str], _body: str) -> Iterator[Change]:
    return (Change(one, "deleted") for one in arguments if not one.startswith("-"))


def _by_tee(arguments: list[str], body: str) -> Iterator[Change]:
    verb = "edited" if "-a" in arguments or "--append" in arguments else "written"
    return (Change(one, verb, body) for one in arguments if not one.startswith("-"))


def _by_touch(arguments: list[str], _body: str) -> Iterator[Change]:
    if not any(one.startswith("-") for one in arguments):
        yield from (Change(one, "written") for one in arguments)


def _by_edit_in_place(arguments: list[str], _body: str) -> Iterator[Change]:
    """sed and perl: the script is behind `-e`, for sed else the first argument."""
    scripts, files, rest = list[str](), list[str](), iter(arguments)
    for one in rest:
        if one.startswith("-") and one.endswith("e") and not one.startswith("--"):
            scripts.append(next(rest, ""))
        elif not one.startswith("-"):
            # BSD's sed is given an empty suffix.
            files += [one] if one else []
    if not scripts and files:
        scripts.append(files.pop(0))
    if any(map(_IN_PLACE.fullmatch, arguments)):
        yield from (Change(one, "edited", "; ".join(scripts)) for one in files)


def _by_search(source: list[str], arguments: list[str]) -> Iterator[Change]:
    """An edit of all files that another program finds: `grep -l … | xargs sed -i …` and `find … -exec sed -i … +`."""
    edits = [place for place, one in enumerate(arguments) if basename(one) in ("sed", "perl")]
    if edits:
        words = list(map(_plain, arguments[edits[0] + 1 :]))
        change = next(_by_edit_in_place([one for one in words if one not in ("{}", "+", ";")] + ["{}"], ""), None)
        if change:
            search = " ".join(source[: source.index("-exec")] if "-exec" in source else source)
            yield change._replace(path=f"{_FOUND_BY}`{search[:_SEARCH_CHARS]}`")


def _by_patch(arguments: list[str], body: str) -> Iterable[Change]:
    return changes_by_patch(body or "\n".join(arguments))


def _by_git(arguments: list[str], body: str) -> Iterable[Change]:
    rest, is_elsewhere = list(arguments), False
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        is_elsewhere = is_elsewhere or option == "-C"
        del rest[: option in ("-C", "-c")]
    name, *options = rest or [""]
    if name in _GIT_FOR_ALL:
        verb = _GIT_FOR_ALL[name](options)
        return (Change(f"git {name}", verb),) if verb else ()
    if is_elsewhere:
        return ()
    match name:
        case "mv":
            return _by_move(options, body)
        case "rm" if "--cached" not in options:
            return _by_remove(options, body)
        case "apply":
            return _by_patch([], body)
        case "checkout" if "--" in options:
            return _restored(name, options[options.index("--") + 1 :])
        case "checkout" if options == ["."]:
            return _restored(name, options)
        case "restore" if not {"-S", "--staged", "-s"} & set(options):
            return _restored(name, options)
    return ()


def _restored(name: str, arguments: list[str]) -> Iterator[Change]:
    for one in arguments:
        if one in (".", ":/"):
            yield Change(f"git {name}", UNDONE)
        elif not one.startswith("-"):
            yield Change(one, "restored")


def _by_reset(options: list[str]) -> str:
    return " ".join([UNDONE, *(f"back to {one}" for one in options if one != "--hard")]) if "--hard" in options else ""


def _by_stash(options: list[str]) -> str:
    name = next((one for one in options if not one.startswith("-")), "push")
    return {"push": "uncommitted changes put away", "pop": "brought back", "apply": "brought back"}.get(name, "")


_GIT_FOR_ALL: dict[str, Callable[[list[str]], str]] = {
    "commit": lambda options: "" if "--dry-run" in options else "done",
    "reset": _by_reset,
    "stash": _by_stash,
}
"""What git does to many files at once."""
_BY_PROGRAM: dict[str, Callable[[list[str], str], Iterable[Change]]] = {
    "mv": _by_move,
    "cp": _by_copy,
    "rm": _by_remove,
    "tee": _by_tee,
    "touch": _by_touch,
    "sed": _by_edit_in_place,
    "perl": _by_edit_in_place,
    "patch": _by_patch,
    "apply_patch": _by_patch,
    "git": _by_git,
}
