"""Which files a shell command changes, told from its text, against what a shell does with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nca.context.record.command_changes import changes_by_command
from nca.context.record.ledger import FILES, extract, parted
from nca.messages import Entry, Message, ToolCall


def files(command: str, result: str = "", *, is_error: bool = False) -> list[tuple[str, str]]:
    """The changed files after a command that gave this result, each with what was done to it."""
    call = ToolCall("c1", "shell", json.dumps({"command": command}))
    asked = Message("assistant", None, tool_calls=(call,))
    answered = Message("tool", result, tool_call_id="c1", is_error=is_error)
    lines = extract([Entry(1, asked), Entry(2, answered)]).get(FILES, ())
    parts = [parted(line)[1].split("\t") for line in lines]
    return [(path, f"{verb}, {hint}" if hint else verb) for path, _, verb, hint in parts]


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("git mv src/a.py src/b.py && git mv x lib/", [("src/a.py", "moved to src/b.py"), ("x", "moved to lib/x")]),
        ("mv a b c", [("a", "moved to c/a"), ("b", "moved to c/b")]),
        ("cd web && rm -f old.css 'my notes.md'", [("web/old.css", "deleted"), ("web/my notes.md", "deleted")]),
        ("cp .env.example .env", [(".env", "written, copied from .env.example")]),
        (
            "sed -i '' -e 's|a|b|g' README.md docs/x.md",
            [("README.md", "edited, s|a|b|g"), ("docs/x.md", "edited, s|a|b|g")],
        ),
        ("sed -i.bak -n 's/a/b/p' a.py", [("a.py", "edited, s/a/b/p")]),
        ("perl -pi -e 's/a/b/' a.py", [("a.py", "edited, s/a/b/")]),
        ("cat > a.py <<'END'\ndef f():\n    return \"it's >\"\nEND\npython a.py", [("a.py", "written, f")]),
        ("echo 'x = 1' >> a.py 2>&1", [("a.py", "edited, x = 1")]),
        ("make 2>&1 | tee -a build.log | tail", [("build.log", "edited")]),
        ("git rm old.py; touch new.py", [("old.py", "deleted"), ("new.py", "written")]),
        ("git checkout -- a.py && git restore b.py", [("a.py", "restored"), ("b.py", "restored")]),
        ("git reset --hard HEAD~1", [("git reset", "uncommitted changes undone back to HEAD~1")]),
        (
            "git add -A && git commit -qm 'web: two  words\n\nmore' && git log -1",
            [("git commit `web: two words`", "done")],
        ),
        ("git commit --quiet --message=one", [("git commit `one`", "done")]),
        ("git stash", [("git stash", "uncommitted changes put away")]),
        ("jq . a.json > a.tmp && mv a.tmp a.json", [("a.json", "written")]),
        ("grep -rl old . | xargs sed -i 's/old/new/'", [("files found by `grep -rl old .`", "edited, s/old/new/")]),
        (
            "git mv a.csv b.csv && rm c.csv; grep -rl a.csv . | xargs sed -i 's/a.csv/b.csv/'",
            [
                ("a.csv", "moved to b.csv"),
                ("c.csv", "deleted"),
                ("files found by `grep -rl a.csv .`", "edited, s/a.csv/b.csv/"),
            ],
        ),
        (
            "find . -name '*.py' -exec sed -i -e 's/a/b/' {} +",
            [("files found by `find . -name '*.py'`", "edited, s/a/b/")],
        ),
        (
            "apply_patch <<'END'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+def g():\n"
            "*** Add File: b.py\n+hello\n*** Delete File: c.py\n*** End Patch\nEND",
            [("a.py", "edited, g"), ("b.py", "written, hello"), ("c.py", "deleted")],
        ),
        (
            "f=src/a.py; sed -i 's/a b/c/' $f && touch \"${f}.new\"",
            [("src/a.py", "edited, s/a b/c/"), ("src/a.py.new", "written")],
        ),
        ("for n in 1 2; do echo $n; done; diff <(ls a) <(ls b); touch c", [("c", "written")]),
        ("if grep -q x a; then rm a; fi; touch b || true; touch c; echo $(date)", [("c", "written")]),
        ("touch a && python3 - <<'END'\nopen('b', 'w')\nEND", [("a", "written")]),
        ("git apply <<'END'\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+new line\nEND", [("x.py", "edited, new line")]),
    ],
)
def test_plain_commands_say_which_files_they_change(command: str, changed: list[tuple[str, str]]) -> None:
    assert files(command) == changed


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q 2>&1 | tail -5",
        "ls > /dev/null 2> /tmp/errors.txt",
        "grep '>' a.py; grep \"rm x\" a.py",
        "for f in *.py; do rm $f; done",
        'rm "$target" `ls` $(cat list)',
        "test -f a && rm a",
        "rm a || true",
        "(cd web; rm a)",
        "cd $HOME && rm a",
        "git checkout main",
        "git commit -m 'made quickly'",
        "git commit -q --dry-run -m one",
        "git commit -qm one || true",
        'git commit -qam "$(date)"',
        "git restore --staged a.py",
        "git rm --cached a.py",
        "sed -n 1,20p a.py",
        "cat a.py # > b.py",
        "sed s/a/b/ x > x.new; diff x x.new; rm x.new",
        "git -C ../other mv a b",
        "rm 'a",
        "for f in a b; do touch $f; done; rm $f",
        "grep -q x a && touch b; ls",
        "make && touch b; ls",
        "touch a; if [ -f b ]; then mv c a; fi",
        "f=a; f=$(ls); rm $f; echo '$f' > /dev/null",
        "python3 - <<'END'\nopen('a', 'w').write('x')\nEND",
        "cat > /tmp/make.py <<'END'\nopen('a', 'w')\nEND\npython3 /tmp/make.py",
        "python3 -c \"import os; os.remove('a')\"",
        "echo $(rm a)",
        "touch 'a\nb'",
        "cat <<'END'\nrm a > b\nEND",
    ],
)
def test_nothing_is_said_where_it_is_not_certain(command: str) -> None:
    assert files(command) == []


@pytest.mark.parametrize(
    ("command", "result", "is_error", "changed"),
    [
        ("mv a b", "mv: cannot stat 'a': No such file or directory", False, []),
        ("git mv a b", "fatal: bad source, source=a, destination=b", True, []),
        ("echo x > no/where", "(eval):1: no such file or directory: no/where", True, []),
        ("echo x > no/where", "bash: line 1: no/where: No such file or directory", False, []),
        ("rm a", "The user doesn't want to proceed with this tool use.", True, []),
        ("rm a", "[not run: the user refused]", True, []),
        ("rm a", "Exit code 1", True, []),
        ("git commit -qm one", "nothing to commit, working tree clean\n[exit code 1]", True, []),
        (
            "s='a b'; git commit -qm \"$s\" && git log --oneline",
            "3f2a9bc (HEAD) a b\n2e a b",
            False,
            [("git commit 3f2a9bc", "a b")],
        ),
        ("git commit -m two; ls", "[main 3f2a9bc] two\n 1 file changed", False, [("git commit 3f2a9bc", "two")]),
        ("echo x = 1 > a.py && python a.py", "ValueError: bad\n[exit code 1]", True, [("a.py", "written, x = 1")]),
        ("python make.py && rm a", "ValueError: bad\n[exit code 1]", True, []),
    ],
)
def test_what_failed_changed_only_what_stands_before_the_failure(
    command: str, result: str, is_error: bool, changed: list[tuple[str, str]]
) -> None:
    assert files(command, result, is_error=is_error) == changed


_NAMES = st.sampled_from(
    ["a.txt", "b.txt", "sub/c.txt", "'sub/d e.txt'", "new.txt", "sub/new.txt", "missing/x.txt", "sub"]
)
_STATEMENTS = st.one_of(
    st.builds("mv {} {}".format, _NAMES, _NAMES),
    st.builds("cp {} {}".format, _NAMES, _NAMES),
    st.builds("rm {}".format, _NAMES),
    st.builds("rm -f {} {}".format, _NAMES, _NAMES),
    st.builds("touch {}".format, _NAMES),
    st.builds("sed -i.old 's/a/b/' {}".format, _NAMES),
    st.builds("echo 'it is > {}' > {}".format, st.just("x"), _NAMES),
    st.builds("cat >> {} <<END\nrm a.txt\nEND".format, _NAMES),
    st.builds("grep '>' {} | tee {}".format, _NAMES, _NAMES),
    st.builds("f={}; touch $f".format, _NAMES),
    st.builds("if test -f {}; then rm -f {}; fi".format, _NAMES, _NAMES),
    st.builds("for f in {} {}; do rm -f $f; done".format, _NAMES, _NAMES),
    st.builds("grep -q b {}".format, _NAMES),
    st.sampled_from(["cd sub", "cd missing", "true", "false", "ls nothing", "# rm a.txt", "test -f b.txt"]),
)
_COMMANDS = st.lists(st.tuples(_STATEMENTS, st.sampled_from([" && ", "\n", "; ", " || "])), min_size=1, max_size=4)


@settings(max_examples=80)
@given(_COMMANDS)
@example([("rm a.txt", " || "), ("# rm a.txt", " && "), ("rm b.txt", " && ")])
def test_what_is_said_of_a_command_is_what_a_shell_does(parts: list[tuple[str, str]]) -> None:
    command = ""
    for statement, end in parts:
        command += statement + ("\n" if "<<" in statement or statement.startswith("#") else end)
    command += "true" if command.rstrip(" ").endswith(("&&", "||")) else ""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "sub").mkdir()
        for name in ("a.txt", "b.txt", "sub/c.txt", "sub/d e.txt"):
            (folder / name).write_text("a\n")
            os.utime(folder / name, (0, 0))
        ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        changed = dict(files(command, ran.stdout + ran.stderr, is_error=ran.returncode != 0))
        for path, verb in changed.items():
            is_gone = verb == "deleted" or verb.startswith("moved to ")
            assert (folder / path).exists() is not is_gone, command
            assert is_gone or (folder / path).stat().st_mtime, command
            target = verb.removeprefix("moved to ")
            assert target == verb or target in changed or (folder / target).exists(), command
    finally:
        shutil.rmtree(folder)


@given(
    st.text("ab $`'\"\\<>|&;()#\n-./", max_size=60), st.sampled_from(["rm ", "mv a ", "cat > f <<E\n", "git commit "])
)
def test_any_text_can_be_read(text: str, program: str) -> None:
    assert all(change.path for change in changes_by_command(program + text))
