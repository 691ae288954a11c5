"""What a shell computes: nca finds the names that bash finds for a pattern, and knows where a program may hide."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_words import plain_words
from nca.tools.shell.computed import computed_in, without_patterns
from nca.tools.shell.known_commands import read_only_argv
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell

NAMES = (
    "a",
    "ab",
    "a b",
    "aab",
    "b.a",
    "-b",
    "--a=b",
    "-",
    ".a",
    "a'b",
    "*",
    "a*",
    "[a]",
    "a\\b",
    '"',
    "~",
    "=a",
    "Ab",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose folder `a` has such names, and `b` a folder and a link out of the project."""
    folder = tmp_path_factory.mktemp("patterns").resolve() / "project"
    (folder / "a").mkdir(parents=True)
    (folder / "b" / "a").mkdir(parents=True)
    for name in NAMES:
        (folder / "a" / name).write_text("inside\n")
    (folder.parent / "secret").write_text("secret\n")
    (folder / "b" / "link").symlink_to("../../secret")
    return folder


def in_bash(line: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "--norc", "-c", line],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    return done.stdout.decode()


def named(command: str, root: Path, folder: str = "") -> str:
    return without_patterns(command, workspace=Workspace(root), directory=root / folder)


def argv(command: str, root: Path) -> tuple[str, ...] | None:
    return read_only_argv(command, workspace=Workspace(root), directory=root, environment={"PATH": os.environ["PATH"]})


@given(
    st.lists(st.text(st.sampled_from("aabb*** -./='\"[]?~!\\"), max_size=7), max_size=3),
    st.sampled_from([("", "a/"), ("a", ""), ("a", "./"), ("b", "../a/")]),
)
@example(["*"], ("", "a/"))
@example(["*a", "a*", "a*b", "*a*b*", "'*'", "'a*'*", "../b/*", "../b/../a/*b"], ("", "a/"))
@example(["*a", "a*", "a*b", "a*b*", "'*'", "'a*'*", "../b/*", "../b/../a/*b"], ("a", ""))
@hypothesis_settings(max_examples=200, deadline=None)
def test_the_names_are_those_that_bash_finds(folder: Path, words: list[str], where: tuple[str, str]) -> None:
    directory, prefix = where
    command = " ".join(("printf %s,", *(f"{prefix}{word}" for word in words)))
    found = plain_words(named(command, folder, directory))
    if found is not None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        bash = ["bash", "--norc", "-c", command]
        said = subprocess.run(bash, cwd=folder / directory, env=environment, capture_output=True, text=True).stdout
        assert said == ("".join(f"{word}," for word in found[2:]) or ",")


def test_a_name_that_could_be_taken_for_an_option_is_not_understood(folder: Path) -> None:
    names = ("a", "a b", "a'b", "a*", "a\\b", "aab", "ab")
    assert plain_words(named("cat a*", folder, "a")) == ("cat", *names)
    assert argv("cat a*", folder / "a") is not None
    for command in ("cat *", "cat *b", "cat -- *", "cat x *=b"):
        assert named(command, folder, "a") == command, command
        assert argv(command, folder / "a") is None, command


