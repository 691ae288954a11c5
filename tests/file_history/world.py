"""A folder in which a session and someone else change files, and what it must hold after a rewind."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

NAMES = ("a", "A", "b c", "d/a", "d/e/f", "g/h", "ü/\udcff")
"""One differs from another in case only, one is not UTF-8. Some are in folders, which may be missing."""
FOLDERS = ("d", "d/e", "g")
_MAKEFILE = "out/all: d/a\n\tmkdir -p out; cat d/a a > out/all 2>/dev/null || true\n"
_ENVIRONMENT = {
    **{"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "n"},
    **{"GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"},
}

Snapshot = dict[str, tuple[int, bytes]]
"""Mode, and content or target, of everything but git's own folder."""

COMMANDS = (
    "printf '%s\\n' {text} > {one}",
    "printf '%s\\n' {text} >> {one}",
    "rm -f {one}",
    "mv -f {one} {other}",
    "chmod 755 {one}",
    "chmod 600 {one}",
    "sed -i 's/[0-9]/x{text}/' {one}",
    "ln -sf {text} {one}",
    "mkdir -p {folder}",
    "rm -rf {folder}",
    "chmod 711 {folder}",
    "cp -r d g; touch d/{text}",
    "rm -rf d; printf {text} > d",
    "rm -f d; mkdir d; printf {text} > d/a",
    "git checkout -q -f other",
    "git checkout -q -f main",
    "git stash -q; git stash pop -q",
    "make -s",
    "true",
    "printf {text} > {one}; exit 3",
)


def make_tree(root: Path) -> None:
    """A git repository with two branches, a Makefile, and a file that git ignores."""
    (root / "d/e").mkdir(parents=True)
    (root / "Makefile").write_text(_MAKEFILE)
    (root / ".gitignore").write_text("secret\n")
    (root / "secret").write_text("1")
    (root / "a").write_text("a 1\n")
    (root / "d/a").write_text("d 1\n")
    (root / "d/e/f").write_text("")
    script = (
        "git init -q -b main . && git add -A && git commit -qm 1 && git checkout -q -b other && echo 2 > a"
        " && git rm -q d/e/f && echo 3 > b && chmod +x b && git add -A && git commit -qm 2 && git checkout -q main"
    )
    shell(root, script, is_checked=True)


def shell(root: Path, line: str, *, is_checked: bool = False) -> None:
    subprocess.run(
        ["sh", "-c", os.fsencode(line)], cwd=root, env=_ENVIRONMENT, check=is_checked, stderr=subprocess.DEVNULL
    )


def line(template: str, text: str, one: str, other: str, folder: str) -> str:
    return template.format(text=text, one=f"'{one}'", other=f"'{other}'", folder=folder)


def write(root: Path, name: str, content: bytes) -> None:
    """As nca's tools write: whole or not at all. A link or folder in its place is left alone."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(".nca-1.tmp")
    temporary.write_bytes(content)
    if path.exists():
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))
    temporary.replace(path)


def can_write(root: Path, name: str) -> bool:
    """Whether a tool would write there: no link, no folder, no file on the way."""
    path = root / name
    above = [root / one for one in Path(name).parents]
    return not path.is_symlink() and not path.is_dir() and all(one.is_dir() or not one.exists() for one in above)


def snapshot(root: Path) -> Snapshot:
    found: Snapshot = {}
    for folder, folders, files in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                held = os.fsencode(Path(path).readlink())
            else:
                held = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[os.path.relpath(path, root)] = (status.st_mode, held)
    return found


def without_folders(found: Snapshot) -> Snapshot:
    return {path: one for path, one in found.items() if not stat.S_ISDIR(one[0])}


class World:
    """What was there before each message, and what someone else has touched since. The newest message is `head`."""

    def __init__(self, root: Path) -> None:
        self.root, self.head = root, 0
        self.moments: dict[int, Snapshot] = {}
        self.foreign: dict[str, tuple[int, tuple[int, bytes] | None]] = {}

    def begin(self) -> None:
        """A message enters the log."""
        self.head += 1
        self.moments[self.head] = snapshot(self.root)

    def someone(self, kind: str, name: str, text: str) -> None:
        """Someone else writes, appends, deletes or moves a file; no content comes twice."""
        path, to = self.root / name, self.root / f"moved {text}"
        if not can_write(self.root, name):
            return
        if kind == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"mine {text}")
        elif not path.exists():
            return
        elif kind == "append":
            with path.open("a") as file:
                file.write(f"mine {text}")
        elif kind == "delete":
            path.unlink()
        else:
            shutil.move(path, to)
            self._touched(to.name)
        self._touched(name)

    def _touched(self, name: str) -> None:
        self.foreign[name] = self.head, snapshot(self.root).get(name)

    def wrong(self, moment: int, before: Snapshot) -> list[str]:
        """What is not as it must be after a rewind to before a message; `before`: what was there before the rewind."""
        then, now = self.moments[moment], snapshot(self.root)
        touched = {path: left for path, (head, left) in self.foreign.items() if head >= moment}
        if not touched:
            return _differences(then, now)
        then, now, before = without_folders(then), without_folders(now), without_folders(before)
        expected = {path: one for path, one in then.items() if path not in touched}
        for path, left in touched.items():
            # Untouched; or, where only the session changed it since, as they left it.
            if (one := now.get(path)) is not None and one in (before.get(path), left):
                expected[path] = one
            elif None not in (before.get(path), left):
                expected[path] = before[path]
        # No file can be where a folder has somebody else's file in it, nor one below somebody else's file.
        kept = [path for path in touched if path in now]
        expected = {
            path: one
            for path, one in expected.items()
            if path in kept
            or not any(f"{other}/".startswith(f"{path}/") or path.startswith(f"{other}/") for other in kept)
        }
        return _differences(expected, now)


def _differences(expected: Snapshot, now: Snapshot) -> list[str]:
    return [
        f"{path!r}: {now.get(path)} instead of {expected.get(path)}"
        for path in sorted(expected.keys() | now.keys())
        if expected.get(path) != now.get(path)
    ]
