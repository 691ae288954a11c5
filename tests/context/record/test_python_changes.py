"""Which files a Python script changes, told from its text, against what Python does with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nca.context.record.changes import MOVED_TO
from nca.context.record.python_changes import changes_by_python


def said(text: str) -> list[tuple[str, str, str]]:
    return [(change.path, change.verb, change.hint) for change in changes_by_python(textwrap.dedent(text))]


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        (
            """
            from pathlib import Path
            root = Path("src") / "app"
            p = root / "a.py"
            s = p.read_text()
            assert s.count("x = 1") == 1
            s = s.replace("x = 1", "def loaded")
            p.write_text(s)
            (root / f"{'b'}.txt").write_text("a new file")
            """,
            [("src/app/a.py", "edited", "loaded"), ("src/app/b.txt", "written", "a new file")],
        ),
        (
            """
            def edit(path, old, new):
                text = open(path).read()
                if old not in text:
                    raise ValueError(path)
                open(path, "w").write(text.replace(old, new))
                return text
            edit("a.py", "1", "class Two")
            edit(new="class Four", old="3", path="b.py")
            """,
            [("a.py", "edited", "Two"), ("b.py", "edited", "Four")],
        ),
        (
            """
            for name, old in [("a.py", "x"), ("b.py", "y")]:
                with open(name, encoding="utf-8") as file:
                    text = file.read()
                with open(name, mode="w") as file:
                    file.write(text.replace(old, "# nothing here"))
            """,
            [("a.py", "edited", "# nothing here"), ("b.py", "edited", "# nothing here")],
        ),
        (
            """
            import json, os, shutil
            if __name__ == "__main__":
                json.dump({}, open("new.json", "w"))
                os.rename("a", "b")
                shutil.copy("c", "d")
                os.unlink("e")
            """,
            [
                ("new.json", "written", ""),
                ("a", "moved to b", ""),
                ("d", "written", "copied from c"),
                ("e", "deleted", ""),
            ],
        ),
    ],
)
def test_it_reads_what_models_write(script: str, changed: list[tuple[str, str, str]]) -> None:
    assert said(script) == changed


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nopen(sys.argv[1], 'w')",
        "if x:\n    open('a', 'w')",
        "try:\n    open('a', 'w')\nexcept OSError:\n    pass",
        "import sys\nif x:\n    sys.exit('no')\nopen('a', 'w')",
        "if x:\n    raise SystemExit\nopen('a', 'w')",
        "x in y or exit(1)\nopen('a', 'w')",
        "for name in names:\n    open('a', 'w')",
        "[open(name, 'w') for name in ('a', 'b')]",
        "def f(path):\n    if not path:\n        return\n    open(path, 'w')\nf('a')",
        "def f():\n    yield open('a', 'w')\nf()",
        "import os\nos.chdir('sub')\nopen('a', 'w')",
        "path = 'a'\nfor path in names:\n    pass\nopen(path, 'w')",
        "open('a')\n'a b'.replace('a', 'b')",
        "import contextlib\nwith contextlib.suppress(OSError):\n    open('a', 'w')",
        "open('a', 'w'",
        "open('a', 'w')\nif x:\n    import os\n    os.remove('a')",
        "def f(path):\n    import os\n    os.remove(path)\nopen('a', 'w')\nif x:\n    f('a')",
        "open('a', 'w')\ndef f():\n    f()\nf()",
        f"open('a', 'w')\nfor n in {list(range(300))}:\n    print({list(range(300))})",
        f"open('a', 'w')\nif x:\n    {'(' * 300}y{')' * 300}",
    ],
)
def test_nothing_is_said_where_it_is_not_certain(script: str) -> None:
    assert said(script) == []


_NAMES = st.sampled_from(["'a'", "'b'", "'new'", "name", "path", "path / 'c'", "str(path)"])
_SIMPLE = st.one_of(
    st.builds("open({}, {!r}).write('x')".format, _NAMES, st.sampled_from(["w", "a", "r+", "x"])),
    st.builds("Path({}).write_text(Path('a').read_text())".format, _NAMES),
    st.builds("{}({})".format, st.sampled_from(["os.remove", "Path", "edit", "maybe"]), _NAMES),
    st.builds("{}({}, {})".format, st.sampled_from(["os.rename", "shutil.copy", "shutil.move"]), _NAMES, _NAMES),
    st.builds(
        "{} = {}".format, st.sampled_from(["name", "path"]), st.sampled_from(["Path('sub')", "Path('a')", "'b'"])
    ),
    st.sampled_from(["sys.exit()", "assert os.path.exists('b')", "os.chdir('sub')", "name = str(len('abc'))"]),
)
_BLOCKS = st.builds(
    lambda head, body: f"{head}\n    " + "\n    ".join(body),
    st.sampled_from(
        [
            "if os.path.exists('new'):",
            "for name in ('a', 'b'):",
            "for name in sorted(os.listdir()):",
            "with open('a'):",
            "while os.path.exists('new'):\n    os.rename('new', 'old')\n    if path: break",
            "try:\n    pass\nfinally:",
            "with contextlib.suppress(OSError):",
            "def maybe(path):\n    if path == 'b': return",
            "def edit(name):",
        ]
    ),
    st.lists(_SIMPLE, min_size=1, max_size=3),
)
_BEGINNING = """\
import contextlib, os, shutil, sys
from pathlib import Path
name, path = 'a', Path('sub')
def edit(path):
    open(path, 'a').write('y')
def maybe(path):
    if len(str(path)) > 3: return 0
    Path(path).unlink()
"""


@settings(max_examples=80)
@given(st.lists(st.one_of(_SIMPLE, _BLOCKS), min_size=1, max_size=5))
@example(["edit('a')", "maybe('a')"])
def test_what_is_said_of_a_script_is_what_python_does(statements: list[str]) -> None:
    script = _BEGINNING + "\n".join(statements)
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "sub").mkdir()
        for name in ("a", "b", "sub/c"):
            (folder / name).write_text("a\n")
            os.utime(folder / name, (0, 0))
        command = [sys.executable, "-I", "-S", "-c", script]
        if subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=20).returncode:
            return
        changes = list(changes_by_python(script))
        last = {change.path: change.verb for change in changes}
        moved = {change.target for change in changes}
        for path, verb in last.items():
            is_gone = verb == "deleted" or verb.startswith(MOVED_TO)
            if path not in moved:
                assert (folder / path).exists() is not is_gone, script
            assert is_gone or path in moved or (folder / path).stat().st_mtime, script
    finally:
        shutil.rmtree(folder)


@given(st.text("abos.(')=\n: \\{}f\"", max_size=80), st.sampled_from(["open('a', 'w')\n", "if a:\n ", "Path('a')."]))
def test_any_text_can_be_read(text: str, beginning: str) -> None:
    assert all(change.path for change in changes_by_python(beginning + text))
