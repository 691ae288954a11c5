"""Command words: accepted lines mean the same to a real shell."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.tools.shell.command_words import plain_words, rule_words


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
@hypothesis_settings(max_examples=3_000, deadline=None)
def test_what_is_taken_is_what_posix_splits(command: str) -> None:
    words = plain_words(command)
    if words is not None:
        assert list(words) == shlex.split(command)
        assert not set("$`\\\n\t") & set(command.replace("'", "")) or "'" in command


@given(st.lists(st.text(st.sampled_from("ab '$`~=:{}*?#!;&|<>()-_./@%+,^"), max_size=8), max_size=5))
@hypothesis_settings(max_examples=60, deadline=None)
def test_a_real_shell_sees_the_same_words(arguments: list[str]) -> None:
    """As they come, unquoted, so that whatever a shell would make of them counts."""
    command = "printf %s, " + " ".join(arguments)
    words = plain_words(command)
    if words is not None:
        seen = subprocess.run(["bash", "-c", command], capture_output=True, check=True, cwd="/")
        assert seen.stdout.decode() == "".join(f"{word}," for word in words[2:]) or len(words) == 2


def test_a_rule_for_a_program_holds_no_other_and_no_chain() -> None:
    assert rule_words("pytest -q tests") == rule_words("pytest '-q'") == ("pytest",)
    assert rule_words("pytest-evil") == ("pytest-evil",)
    for command in (
        "pytest; rm x",
        "pytest && rm x",
        "pytest $(rm x)",
        "pytest > x",
        "X=1 pytest",
        "pytest" + " && pytest" * 10_000,
    ):
        assert plain_words(command) is None
        assert rule_words(command) == ()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pytest -q", ("pytest",)),
        ("./run.sh x", ("./run.sh",)),
        ("git commit -m x", ("git", "commit")),
        ("npm run build", ("npm", "run", "build")),
        ("npm exec eslint x", ("npm", "exec", "eslint")),
        ("python -m pytest -q", ("python", "-m", "pytest")),
        ("make", ("make",)),
    ],
)
def test_what_a_rule_may_name(command: str, words: tuple[str, ...]) -> None:
    assert rule_words(command) == words


@pytest.mark.parametrize(
    "command",
    [
        *("sudo ls", "env ls", "bash x.sh", "xargs rm", "timeout 5 pytest", "python x.py", "python -c 1", "node x.js"),
        *(
            "npx x",
            "uv run python",
            "git -c a=b status",
            "ls | cat",
            "ls; ls",
            "",
            "docker run x",
            "/bin/rm x",
        ),
        *("rm x", "rm -rf .", "chmod +x y", "git reset --hard", "git clean -fd", "kill 1"),
        *("npm run -- x", "python -m -x", "uv run sh x", "ssh host ls", "find . | xargs rm"),
    ],
)
def test_no_rule_for_what_runs_or_destroys_anything(command: str) -> None:
    assert rule_words(command) == ()
