"""Which files a shell command changes, where its text says so without doubt.

Only plain commands are read: words and quotes, joined by `&&`, `;`, `|` and ends of lines, with redirections and
here-documents. What another program does is not known, nor what a script in the command does: the command line alone
tells of it. Nor is what comes out of a subshell. A file that a loop or a condition may change is not named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import dropwhile, pairwise
from posixpath import basename, join, normpath

from nca.context.record.changes import MOVED_TO, Change, changes_by_patch, is_named, undone_by
from nca.context.record.command_statements import ADDS, BEFORE_A_PROGRAM, HARMLESS, Statement, statements_of

_MAY_CHANGE = re.compile(
    r"mv\s|cp\s|rm\s|tee\s|touch\s|patch\s|sed\s[^|;&]*?-\S*i\S*\s|perl\s[^|;&]*?-\S*i\S*\s|>(?!&|\s*/dev/|=)"
    r"|git\s[^|;&]*?(?:commit|mv|rm|checkout|restore|reset|stash|apply)\b"
)
"""Without any of these a command changes nothing that is read here. Most commands end so."""
_SCRATCH = re.compile(r"/dev/.*|(?:/private)?(?:/var)?/tmp/[^/]+")
"""Devices, and files that a command leaves directly in a folder for what is not kept."""
_UNREADABLE = re.compile(r"case|select|function|\{|exit|return|break|continue|eval|pushd|popd|source|\.")
"""With these nobody can tell what runs, or in which folder."""
_PLAIN_TEXT = re.compile(r"[^\"\\$`\n]*")
_PLAIN_WORD = re.compile(r"[\w./:@%+,=-]+")
_ASSIGNMENT = re.compile(r"(?s)([A-Za-z_]\w*)=(.*)")
_DECLARING = ("export", "declare", "local", "readonly", "typeset")
_NAMING = ("for", "read", "unset", "mapfile", "readarray", "getopts")
"""They give variables values that nobody knows."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_IN_PLACE = re.compile(r"-[a-zA-Z0]*i.*|--in-place.*")
_QUOTED = re.compile(r"""(?s)'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""")
_ESCAPED = re.compile(r"""\\(["\\$`])""")
"""What a backslash stands before in double quotes that it takes the meaning from."""
_COMPLAINT = re.compile(
    r"\n(?:/\S+/)?(?:mv|cp|rm|tee|touch|sed|perl|patch|cat|ls|find|grep|cd|mkdir|fatal|\(eval\)|(?:ba|z|da|k)?sh):"
    r"(?!.*command not found)(?: line \d+:|\d+:)? ?\S"
)
REPORTED = "reported by git"
"""Of a commit the result says which it is, or that there is none; of a quiet one `new` has the subject."""
UNDONE = "uncommitted changes undone"
_FOUND_BY = "files found by "
_SEARCH_CHARS = 80


def changes_by_command(command: str) -> tuple[Change, ...]:
    """The files that a command line changes when it succeeds, each with the last thing that is done to it."""
    if not _MAY_CHANGE.search(command):
        return ()
    found = _Found()
    return found.changes() if all(map(found.read, statements_of(command, _MAY_CHANGE.search))) else ()


def complains(result: str) -> bool:
    """Whether a shell, or a program for files, says in a result that it could not do what it was told to do."""
    return _COMPLAINT.search(f"\n{result}") is not None


