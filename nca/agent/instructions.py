"""The system prompt: nca's own text or the person's, the project's instructions, the skills, and further sections."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from nca.agent.project_instructions import project_instructions
from nca.agent.surroundings import surroundings
from nca.config.paths import user_config_file
from nca.config.schema import Settings
from nca.config.tables import Section
from nca.context.budget import Budget
from nca.errors import ConfigError, system_reason
from nca.humanize import UsualNotice
from nca.models.catalog import ModelFacts
from nca.redact import KEYS_BY_SHAPE, Redactor
from nca.tools.files.reading_rules import ANY_READING, Reading
from nca.tools.files.workspace import Workspace, open_own, shown
from nca.tools.skill_places import places
from nca.tools.skills import AGENTS_FOLDER, FOLDER, AgentFile, SkillFile, find_agents, find_skills
from nca.tools.tool import ToolError
from nca.tools.toolbox import SMALL_BUDGET_TOKENS

MAX_FILE_BYTES = 128 * 1024
"""A section's file is sent with every request; a larger text belongs in an attachment."""
MAX_PROBLEMS = 3
"""Invalid skill files reported one by one; the rest are counted, so that a project cannot fill the screen."""
MAX_SKILL_TOKENS, BYTES_PER_TOKEN = 2_000, 3
SKILL_SHARE = 16
"""The list of skills is sent with every request: at most MAX_SKILL_TOKENS, or 1/16 of a small budget."""
_SKILLS = (
    "## Skills\n"
    "How things are done here. Before you begin with something that one of these is for, read it with the skill tool."
)
_AGENTS = (
    "## Agents\n"
    "Assistants for certain questions. Where a question is one of these, name the agent when you call the task tool."
)
_NOTES = "## Notes\nNoted in earlier sessions here, by the user or at a session's end; the newest first."
MAX_NOTES_TOKENS, NOTES_SHARE = 1_000, 32
"""The notes are sent with every request: at most so many tokens, or 1/32 of a small budget."""
NOTE_CHARS = (2_000, 400)
"""Of one note, its first paragraph: cut to the first of these lengths at which all fit; recall has it whole."""
DESCRIPTION_CHARS = (1_024, 400, 200, 80)
"""Descriptions are cut to the first of these lengths at which all of them fit."""
_LINE = re.compile(r"(?m)^(?:\[(\w+)\] )?(.+)$")
_MORE_SKILLS = "- [{count} more are not listed]"


def system_prompt(
    settings: Settings,
    directory: Path,
    *parts: str,
    is_small: bool = False,
    redactor: Redactor = KEYS_BY_SHAPE,
    offers: Callable[[str], bool] = lambda _: True,
) -> str:
    """The text is the same for a whole session, so that a provider's cache of it stays valid. It contains no keys.

    is_small: the short text, for a small model.
    offers: whether the model has a tool of this name; the text speaks of no other.
    parts: the project's instructions and the list of skills; they come before the person's sections.
    Raises ConfigError if a section's file cannot be used.
    """
    reading = _reading(settings, directory)
    where = {"directory": directory, "surroundings": surroundings(directory, reading)}
    text = settings.agent.system_prompt or "\n".join(
        line.format(**where) for tool, line in _own(is_small=is_small) if not tool or offers(tool)
    )
    rendered = render_sections(settings.context.section, directory, reading)
    return redactor.clean("\n\n".join(part for part in (text.strip(), *parts, rendered) if part))


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The prompt as it is sent. project: the project's part of it. notices: what a person should know, a line each."""

    text: str
    skills: tuple[SkillFile, ...] = ()
    agents: tuple[AgentFile, ...] = ()
    notices: tuple[str, ...] = ()
    project: str = ""


PromptOf = Callable[[Settings, ModelFacts], SystemPrompt]
"""The prompt for a model with its settings. Raises ConfigError if a section's file cannot be used."""


