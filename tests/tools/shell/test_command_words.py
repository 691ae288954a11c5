"""Command words: accepted lines mean the same to a real shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.tools.shell.command_words import (
    MOST_COMMANDS,
    command_list,
    commands_here,
    mentioned_commands,
    mentioned_names,
    plain_words,
    versionless,
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


def in_bash(line: str, folder: Path) -> tuple[str, int]:
    """What a real shell prints, and its exit code, by nothing but the line.

    No file that somebody may put into the folder, no BASH_ENV or SHELLOPTS (with pipefail, a code depends on which
    end of a pipe is faster), no language, no input.
    """
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(
        ["bash", "--norc", "-c", line], capture_output=True, stdin=subprocess.DEVNULL, cwd=folder, env=environment
    )
    return done.stdout.decode(), done.returncode


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ("ls",)),
        ("  ls   -la  ", ("ls", "-la")),
        ("grep -n 'a b' x", ("grep", "-n", "a b", "x")),
        ('grep "it\'s" x', ("grep", "it's", "x")),
        ("rg --glob='*.py' a", ("rg", "--glob=*.py", "a")),
        ("git show HEAD~1^:a/b.py", ("git", "show", "HEAD~1^:a/b.py")),
        ("echo '$HOME `x` \\ # ~'", ("echo", "$HOME `x` \\ # ~")),
    ],
)
def test_words_and_quotes(command: str, words: tuple[str, ...]) -> None:
    assert plain_words(command) == words


@given(st.text(st.sampled_from("ab '\"\\$`~=:{}*?#!;&|<>()\n\t-_./@%+,^é"), max_size=24))
@hypothesis_settings(max_examples=1_500, deadline=None)
def test_what_is_taken_is_what_posix_splits(command: str) -> None:
    words = plain_words(command)
    if words is not None:
        assert list(words) == shlex.split(command)
        assert not set("$`\\\n\t") & set(command.replace("'", "")) or "'" in command


@given(st.lists(st.text(st.sampled_from("ab '$`~=:{}*?#!;&|<>()-_./@%+,^"), max_size=8), max_size=5))
@hypothesis_settings(max_examples=60, deadline=None)
def test_a_real_shell_sees_the_same_words(empty: Path, arguments: list[str]) -> None:
    """As they come, unquoted, so that whatever a shell would make of them counts."""
    command = "printf %s, " + " ".join(arguments)
    words = plain_words(command)
    if words is not None:
        # Without a word, printf prints its format once.
        assert in_bash(command, empty) == ("".join(f"{word}," for word in words[2:]) or ",", 0)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", (("ls",),)),
        ("a 'x|y' | b | c -n 3", (("a", "x|y"), ("b",), ("c", "-n", "3"))),
        ("a 2>&1 | b 2>/dev/null", (("a",), ("b",))),
        ("a 2>&1 2>/dev/null ", (("a",),)),
        ("a '2>&1'", (("a", "2>&1"),)),
    ],
)
def test_simple_commands_joined_by_pipes(command: str, words: tuple[tuple[str, ...], ...]) -> None:
    assert tuple(stage.words for stage in command_list(command) or ()) == words


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("a", "a"),
        ("a; b", "a ; b"),
        ("a&&b||c|d;e", "a && b || c | d ; e"),
        ("a 'x;y' && b \"p||q\" ; c", "a 'x;y' && b 'p||q' ; c"),
        ("a 2>&1&&b 2>/dev/null; c 2>&1", "a 2>&1 && b 2>/dev/null ; c 2>&1"),
        ("a '2>&1' ; b", "a '2>&1' ; b"),
    ],
)
def test_lists_of_simple_commands(command: str, read: str) -> None:
    stages = command_list(command) or ()
    assert " ".join(f"{shlex.join(one.words)}{one.errors} {one.operator}" for one in stages).strip() == read


@pytest.mark.parametrize(
    "command",
    [
        *("a;", "a &&", "a ||", "; a", "&& a", "a ;; b", "a & b", "a & && b", "a &&& b", "a ||| b", "a |& b", "a; ; b"),
        *("a\n; b", "a; b\n", "a;\nb", "a &&\nb", "a; (b)", "a; $(b)", "a; b > c", "a; X=1", "a; X=1 b", "a; 'b'", "&"),
        *("a 'b; c", 'a "b; c', "a 'b' ; c'", "a; b &", "a 2>& 1; b", "a &1; b", "a 2>&1& b", "a; 2>&1", "a \\; b"),
        *(
            "| a",
            "a |",
            "a | | b",
            "a | b > c",
            "a | 'b",
            "a 2> b",
            "a 2>&1x",
            "a2>&1",
            "a 2>&1 b",
            "a\n| b",
            "a | $(b)",
        ),
        *("a | b & c", "2>&1", "", "a" + " | b" * 10_000, "a 'b|c", "a" + "; b" * MOST_COMMANDS, "a; " + "b" * 5_000),
    ],
)
def test_other_lines_are_no_list(command: str) -> None:
    assert command_list(command) is None


@pytest.mark.parametrize("name", ["/p", "/p/", "'/p'", ".", "./", '"."', ". && cd /p"])
def test_going_to_the_directory_itself_is_no_command(name: str) -> None:
    assert commands_here(f"cd {name} && a 'x y' | b; c", Path("/p")) == command_list("a 'x y' | b; c")


@pytest.mark.parametrize(
    "command",
    [
        *("cd . | a", "cd . || a", "cd .; a", "cd .", "cd . .. && a", "cd -P . && a", "cd -- . && a", "a && cd . && b"),
        *("cd && a", "cd - && a", "cd .. && a", "cd /p/.. && a", "cd //p && a", "cd /p/. && a", "cd /p/x/.. && a"),
        *("cd ./x && a", "cd x/.. && a", "cd ~ && a", "cd '' && a", "cd /P && a", "cd /pp && a", "pushd . && a"),
    ],
)
def test_any_other_change_of_directory_stays_one(command: str) -> None:
    assert commands_here(command, Path("/p")) == command_list(command)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["printf %s a", "printf '%s;' 'b c'", 'printf "%s" "d|e"', "grep -c x f", "false", "cat"]),
            st.sampled_from(["", " 2>&1", " 2>/dev/null"]),
            st.text(st.sampled_from(" ;&|\n\\'\""), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=4,
    )
)
@hypothesis_settings(max_examples=100, deadline=None)
def test_a_real_shell_joins_the_same_commands(empty: Path, parts: list[tuple[str, str, str]]) -> None:
    """Whatever stands between the commands: where it is taken for operators, the list written anew does the same."""
    command = "".join(f"{one}{errors}{joint}" for one, errors, joint in parts) + "printf end"
    stages = command_list(command)
    if stages is not None:
        anew = " ".join(f"{shlex.join(one.words)}{one.errors} {one.operator}" for one in stages)
        assert in_bash(command, empty) == in_bash(anew, empty)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("python3.11", "python"),
        ("python", "python"),
        ("gcc-12", "gcc"),
        ("pip3", "pip"),
        ("7z", "7z"),
        ("mawk", "mawk"),
    ],
)
def test_a_version_is_no_part_of_a_program_s_name(program: str, name: str) -> None:
    assert versionless(program) == name


@pytest.mark.parametrize(
    "options", ["-C .", "--no-pager", "-c a.b=c", "-C . --no-pager -c x=y", "--git-dir=/x/.git --work-tree /y", "-P"]
)
@pytest.mark.parametrize("before", ["", "sudo ", "cd x && ", "A=b /usr/bin/"])
def test_options_between_a_program_and_its_subcommand_hide_no_subcommand(before: str, options: str) -> None:
    command = f"{before}git {options} push origin main"
    assert any(f" {one}".endswith(" git push origin main") for one in mentioned_commands(command))
    assert {"git push", "git push origin"} <= set(mentioned_names(command, Path("/work")))


@pytest.mark.parametrize("command", ['git -C . commit -m "push it"', "git log --grep push", "git stash push"])
def test_what_is_no_subcommand_is_not_taken_for_one(command: str) -> None:
    assert not any(one.startswith("git push") for one in mentioned_commands(command))
    assert "git push" not in mentioned_names(command, Path("/work"))
