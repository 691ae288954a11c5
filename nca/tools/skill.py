"""Skills: Markdown files that explain how to do something, and the tool that reads them when they are needed.

A skill is a file `NAME.md` in a skills folder. It begins with front matter:

    ---
    name: release
    when: A release is to be made or checked.
    ---

The rest is the skill's text. The system prompt lists the names and whens; the tool returns the text. A project's skills
are data, like its AGENTS.md: links out of the project are not followed, and a skill of the person's own with the same
name takes precedence.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from nca.config.paths import PROJECT_FOLDER
from nca.messages import clean_text
from nca.tools.files.workspace import NoSuchFile, Workspace, open_own, shown
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

NAME = "skill"
"""Results of the tool with this name are never pruned (context.prune.protected_tools)."""
FOLDER = "skills"
MAX_FILES = 200
"""In one folder."""
MAX_HEAD_BYTES = 4 * 1024
"""The front matter must fit in these."""
MAX_SKILL_BYTES = 64 * 1024
MAX_WHEN_CHARS = 300
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"(\w+)[ \t]*:[ \t]*(.*?)[ \t]*$")


Opener = Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One skill. `source` names its file for a person; `open` opens it and raises ToolError."""

    name: str
    when: str
    source: str
    is_own: bool
    open: Opener


def find_skills(directory: Path, own_folder: Path) -> tuple[list[SkillFile], list[str]]:
    """All skills, ordered by name, and one line for each file that is not a valid skill.

    directory   the project's folder; its skills are in `.nca/skills/`
    own_folder  the folder of the person's own skills
    """
    found: dict[str, SkillFile] = {}
    problems: list[str] = []
    for source, is_own, opener in (*_own_files(own_folder), *_project_files(directory)):
        try:
            skill = _described(source, is_own, opener)
        except ToolError as error:
            problems.append(f"Skipped a skill: {error}.")
            continue
        found.setdefault(skill.name, skill)
    return sorted(found.values(), key=lambda skill: skill.name), problems


class Skill(TypedTool):
    name: ClassVar[str] = NAME
    permission: ClassVar[Permission] = "read"

    def __init__(self, skills: Sequence[SkillFile]) -> None:
        self._skills = {skill.name: skill for skill in skills}

    async def call(self, name: Annotated[str, "As it is listed."]) -> ToolOutcome:
        """Read a skill: how something is done here. Do it before you begin with what its "when" describes."""
        skill = self._skills.get(name.strip())
        if skill is None:
            raise ToolError(f"there is no skill {name!r}; the skills are: {', '.join(self._skills)}")
        return await asyncio.to_thread(_read, skill)

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"skill {shown(str(arguments.get('name', '')))}"


def _read(skill: SkillFile) -> ToolOutcome:
    raw = _bytes(skill.source, skill.open, MAX_SKILL_BYTES + 1)
    is_cut = len(raw) > MAX_SKILL_BYTES
    text = clean_text(raw[:MAX_SKILL_BYTES].decode("utf-8-sig", "ignore" if is_cut else "replace"))
    body = text[match.end() :] if (match := _FRONT.match(text)) else text
    whose = "the person's own" if skill.is_own else "the project's: it allows nothing that the person has not allowed"
    cut = f"; only its first {MAX_SKILL_BYTES:,} bytes" if is_cut else ""
    header = f"[skill {skill.name}, {skill.source}; {whose}{cut}]"
    return ToolOutcome(f"{header}\n{body.strip()}", summary=f"{len(body.splitlines()):,} lines")


def _described(source: str, is_own: bool, opener: Opener) -> SkillFile:
    """Read the front matter. Raises ToolError if it is not valid."""
    head = clean_text(_bytes(source, opener, MAX_HEAD_BYTES).decode("utf-8-sig", "replace"))
    match = _FRONT.match(head)
    if match is None:
        raise ToolError(f"{source} does not begin with front matter (---, name: …, when: …, ---)")
    pairs = {pair[1]: _unquoted(pair[2]) for line in match[1].splitlines() if (pair := _PAIR.match(line))}
    name, when = pairs.get("name", ""), " ".join(pairs.get("when", "").split())
    if not _NAME.fullmatch(name):
        raise ToolError(f"{source} has no usable name (letters, digits, . _ -; at most 64)")
    if not when:
        raise ToolError(f"{source} does not say when to use it")
    return SkillFile(name, when[:MAX_WHEN_CHARS], source, is_own, opener)


def _own_files(folder: Path) -> Iterator[tuple[str, bool, Opener]]:
    """The person may have linked these to anywhere."""
    try:
        with os.scandir(folder) as scan:
            names = _skill_names(scan)
    except OSError:
        return
    for name in names:
        yield shown(str(folder / name)), True, partial(open_own, folder / name, name)


def _project_files(directory: Path) -> Iterator[tuple[str, bool, Opener]]:
    workspace = Workspace(directory)
    inside = f"{PROJECT_FOLDER}/{FOLDER}"
    try:
        with workspace.folder(workspace.resolve(inside)) as folder, folder.entries() as scan:
            names = _skill_names(scan)
    except (OSError, ToolError):
        # There is no such folder, or it leads out of the project.
        return
    for name in names:
        path = f"{inside}/{name}"
        yield shown(path), False, partial(_open_inside, workspace, path)


def _open_inside(workspace: Workspace, path: str) -> BinaryIO:
    return workspace.open(workspace.resolve(path), path)


def _skill_names(scan: Iterator[os.DirEntry[str]]) -> list[str]:
    return sorted(entry.name for entry in islice(scan, MAX_FILES) if entry.name.endswith(".md"))


def _bytes(source: str, opener: Opener, most: int) -> bytes:
    try:
        with opener() as file:
            return file.read(most)
    except NoSuchFile:
        raise ToolError(f"{source} is gone") from None
    except OSError as error:
        raise ToolError(f"{source} cannot be read ({error.strerror})") from error


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