def test_every_name_is_a_word_of_its_own_whatever_it_is(folder: Path) -> None:
    visible = sorted(name for name in NAMES if name[0] != ".")
    assert plain_words(named("cat a/* x", folder)) == ("cat", *(f"a/{name}" for name in visible), "x")
    words = argv("cat a/*", folder)
    assert words is not None
    assert subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout == "inside\n" * len(visible)
    assert argv("cat a/* | wc -l; ls a/*b 2>/dev/null && grep -c side a/a*", folder) is not None
    assert argv(f"cd {folder} && cat {folder}/a/*", folder) is not None


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat c*",
            "cat -- c*",
            "cat -a*",
            "cat -*/x",
            "cat --x=a/*",
            "grep -ea/* x",
            "cat */a",
            "cat a/**",
            "cat **/a",
        ),
        *(
            "cat a/.*",
            "cat a/nothing*",
            "cat nowhere/*",
            "cat a/*/",
            "cat /*",
            "cat /etc/*",
            "cat ../*",
            "cat a/../../*",
        ),
        *(
            "cat a/{a,b}*",
            "cat a/[!-]*",
            "cat a/[a]*",
            "cat a/?*",
            "cat a/!(b)*",
            "cat a/*(a)",
            "cat a/\\**",
            "cat ~/*",
        ),
        *(
            'cat "$PWD"/a/*',
            "cat $PWD/a/*",
            "cat a/* > x",
            "cat a/* & rm x",
            "a/*",
            "a/* x",
            "cat a/*$(rm x)",
            "cat 'a/*",
        ),
    ],
)
def test_what_is_not_understood_stays_as_it_is(command: str, folder: Path) -> None:
    assert named(command, folder) == command
    assert argv(command, folder) is None


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat b/*",
            "cat b/l*",
            "ls b/*",
            "grep -r x b/*",
            "cat a/a; cat b/*",
            "diff a/a b/l*",
            "head -3 ./b/*k",
        ),
        *("rm a/*", "sort a/*", "sed -i s/a/b/ a/*", "sed -n 1e a/*", "tee a/*", "cat a/* | tee x", "cd b && cat a/*"),
        *("cat a/* && touch x", "python a/*", "find a/* -delete", "git log --output=a/*", "X=a/* ls", "cat a/*\nrm x"),
    ],
)
def test_the_names_are_judged_as_if_they_had_been_typed(command: str, folder: Path) -> None:
    assert argv(command, folder) is None


def test_names_that_could_not_be_typed_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("é", "a\nb", "a\x1bb", "a\tb", os.fsdecode(b"a\xff")):
        (tmp_path / "a" / name).write_text("")
        assert argv("ls a/*", tmp_path) is None, ascii(name)
        assert argv("echo a/*", tmp_path) is None, ascii(name)
        (tmp_path / "a" / name).unlink()
    (tmp_path / "a" / "a").write_text("")
    assert argv("ls a/*", tmp_path) is not None
    for number in range(1_000):
        (tmp_path / "a" / str(number)).write_text("")
    assert argv("ls a/*", tmp_path) is None
    assert argv("ls a/a*", tmp_path) is not None
    for number in range(1_000, 5_000):
        (tmp_path / "a" / str(number)).write_text("")
    assert argv("ls a/a*", tmp_path) is None


def test_what_comes_after_the_judgement_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "a").write_text("inside\n")
    (tmp_path / "secret").write_text("secret\n")
    commands = [argv(command, root) for command in ("cat a/*", "cat a/*; true")]
    (root / "a" / "b").symlink_to(tmp_path / "secret")
    assert argv("cat a/*", root) is None
    for words in commands:
        assert words is not None
        assert subprocess.run(words, cwd=root, capture_output=True, text=True).stdout == "inside\n"


async def test_a_file_that_a_pattern_names_was_read_and_can_be_denied(tmp_path: Path) -> None:
    files_read = FilesRead()
    shell = Shell(CommandRunner(tmp_path, settings=ToolSettings, limits=Limits), files_read=files_read)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "x.py").write_text("x\n")
    approval = shell.approval({"command": "grep -r x a/*"})
    assert {f"{tmp_path}/a/x.py", f"{tmp_path}/a/b"} <= set(approval.parts)
    assert approval.searched == (f"{tmp_path}/a/b",)
    assert "cat a/x.py" in shell.approval({"command": "cat a/*.py"}).commands
    assert (await shell.run({"command": "cat a/*.py"})).text == "x"
    assert files_read.is_current(tmp_path / "a" / "x.py", b"x\n")


NOTHING = frozenset[str]()


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("echo hi > out.txt 2>&1", NOTHING),
        ("grep -n foo < a.txt && FOO=1 make test", NOTHING),
        ("for i in 1 2; do make all; done", NOTHING),
        ("awk '{print $1}' a.txt | sed 's/a\\.b*/c/'", NOTHING),
        ('git commit -m "Größe: 5 — it\'s done?"', NOTHING),
        ("cat <<EOF\nit's here\nEOF", NOTHING),
        ("[ -f a ] && [[ -d b ]] && ls ~/x; xargs -I{} touch {}", NOTHING),
        ("git show HEAD~1:a.py", NOTHING),
        ("echo 'open", NOTHING),
        ('echo "$HOME" ${A} $1 | grep -c x', NOTHING),
        ('if [ "$a" = "b" ]; then echo $?; else exit $#; fi', NOTHING),
        ('printf "%s\\n" "$(git rev-parse "x y")"', NOTHING),
        ("A=$B C=$(date) make all", NOTHING),
        ("FOO=$(basename $x) git status", NOTHING),
        ('for f in *.py src/{a,b}; do wc -l "$f" > "$f.txt"; done', frozenset({"wc", ">"})),
        ("cat ~+/secret.txt", frozenset({"cat"})),
        ("ls sec?et [a-z]x", frozenset({"ls"})),
        ("while read -r line; do echo $line; done < $f", frozenset({">"})),
        ("make -j$(nproc)", None),
        ("git pu$(echo sh)", None),
        ("sudo $X", None),
        ("A=b $X", None),
        ("if $X; then ls; fi", None),
        ("(cd a; $X)", None),
        ("echo $(X=y $X)", None),
        ("diff <($X) a", None),
        ('[ "$a" "$b" ]', None),
        ("[ $a = b ]", None),
        ('printf -v "$a" b', None),
        ("echo $((a))", None),
        ("echo ${a[i]}", None),
        ("echo $'a'", None),
        ("echo '$(' ; git $X ; echo ')'", None),
        ("r\\m x", None),
        ("$(echo rm) x", None),
        ("`echo rm` x", None),
        ("{r,q}m x", None),
        ("=rm x", None),
        ("cat <<EOF\nit's\nEOF\n$X 'a'", None),
        ("make # don't\n$X 'a'", None),
        ("echo 'a' \"it's $X\" 'b", None),
        ('echo "$X', None),
        ("echo $(date", None),
        ("a) $X", None),
        ("echo a\u00a0b", None),
        ("echo \x1b", None),
    ],
)
def test_the_programs_whose_arguments_a_shell_computes(command: str, programs: frozenset[str] | None) -> None:
    assert computed_in(command) == programs


