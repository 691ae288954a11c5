"""For any tree of folders, files and links, and any imports: nothing outside of the root is in the system prompt."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nca.agent.project_instructions import nested_instructions, project_instructions

ROOMY = 1_000_000
SECRET = "zebra-secret"

NAMES = [
    "AGENTS.md",
    "a",
    "b",
    "c.md",
    "d.md",
    ".claude",
    ".nca",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "instructions.md",
    ".git",
]
PLACES = ["", "in/", "in/a/", "in/b/", "in/a/b/", "in/.claude/", "in/.nca/", "out/", "out/a/"]
ENTRIES = st.tuples(st.sampled_from(PLACES), st.sampled_from(NAMES))
TARGETS = st.lists(
    st.sampled_from(["..", ".", "in", "out", "a", "b", "c.md", "d.md", "AGENTS.md", "secret.md"]), max_size=4
)
WRITTEN = st.one_of(
    TARGETS.map("/".join),
    TARGETS.map(lambda parts: "/".join(["~", *parts])),
    TARGETS.map(lambda parts: "/".join(["{top}", *parts])),
    TARGETS.map(lambda parts: "/".join(["file://{top}", *parts])),
    st.text("@~./a ", max_size=8),
)
TREE = st.dictionaries(ENTRIES, st.one_of(st.lists(WRITTEN, max_size=4), WRITTEN.map(str), st.none()), max_size=14)


Tree = dict[tuple[str, str], list[str] | str | None]


def _built(top: Path, tree: Tree) -> None:
    """Lists are the imports of files, texts are where links lead, None is a folder. What is there already stays."""
    for (place, name), what in tree.items():
        path = top / place / name
        is_free = path.parent.is_dir() and not os.path.lexists(path)
        if not is_free or not Path(os.path.realpath(path)).is_relative_to(top):
            continue
        match what:
            case None:
                path.mkdir()
            case str():
                if target := what.format(top=top).strip().replace("~", str(top)):
                    path.symlink_to(target)
            case list():
                path.write_text(" ".join(f"@{written.format(top=top)}" for written in what))


def _mark(top: Path, root: Path) -> None:
    """Give each file outside of the root a word that no other file has."""
    for folder, _, names in os.walk(top):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink() and not path.is_relative_to(root):
                path.write_text(f"{path.read_text()} {SECRET}")


def _without_outer_files(top: Path, directory: Path) -> None:
    """Above a directory that is in no repository, each instruction file would have a root of its own."""
    for outer in directory.parents:
        if outer.is_relative_to(top):
            for name in ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".git", ".claude/CLAUDE.md"):
                if (outer / name).is_file() or (outer / name).is_symlink():
                    (outer / name).unlink()


@settings(max_examples=100, deadline=None)
@given(TREE, st.sampled_from(["in", "in/a", "in/a/b"]), st.booleans(), st.booleans())
@example({("in/", "AGENTS.md"): ["../secret.md"]}, "in", True, False)
@example({("in/", "a/AGENTS.md"): ["../../secret.md"]}, "in/a", False, True)
@example({("in/", "b"): "../out", ("in/", "AGENTS.md"): ["b/secret.md"]}, "in", True, True)
@example({("in/", "AGENTS.md"): "../secret.md"}, "in", False, True)
def test_nothing_outside_of_the_root_is_ever_in_the_prompt(tree: Tree, cwd: str, has_git: bool, is_home: bool) -> None:
    """The root is the repository, or the directory itself. is_home: whether the directory above it is the home."""
    with TemporaryDirectory() as made:
        top = Path(os.path.realpath(made))
        for folder in ("in/a/b", "in/.claude", "in/.nca", "out/a"):
            (top / folder).mkdir(parents=True)
        (top / "out" / "secret.md").write_text("")
        (top / "secret.md").write_text("")
        if has_git:
            (top / "in" / ".git").mkdir()
        _built(top, tree)
        directory, home = top / cwd, top if is_home else top.parents[-1] / "nobody"
        if not has_git:
            _without_outer_files(top, directory)
        _mark(top, top / "in" if has_git else directory)
        found = project_instructions(directory, ROOMY, home=home)
        assert SECRET not in found.text + "".join(found.notices)
        below = nested_instructions(top / "in", directory, ROOMY, home=home)
        assert SECRET not in below.text + "".join(below.notices)
