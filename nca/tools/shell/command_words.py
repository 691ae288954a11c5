"""Parse simple command lines into words, and refuse everything else.

What this parser accepts means the same to every shell, and without a shell. Python's bash parsers do not fit: they
accept what must be refused here, and bashlex is GPL.
"""

from __future__ import annotations

from string import ascii_letters, digits

MOST_CHARS = 4_000


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one string."""
    return frozenset(text.split())


_BARE = frozenset(ascii_letters + digits + "-_./:=@%+,^~")
_IN_SINGLE = frozenset(chr(code) for code in range(0x20, 0x7F)) - {"'"}
_IN_DOUBLE = _IN_SINGLE - frozenset('"$`\\!') | {"'"}
"""In double quotes a shell expands after these characters."""

_WRAPPERS = word_set(
    # They run their arguments, so a rule for one would allow everything.
    "bash busybox builtin chroot command coproc csh dash docker doas env eval exec fish flock ionice kubectl ksh nice"
    " nohup npx nsenter parallel pipx pkexec podman rlwrap script setarch setsid sh source ssh stdbuf strace su sudo"
    " taskset tclsh time timeout unshare uvx watch xargs zsh . [ [[ ! if for while until case select function"
)
_DESTROYERS = word_set(
    # They destroy what they are given, so no rule allows them for any argument.
    "chmod chown dd kill killall mkfs pkill poweroff reboot rm rmdir shred shutdown truncate unlink wipefs"
)
_LOSING = frozenset({("git", "clean"), ("git", "reset"), ("git", "restore"), ("git", "checkout")})
"""Subcommands that discard uncommitted work."""
_INTERPRETERS = word_set("awk deno gawk gdb lua node nodejs perl php pypy python python2 python3 ruby")
_WITH_SUBCOMMANDS = word_set(
    "apt apt-get brew bun bundle cargo conda composer dotnet gh git go gradle helm just make mvn npm nox pip pip3 pnpm"
    " poetry rake swift systemctl terraform tox uv yarn"
)
_RUNNERS = frozenset({"run", "exec", "x", "dlx", "tool", "script"})
"""Subcommands that run their argument."""


def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of one simple command; None for anything else, or if in doubt.

    Accepted: bare words and quoted printable ASCII without expansion, separated by blanks. Refused: operators,
    redirections, expansions (variables, substitutions, tilde, braces, patterns), escapes, comments, assignments before
    the program, newlines, tabs, other control characters, non-ASCII characters, empty words, and a program that is
    quoted in whole or in part.
    """
    if len(command) > MOST_CHARS:
        return None
    words: list[str] = []
    position, line = 0, command.strip(" ")
    while position < len(line):
        word, position, is_bare = _word(line, position)
        if not word or (not words and (not is_bare or "=" in word)):
            return None
        words.append(word)
        while position < len(line) and line[position] == " ":
            position += 1
    return tuple(words) or None


def rule_words(command: str) -> tuple[str, ...]:
    """The first words for a rule "always allow …"; empty if no rule should be offered.

    The program, with its subcommand if it has one (`git commit`, `npm run build`), or `python -m MODULE`. Empty for
    anything but a simple command, and for programs that run or destroy what they are given.
    """
    words = plain_words(command) or ("",)
    program = words[0].rpartition("/")[2]
    if not program or program in _WRAPPERS | _DESTROYERS or words[0].startswith("/") or words[:2] in _LOSING:
        return ()
    if program in _INTERPRETERS:
        named = words[2] if len(words) > 2 and words[1] == "-m" else ""
        return words[:3] if named and not named.startswith("-") else ()
    if program not in _WITH_SUBCOMMANDS or len(words) == 1:
        return words[:1]
    if words[1] in _RUNNERS:
        named = words[2] if len(words) > 2 else "-"
        return words[:3] if not named.startswith("-") and named not in _WRAPPERS | _INTERPRETERS else ()
    return () if words[1].startswith("-") else words[:2]


def _word(line: str, start: int) -> tuple[str, int, bool]:
    """The word at `start`, where it ends, and whether no part of it is quoted; "" if it must be refused."""
    word, position, is_bare = "", start, True
    while position < len(line) and line[position] != " ":
        char = line[position]
        if char in ("'", '"'):
            end = line.find(char, position + 1)
            quoted = line[position + 1 : end] if end > 0 else "\0"
            if not set(quoted) <= (_IN_SINGLE if char == "'" else _IN_DOUBLE):
                return "", len(line), False
            word, position, is_bare = word + quoted, end + 1, False
        elif char in _BARE and not (char == "~" and word[-1:] in ("", "=", ":")):
            word, position = word + char, position + 1
        else:
            return "", len(line), False
    # zsh replaces =program with its path.
    return ("" if line[start] == "=" else word), position, is_bare