class ProjectPrompts:
    """The system prompts of one directory, each built once: the same model and settings always get the same bytes.

    tools: the names of the model's tools; None: nca's own. env: it leads to the folder of the person's own skills.
    """

    def __init__(
        self,
        directory: Path,
        redactor: Redactor = KEYS_BY_SHAPE,
        *,
        tools: Collection[str] | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self._directory, self._redactor = directory, redactor
        self._tools, self._env = tools, env
        self._made: dict[Hashable, SystemPrompt] = {}

    def of(self, settings: Settings, facts: ModelFacts) -> SystemPrompt:
        """See PromptOf."""
        limits = settings.model.context_window or facts.window_tokens, settings.model.max_output_tokens
        context, agent = settings.context, settings.agent
        texts = context.max_tokens, context.section, agent.system_prompt, agent.use_claude_home, settings.memory
        key = (*limits, *texts, settings.permissions, settings.tools.off, facts.can_use_tools, facts.is_small)
        if key not in self._made:
            self._made[key] = self._built(settings, facts)
        return self._made[key]

    def _built(self, settings: Settings, facts: ModelFacts) -> SystemPrompt:
        directory, redactor = self._directory, self._redactor

        def offers(tool: str) -> bool:
            is_there = facts.can_use_tools and (self._tools is None or tool in self._tools)
            return is_there and not settings.tools.is_off(tool)

        window = settings.model.context_window or facts.window_tokens
        budget = Budget.in_window(window, settings)
        reading = _reading(settings, directory)
        project = project_instructions(
            directory, budget.budget_tokens, redactor=redactor, reading=reading, has_own=settings.agent.use_claude_home
        )
        skills, agents, problems = list[SkillFile](), list[AgentFile](), list[str]()
        if offers("skill") and not facts.is_small:
            own_folder = user_config_file(self._env).parent
            skills, problems = find_skills(places(directory, own_folder, FOLDER))
            if budget.budget_tokens >= SMALL_BUDGET_TOKENS:
                agents, unusable = find_agents(places(directory, own_folder, AGENTS_FOLDER))
                problems += unusable
        room = min(MAX_SKILL_TOKENS, budget.budget_tokens // SKILL_SHARE)
        noted, about_notes = _notes(settings, directory, min(MAX_NOTES_TOKENS, budget.budget_tokens // NOTES_SHARE))
        listed, notices = skill_list(skills, room)
        named, told = skill_list([agent.about for agent in agents], room, _AGENTS, "Agents")
        parts = project.text, noted, listed, named
        text = system_prompt(settings, directory, *parts, is_small=facts.is_small, redactor=redactor, offers=offers)
        if len(problems) > MAX_PROBLEMS:
            problems[MAX_PROBLEMS:] = [f"{len(problems) - MAX_PROBLEMS} more skills or agents were left out."]
        said = (*project.notices, *about_notes, *notices, *told, *problems)
        return SystemPrompt(text, tuple(skills), tuple(agents), said, project.text)


def skill_list(
    skills: Sequence[SkillFile], max_tokens: int, heading: str = _SKILLS, kind: str = "Skills"
) -> tuple[str, list[str]]:
    """The section that lists skills or agents, within this many tokens by their bytes, and notices for a person.

    The prompt is on the screen before anything can be counted.
    """
    if not skills:
        return "", []
    notice = UsualNotice(f"{kind}: {', '.join(skill.name for skill in skills)}.")
    listed = [skill for skill in skills if skill.is_listed]
    if not listed:
        return "", [notice]
    room = BYTES_PER_TOKEN * max_tokens - _size(heading) - _size(_MORE_SKILLS.format(count=len(listed)))
    for most_chars in DESCRIPTION_CHARS:
        lines = [f"- {skill.name}: {_cut(skill.when, most_chars)}" for skill in listed]
        sizes = list(accumulate(_size(line) + 1 for line in lines))
        if sizes[-1] <= room:
            return "\n".join([heading, *lines]), [notice]
    fits = sum(size <= room for size in sizes)
    left_out = len(listed) - fits
    text = "\n".join([heading, *lines[:fits], _MORE_SKILLS.format(count=left_out)])
    return text, [notice, f"{left_out} of {len(listed)} {kind.lower()} are not listed: there is no room for more."]


def _notes(settings: Settings, directory: Path, max_tokens: int) -> tuple[str, list[str]]:
    """The section with the beginnings of the newest notes, within this many tokens by their bytes, and notices."""
    # Files of notes are read with what only Linux and macOS have.
    from nca.agent.memory import load_notes, notes_file

    try:
        notes = load_notes(notes_file(settings.memory, directory))
    except ConfigError as error:
        return "", [str(error)]
    if not notes:
        return "", []
    beginnings = [" ".join(note.text.strip().partition("\n\n")[0].split()) for note in reversed(notes)]
    room = BYTES_PER_TOKEN * max_tokens - _size(f"{_NOTES}\n\n")
    for most_chars in NOTE_CHARS:
        lines = [f"- {_cut(text, most_chars)}" for text in beginnings if text]
        fits = sum(size <= room for size in accumulate(_size(line) + 1 for line in lines))
        if fits == len(lines):
            break
    if not fits:
        return "", []
    which = f"the newest {fits} of {len(notes)}" if fits < len(notes) else str(len(notes))
    return "\n".join([_NOTES, *lines[:fits]]), [UsualNotice(f"Notes of earlier sessions: {which} (/memory).")]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cut(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else text[: most_chars - 1].rpartition(" ")[0] + "…"


def _reading(settings: Settings, directory: Path) -> Reading:
    return Reading(lambda: settings.permissions, directory)


def render_sections(sections: tuple[Section, ...], directory: Path, reading: Reading = ANY_READING) -> str:
    """Each section as `## Label` and its text, lower priority first, then in the settings' order (as in Neuron)."""
    ordered = sorted(sections, key=lambda section: section.priority)
    return "\n\n".join(f"## {section.label}\n{_text_of(section, directory, reading).strip()}" for section in ordered)


def _text_of(section: Section, directory: Path, reading: Reading) -> str:
    if not section.file:
        return section.text
    try:
        with _opened(section.file, directory, reading) as file:
            size = os.fstat(file.fileno()).st_size
            raw = file.read(MAX_FILE_BYTES + 1)
    except (ToolError, RuntimeError) as error:
        # RuntimeError: the user in `~name` is unknown.
        raise _unusable(section, str(error)) from error
    except OSError as error:
        raise _unusable(section, f"{section.file} cannot be read ({system_reason(error)})") from error
    if len(raw) > MAX_FILE_BYTES:
        raise _unusable(section, f"{section.file} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are sent")
    if b"\0" in raw:
        raise _unusable(section, f"{section.file} is not a text file")
    return raw.decode("utf-8-sig", "replace")


def _opened(name: str, directory: Path, reading: Reading) -> BinaryIO:
    """A relative path must stay inside the directory, links included. Raises ToolError if it does not.

    An absolute path may lead anywhere: only the person's own settings can name one.
    """
    own = Path(name).expanduser()
    if own.is_absolute():
        if denial := reading.denial(own):
            raise ToolError(f"{shown(name)} {denial}")
        return open_own(own, name)
    workspace = Workspace(directory, reading=reading)
    return workspace.open(workspace.resolve(name), name)


def _unusable(section: Section, why: str) -> ConfigError:
    return ConfigError(f"[[context.section]] {section.label}: {why}.", advice="Correct the file's name or the section.")


@cache
def _own(*, is_small: bool) -> list[tuple[str, str]]:
    """The lines of nca's own text, each with the tool that it is about, if any: `[recall] ` comes before it."""
    name = "small" if is_small else "system"
    text = files(__package__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")
    return _LINE.findall(text)
