"""Diffs are what git would apply."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.file_history.changes import MAX_COMPARED_LINES, FileChange, counts, unified
from nca.file_history.disk import state_of
from nca.sessions.file_record import ABSENT
from tests.file_history.room import Room

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d\r"]), max_size=40).map("\n".join)


def applied(folder: Path, before: str, diff: str) -> str:
    (folder / "f").write_bytes(before.encode())
    # Empty files need no hunks, and git wants a header of its own for them: the tests leave those out.
    subprocess.run(["git", "apply", "-p1", "-"], input=(diff + "\n").encode(), cwd=folder, check=True)
    return (folder / "f").read_bytes().decode()


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_a_diff_applied_gives_the_new_text(tmp_path: Path, before: str, after: str) -> None:
    diff = unified(before, after, "f")
    if before == after:
        assert diff == ""
    elif before and after:
        assert applied(tmp_path, before, diff) == after


@pytest.mark.parametrize("size", [MAX_COMPARED_LINES + 1, 60_000])
def test_a_large_change_is_shown_as_a_whole_and_still_applies(tmp_path: Path, size: int) -> None:
    before = "first\nsecond\n" + "x\n" * size + "last\nend"
    after = "first\nsecond\n" + "y\nz\n" * size + "last\nend"
    diff = unified(before, after, "f")
    assert counts(diff) == f"+{2 * size} −{size}"
    assert applied(tmp_path, before, diff) == after


def test_a_small_change_in_a_large_file_is_small() -> None:
    before = "".join(f"{number}\n" for number in range(100_000))
    diff = unified(before, before.replace("\n50000\n", "\nhere\n"), "f")
    assert diff.split("\n") == [
        "--- a/f",
        "+++ b/f",
        "@@ -49998,7 +49998,7 @@",
        *(" 49997", " 49998", " 49999", "-50000", "+here", " 50001", " 50002", " 50003"),
    ]


def test_a_missing_end_of_the_last_line_is_said() -> None:
    assert unified("a\n", "a", "f").endswith("-a\n+a\n\\ No newline at end of file")
    assert counts(unified(None, "a\nb", "f")) == "+2 −0"


BYTES = st.lists(st.sampled_from([b"a", b"b\r", b"\xe9", b"\r", b"", b"\0", "\u202eé".encode()]), max_size=30).map(
    b"\n".join
)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BYTES | st.none(), BYTES | st.none(), st.sampled_from(["f", "a b", 'é\n"\\', "x\udce9"]))
def test_a_patch_gives_the_bytes_there_and_back(
    tmp_path: Path, before: bytes | None, after: bytes | None, name: str
) -> None:
    states = [ABSENT if one is None else state_of(one, 0o644, len(one)) for one in (before, after)]
    contents = {state: one for state, one in zip(states, (before, after), strict=True) if one is not None}
    patch = FileChange(name, states[0], states[1], is_mixed=False, read=contents.__getitem__).patch()
    assert bool(patch) == (before != after)
    file = tmp_path / name
    file.unlink(missing_ok=True)
    for options, was, now in (([], before, after), (["-R"], after, before)):
        if patch:
            if was is not None:
                file.write_bytes(was)
            git_apply(tmp_path, patch, *options)
            assert (file.read_bytes() if file.exists() else None) == now


def git_apply(folder: Path, patch: bytes, *options: str) -> None:
    subprocess.run(["git", "apply", *options, "-"], input=patch, cwd=folder, check=True)


BEFORE = """
printf 'one\\r\\ntwo\\r\\n' >crlf; printf 'caf\\351\\n' >latin; printf 'a\\0b' >binary; echo x >tool; ln -s tool link
echo y >becomes-link; mkdir folder; echo z >folder/inside; echo w >becomes-folder; echo 'a b' >'two words'; : >empty
"""
SESSION = f"""
sed -i s/two/2/ crlf; printf 'new\\r\\n' >new-crlf; printf 'th\\351\\n' >>latin; head -c 9000 /dev/urandom >>binary
chmod 755 tool; ln -sf crlf link; rm becomes-link; ln -s tool becomes-link; rm -r folder; echo v >folder
rm becomes-folder; mkdir becomes-folder; echo u >becomes-folder/inside; echo c >>'two words'; rm empty; : >new-empty
echo '#!/bin/sh' >new-tool; chmod 755 new-tool; ln -s nowhere new-link; seq {MAX_COMPARED_LINES + 1} >new-large
"""


def tree(root: Path) -> dict[str, tuple[bytes, bool]]:
    """What git keeps of a folder: contents, links, and whether a file may be run."""
    found = {}
    for one in root.rglob("*"):
        if one.is_symlink():
            found[str(one.relative_to(root))] = os.fsencode(one.readlink()), False
        elif one.is_file():
            found[str(one.relative_to(root))] = one.read_bytes(), os.access(one, os.X_OK)
    return found


async def test_the_patch_of_a_session_makes_its_folder_from_what_was_before(tmp_path: Path, room: Room) -> None:
    subprocess.run(["sh", "-c", BEFORE], cwd=room.root, check=True)
    copy = tmp_path / "copy"
    shutil.copytree(room.root, copy, symlinks=True)
    before = tree(copy)
    await room.command(SESSION)
    patch = b"".join(one.patch() for one in room.history.changed_since(0))
    git_apply(copy, patch)
    assert tree(copy) == tree(room.root)
    git_apply(copy, patch, "-R")
    assert tree(copy) == before


async def test_git_has_no_patch_for_what_is_not_stored_or_no_mode_of_its_own(tmp_path: Path, room: Room) -> None:
    room.edit("private", "x")
    room.head += 1
    first = room.head
    await room.command("chmod 600 private; head -c 6000000 /dev/zero >large")
    assert [(one.path, one.patch()) for one in room.history.changed_since(first)] == [("large", b""), ("private", b"")]
