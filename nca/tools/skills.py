"""Skills: Markdown files that explain how to do something, and the tool that reads them when they are needed. Agents.

A skill is a folder with a `SKILL.md`, as the Agent Skills format has it (agentskills.io), or a single `NAME.md`. It
begins with front matter:

    ---
    name: release
    description: How a release is made and checked. Use it before you tag anything.
    ---

The rest is the skill's text. Scripts and references may be beside a `SKILL.md`. The system prompt lists names and
descriptions; the tool returns the text, and the files beside it on demand. A skill of the person's own takes precedence
over a project's of the same name. A skill allows nothing: what its front matter says of tools is ignored.

Agents are files such as Claude Code's `.claude/agents/*.md`; an assistant of the task tool gets their text. Their
front matter has a name, a description and, where the assistant gets only some tools, `tools` or `disallowedTools`.
An agent allows nothing: each call of its assistant needs its own permission.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, TypeVar

from nca.config.tables import TOOLS
from nca.humanize import counted
from nca.messages import clean_text
from nca.tools.files.workspace import shown
from nca.tools.skill_places import MAX_LISTED, SKILL_FILE, Place, front_line, split_front
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome, TypedTool

T = TypeVar("T", "SkillFile", "AgentFile")
NAME = "skill"
"""Results of the tool with this name are never pruned (context.prune.protected_tools)."""
FOLDER = "skills"
MAX_HEAD_BYTES = 16 * 1024
"""The front matter must fit in these."""
MAX_SKILL_BYTES = 64 * 1024
MAX_WHEN_CHARS = 1_024
"""Of a description, as the Agent Skills format has it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FOLDER_NAMES = re.compile(r"\$\{?(?:CLAUDE_SKILL_DIR|SKILL_DIR)\b\}?")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One skill.

    when       what it is for: its description
    place      the folder it was found in; `file` is its file there
    is_listed  the model may read it by itself
    is_called  a person may call it as `/name`
    """

    name: str
    when: str
    place: Place
    file: str
    is_listed: bool = True
    is_called: bool = True

    @property
    def source(self) -> str:
        """Its file, as a person knows it."""
        return self.place.shown(self.file)

    @property
    def whose(self) -> str:
        return "the person's own" if self.place.is_own else "the project's, so it gives no permissions"

    def text(self) -> str:
        """Its text without the front matter, headed by where it is from and what is beside it. Raises ToolError."""
        text, cut = _beginning(self.place.read(self.file, MAX_SKILL_BYTES + 1))
        body, header = split_front(text)[1], f"[skill {self.name}, {self.source}; {self.whose}{cut}]"
        if not self._has_folder:
            return f"{header}\n{body.strip()}"
        folder = str((self.place.folder / self.file).parent)
        body = _FOLDER_NAMES.sub(lambda _: folder, body)
        beside = self.place.beside(self.file)
        listed = ", ".join(map(shown, beside[:MAX_LISTED])) + (", …" if len(beside) > MAX_LISTED else "")
        more = f"\n[beside it in {shown(folder)}; read one with file=…: {listed}]" if beside else ""
        return f"{header}{more}\n{body.strip()}"

    def text_of(self, file: str) -> str:
        """The text of a file beside it. Raises ToolError."""
        path = PurePosixPath(file)
        if not self._has_folder or path.is_absolute() or ".." in path.parts or not path.parts:
            raise ToolError(f"{shown(file)} is not a file of the skill {self.name}")
        raw = self.place.read(str(PurePosixPath(self.file).parent / path), MAX_SKILL_BYTES + 1)
        if b"\0" in raw:
            raise ToolError(f"{shown(file)} is not a text file")
        text, cut = _beginning(raw)
        return f"[{shown(file)} of the skill {self.name}{cut}]\n{text}"

    @property
    def _has_folder(self) -> bool:
        return PurePosixPath(self.file).name == SKILL_FILE


def find_skills(found: Iterable[Place]) -> tuple[list[SkillFile], list[str]]:
    """All skills by name, the first of each name, and one line for each file that is not a valid skill."""
    files = ((place, file) for place in found for file in place.skill_files())
    return _valid("a skill", files, lambda place, file: _described(place, file)[0])


def _valid(what: str, files: Iterable[tuple[Place, str]], read: Callable[[Place, str], T]) -> tuple[list[T], list[str]]:
    """The parsed files, sorted by name, and one line for each that is not a `what`."""
    valid: dict[str, T] = {}
    problems: list[str] = []
    for place, file in files:
        try:
            one = read(place, file)
        except ToolError as error:
            problems.append(f"Skipped {what}: {error}.")
        else:
            valid.setdefault(one.name, one)
    return [valid[name] for name in sorted(valid)], problems


class Skill(TypedTool):
    name: ClassVar[str] = NAME
    permission: ClassVar[Permission] = "read"

    def __init__(self, skills: Sequence[SkillFile]) -> None:
        self._skills = {skill.name: skill for skill in skills if skill.is_listed}

    async def call(
        self,
        name: Annotated[str, "As it is listed."],
        file: Annotated[str, "A file beside it, as the skill names it."] = "",
    ) -> ToolOutcome:
        """Read a skill: how something is done here. Do it before you begin with what its description is for."""
        skill = self._skills.get(name.strip())
        if skill is None:
            raise ToolError(f"there is no skill {name!r}; the skills are: {', '.join(self._skills)}")
        text = await asyncio.to_thread(skill.text_of, file) if file else await asyncio.to_thread(skill.text)
        return ToolOutcome(text, summary=counted(len(text.splitlines()) - 1, "line"))

    def approval(self, arguments: dict[str, Any]) -> Approval:
        """With the file that is shown, so that rules about files hold for it."""
        skill = self._skills.get(str(arguments.get("name", "")).strip())
        if skill is None:
            return super().approval(arguments)
        file = PurePosixPath(skill.file)
        beside = str(arguments.get("file") or "")
        return Approval(path=str(skill.place.folder / (file.parent / beside if beside else file)))

    def summarize(self, arguments: dict[str, Any]) -> str:
        return f"skill {shown(' '.join(str(arguments.get(key, '')) for key in ('name', 'file')).strip())}"


def _described(place: Place, file: str) -> tuple[SkillFile, dict[str, Any]]:
    """The description in the front matter, and all its fields. Raises ToolError if it is not valid."""
    source, path = place.shown(file), PurePosixPath(file)
    found, _ = place.front(file, MAX_HEAD_BYTES)
    if found is None:
        raise ToolError(f"{source} does not begin with front matter (---, name: …, description: …, ---)")
    name = front_line(found, "name") or (path.parent.name if path.name == SKILL_FILE else path.stem)
    when = " ".join(filter(None, (front_line(found, key) for key in ("description", "when", "when_to_use"))))
    if not _NAME.fullmatch(name):
        raise ToolError(f"{source} has no usable name (letters, digits, . _ -; at most 64)")
    if not when:
        raise ToolError(f"{source} does not describe its purpose (description: …)")
    is_listed, is_called = found.get("disable-model-invocation") is not True, found.get("user-invocable") is not False
    return SkillFile(name, when[:MAX_WHEN_CHARS], place, file, is_listed, is_called), found


def _beginning(raw: bytes) -> tuple[str, str]:
    """The text within the limit, and a note if it was cut, which may have gone through a character."""
    is_cut = len(raw) > MAX_SKILL_BYTES
    text = clean_text(raw[:MAX_SKILL_BYTES].decode("utf-8-sig", "ignore" if is_cut else "replace"))
    return text, f"; only its first {MAX_SKILL_BYTES:,} bytes" if is_cut else ""


AGENTS_FOLDER = "agents"
_NAMES = {name.lower(): (tool,) for name, tool in TOOLS.items()} | {
    "bash": ("shell", "job"),
    "multiedit": ("edit_file",),
}
"""nca's tools that an agent gets, by Claude Code's names in small letters."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """One agent. only: the tools that its assistant gets, by nca's names; None: all but `without`."""

    about: SkillFile
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.about.name

    def has(self, tool: str) -> bool:
        """Whether its assistant gets a tool. A server's name alone means all its tools."""
        names = {tool, tool.rpartition("__")[0]} if tool.startswith("mcp__") else {tool}
        return (self.only is None or bool(names & self.only)) and not names & self.without

    def text(self) -> str:
        """The text for the assistant, below a heading with its source. Raises ToolError."""
        about = self.about
        raw = about.place.read(about.file, MAX_SKILL_BYTES).decode("utf-8-sig", "ignore")
        return f"[agent {about.name}, {about.source}; {about.whose}]\n{split_front(clean_text(raw))[1].strip()}"


def find_agents(found: Iterable[Place]) -> tuple[list[AgentFile], list[str]]:
    """All agents by name, the first of each name, and one line for each file that is not a valid agent."""
    files = ((place, file) for place in found for file in place.markdown_files())
    return _valid("an agent", files, _agent)


def _agent(place: Place, file: str) -> AgentFile:
    about, fields = _described(place, file)
    return AgentFile(about, _tools(fields.get("tools")), _tools(fields.get("disallowedTools")) or frozenset())


def _tools(written: Any) -> frozenset[str] | None:
    """nca's names of the tools in a list or in a text with commas; None if none are named, or all."""
    names = written if isinstance(written, list) else re.findall(r"[^,(]+(?:\([^)]*\))?", str(written or ""))
    plain = [re.sub(r"\(.*", "", str(name)).strip().removesuffix("__*") for name in names]
    if not plain or "*" in plain:
        return None
    return frozenset(own for name in plain for own in _NAMES.get(name.lower(), (name,)))
