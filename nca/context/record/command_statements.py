"""The simple commands of a shell command line, and of which nobody can tell from the text whether they run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from posixpath import basename

_TOKEN = re.compile(
    r"""(?xs)(?:[ \t\r]|\\\n)+
    | (?P<comment>(?<![^\s;&|])\#[^\n]*)
    | (?P<operator>&>>?|>>|>&|>\||>|<<<|<<|<&|<|\|\||&&|\|&|[;&|\n])
    | (?P<word>(?:[^\s\\'"();<>|&]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)"""
)
_HERE_DOCUMENT = re.compile(r"(?ms)<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(.*?)^\s*\2\s*$")
_SUBSTITUTION = re.compile(r"""[$<>]\(((?:[^()'"]|'[^']*'|"(?:[^"\\]|\\.)*")*)\)""")
UNKNOWN = "${_}"
"""Stands for what a substitution gives."""
WRITES, ADDS = (">", "&>", ">|"), (">>", "&>>")
BEFORE_A_PROGRAM = re.compile(r"[A-Za-z_]\w*=.*|sudo|env|command|time", re.DOTALL)
_JOINING = ("&&", "||", "|", "|&")
_OPENING = ("while", "until", "if")
_LED_IN = ("while", "until", "if", "elif", "then", "else", "do", "!")
"""Stand before a command, of which nobody can tell whether it runs or succeeds."""
_CONDITION = re.compile(r"test|\[\[?|false|grep|egrep|rg|diff|cmp|which")
"""Programs that answer with their exit status: what is joined to them may not run."""
HARMLESS = re.compile(r"(?:cat|set|export|echo|printf|mkdir|:|true)?")
"""What is expected to succeed."""
_TELLS = re.compile(rf"{HARMLESS.pattern}|cd|ls|mv|cp|rm|tee|touch|sed|perl|patch|git (?:add|mv|rm)")
"""If these fail, the result says it (`complains`), so that their exit status need not be seen."""


@dataclass(slots=True)
class Statement:
    """A simple command: what joins it to the one before, its words, where its output goes, its here-document.

    is_piped      its output goes to the next one
    is_in_doubt   another one decides whether it runs, or whether its failure counts
    """

    before: str
    words: list[str] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    body: str = ""
    is_piped: bool = False
    is_in_doubt: bool = False

    @property
    def program(self) -> str:
        """Its name; of git with its command."""
        name, *rest = [*dropwhile(BEFORE_A_PROGRAM.fullmatch, self.words), ""]
        return " ".join([name, *rest[:1]]) if name == "git" else basename(name)


def statements_of(command: str, may_change: Callable[[str], object]) -> list[Statement]:
    """The simple commands of a line; none where a part of it cannot be read.

    may_change  whether a text may change a file: such a substitution cannot be read
    """
    bodies: list[str] = []

    def without_body(match: re.Match[str]) -> str:
        bodies.append(match[4])
        return f"<<{len(bodies) - 1}{match[3]}\n"

    def without_inner(match: re.Match[str]) -> str:
        return match[0] if may_change(match[1]) else UNKNOWN

    text = _SUBSTITUTION.sub(without_inner, _HERE_DOCUMENT.sub(without_body, command))
    found, redirection, word_end, end = [Statement("")], "", -1, 0
    while token := _TOKEN.match(text, end):
        statement, end = found[-1], token.end()
        word, operator = token["word"], token["operator"]
        if word is not None:
            word_end = end
            if redirection in (*WRITES, *ADDS):
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
        elif operator == "\n" and statement.before in _JOINING and not (statement.words or statement.outputs):
            continue  # a line may end behind what joins: the command is on the next one
        elif operator:
            statement.is_piped = operator in ("|", "|&")
            found.append(Statement(operator))
    if end < len(text):
        return []
    _mark_doubts(found)
    return found


def _mark_doubts(statements: Sequence[Statement]) -> None:
    """Take the words of conditions and loops away, and mark what may not run, or may fail unseen, because of others."""
    depth, joined = 0, list[Statement]()
    begins = (place for place, one in enumerate(statements) if one.before not in _JOINING and one.words)
    last = max(begins, default=0)
    for place, statement in enumerate(statements):
        if statement.before not in _JOINING:
            joined = []
        # Of a pipeline the end decides whether what is joined to it runs.
        deciding = [one for one in joined if not one.is_piped]
        words, is_led_in = statement.words, False
        while words and words[0] in _LED_IN:
            depth += words[0] in _OPENING
            is_led_in = words.pop(0) == "!" or is_led_in
        depth += words[:1] == ["for"]
        statement.is_in_doubt = (
            depth > 0
            or is_led_in
            or any(one.is_in_doubt or _CONDITION.fullmatch(one.program) for one in deciding)
            or (place < last and any(not _TELLS.fullmatch(one.program) for one in deciding))
        )
        joined.append(statement)
        if statement.before == "||":
            for one in joined:
                one.is_in_doubt = True
        depth -= words[:1] in (["done"], ["fi"])