_PIECES = (
    *("a", "b", "rm", " ", " ", "'", '"', "$", "A", "${A}", "$(b)", "`b`", "\\", "*", "?", "[a]", "{a,b}", "{1..3}"),
    *("~+", "#", "<<E\n", "\nE\n", "=", "!", "^", "@(", ")", "(", ";", "|", "&&", "\n", "$'", "<<<", "+"),
)


@hypothesis_settings(max_examples=150, deadline=None)
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=8))
def test_each_word_that_a_real_shell_comes_to_stands_in_a_command_in_which_it_computes_none(
    pieces: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    line = "".join(pieces)
    if computed_in(f"args {line}") != frozenset():
        return
    folder = tmp_path_factory.mktemp("files")
    for name in ("ab", "rma", "a"):
        (folder / name).touch()
    begin = 'args() { printf \'<%s>\' "$@"; }; a() { args "$@"; }; b() { args "$@"; }; A=zz\n'
    said = in_bash(f"{begin}args {line}", folder)
    text, words = (one.replace("'", "").replace('"', "") for one in (line, said.removeprefix("<").removesuffix(">")))
    assert all(word in text for word in words.split("><")), (line, said)


_WORDS = st.sampled_from(
    [
        "$A",
        '"$A"',
        "${B}",
        "$@",
        '"$(w x)"',
        "$(x)",
        "*",
        "?c",
        "{w,b}",
        "x",
        "'$('",
        "')'",
        '"a b"',
        "A=b",
        "> x",
        "\\w",
    ]
)
_PROGRAMS = st.sampled_from(
    [
        *(["echo", "wc"] * 4),
        "b",
        "$A",
        "if",
        "then",
        "fi",
        "for",
        "do",
        "(",
        "x)",
        "{",
        "!",
        "[",
        "A=b",
        "A=x B=$A",
        "=b",
    ]
)
_JOINTS = st.sampled_from(
    [*(["; ", " | ", "\n"] * 3), " && ", " & ", ") ", " $(", ")", " <(", " #", "'", '"', " {\n", "; }; ", " "]
)


@hypothesis_settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.tuples(_PROGRAMS, st.lists(_WORDS, max_size=3), _JOINTS), min_size=1, max_size=4))
def test_a_shell_computes_no_program_where_it_computes_arguments_alone(
    parts: list[tuple[str, list[str], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The programs are functions that note their names: each that starts stands as a word in the line."""
    line = "".join(f"{' '.join([program, *words])}{joint}" for program, words, joint in parts)
    if computed_in(line) is None:
        return
    folder = tmp_path_factory.mktemp("files")
    (folder / "wc").touch()
    note = folder.with_name(f"{folder.name}-started")
    begin = "".join(f"{one}() {{ builtin echo {one} >> {note}; }}\n" for one in ("w", "b", "wc", "echo", "x"))
    in_bash(f"A=b; B=x; set -- x b\n{begin}\n{line}", folder)
    started = note.read_text().split() if note.exists() else []
    plain = re.sub(r"\$\{?[AB]", " ", line)
    assert all(re.search(rf"\b{one}\b", plain) for one in started), (line, started)