class _Found:
    """What the statements of a command line change, read one by one."""

    def __init__(self) -> None:
        self._changes: dict[str, Change] = {}
        self._in_doubt: set[str] = set()
        """Files that may have been changed, or changed back."""
        self._folder = ""
        self._source: list[str] = []
        """The words at the beginning of a pipeline."""
        self._is_first, self._has_others = True, False
        self._values: dict[str, str] = {}
        """Variables of the shell that stand for a plain text."""

    def changes(self) -> tuple[Change, ...]:
        sure = [change for change in self._changes.values() if not is_named(change, self._in_doubt)]
        return tuple(sure if self._has_others else (change._replace(is_first=False) for change in sure))

    def read(self, statement: Statement) -> bool:
        """Note what a statement changes; False where nobody can tell what runs, or in which folder."""
        raw = [self._filled(word) for word in statement.words]
        words = list(dropwhile(BEFORE_A_PROGRAM.fullmatch, raw)) or [""]
        program, arguments = basename(words[0]), words[1:]
        if program == "cd":
            self._folder = self._path(_plain(arguments[0])) if len(arguments) == 1 and arguments[0] != "-" else ""
            return bool(self._folder) and not statement.is_in_doubt
        if _UNREADABLE.fullmatch(program):
            return False
        self._assign(raw if words == [""] else arguments if program in _DECLARING else (), statement)
        if program in _NAMING:
            self._values |= dict.fromkeys(words, "")
        if statement.before not in ("|", "|&"):
            self._source = words
        own = list(self._by(program, arguments, statement))
        is_other = not own and not HARMLESS.fullmatch(program)
        text = " ".join(map(_plain, arguments)) if program in ("echo", "printf") else statement.body
        for operator, target in statement.outputs:
            own.append(Change(_plain(self._filled(target)), "edited" if operator in ADDS else "written", text))
        for change in own:
            self._forget(change)
            if statement.is_in_doubt and (change.verb != REPORTED or change.new):
                self._in_doubt |= {change.path, self._path(change.path), self._path(change.target)} - {""}
            else:
                self._note(change)
        if is_other:
            self._is_first, self._has_others = False, True
        return True

    def _by(self, program: str, arguments: list[str], statement: Statement) -> Iterable[Change]:
        """What a program changes by itself."""
        if program == "xargs" or (program == "find" and "-exec" in arguments):
            return _by_search(self._source, arguments)
        by_program = _BY_PROGRAM.get(program)
        return by_program(list(map(_plain, arguments)), statement.body) if by_program else ()

    def _assign(self, words: Sequence[str], statement: Statement) -> None:
        """Remember what variables of the shell stand for, where that is a plain text."""
        for word in words:
            if match := _ASSIGNMENT.fullmatch(word):
                value = "" if statement.is_in_doubt or statement.is_piped else _plain(match[2])
                self._values[match[1]] = value if _PLAIN_TEXT.fullmatch(value) else ""

    def _filled(self, word: str) -> str:
        """A word with the values of variables that are known."""
        if "$" not in word or "'" in word or "\\" in word:
            return word
        is_quoted = word[0] == word[-1] == '"'

        def value(match: re.Match[str]) -> str:
            known = self._values.get(match[1] or match[2], "")
            # Without quotes the shell would part a text at its blanks.
            return known if known and (is_quoted or _PLAIN_WORD.fullmatch(known)) else match[0]

        return _VARIABLE.sub(value, word)

    def _forget(self, change: Change) -> None:
        """Drop what this change may undo: not an edit in place of files that are found, which are there."""
        if change.path.startswith(_FOUND_BY):
            return
        is_lost = change.target and not self._path(change.target)
        later = change._replace(path=self._path(change.path), verb="" if is_lost else change.verb)
        for undone in undone_by(later, self._changes.values()):
            if not undone.path.startswith("git "):
                del self._changes[undone.path]

    def _note(self, change: Change) -> None:
        path, verb = self._path(change.path), change.verb
        if change.path.startswith(("git ", _FOUND_BY)):
            path = change.path
        elif verb.startswith(MOVED_TO):
            target = self._path(change.target)
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
        """A path as seen from where the command begins; "" where the shell makes it, or where it is no line."""
        if not text or any(one in text for one in "$`\n"):
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
    for move in _by_move(arguments, body):
        yield Change(move.target, "written", f"copied from {move.path}")


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
        return _GIT_FOR_ALL[name](options)
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


def _by_reset(options: list[str]) -> Iterator[Change]:
    if "--hard" in options:
        yield Change("git reset", " ".join([UNDONE, *(f"back to {one}" for one in options if one != "--hard")]))


def _by_stash(options: list[str]) -> Iterator[Change]:
    name = next((one for one in options if not one.startswith("-")), "push")
    verb = {"push": "uncommitted changes put away", "pop": "brought back", "apply": "brought back"}.get(name)
    if verb:
        yield Change("git stash", verb)


def _by_commit(options: list[str]) -> Iterator[Change]:
    """A commit that git reports, or with -q one with the first line of its message."""
    short = [one for one in options if one.startswith("-") and not one.startswith("--")]
    if "--dry-run" in options:
        return
    if "--quiet" not in options and not any("q" in one.partition("m")[0] for one in short):
        yield Change("git commit", REPORTED)
        return
    named = pairwise(options)
    texts = [text for one, text in named if one == "--message" or (one in short and one.endswith("m"))]
    texts += [one.removeprefix("--message=") for one in options if one.startswith("--message=")]
    subject = " ".join(texts[0].strip().partition("\n")[0].split()) if texts else ""
    if subject and "$" not in subject and "`" not in subject:
        yield Change("git commit", REPORTED, new=subject)


_GIT_FOR_ALL: dict[str, Callable[[list[str]], Iterator[Change]]] = {
    "commit": _by_commit,
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
