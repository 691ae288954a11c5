"""What the model is told before the conversation."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO

from nca.agent.project_instructions import project_instructions
from nca.config.paths import user_config_file
from nca.config.schema import Settings
from nca.config.tables import Section
from nca.context.budget import Budget
from nca.context.tokens import text_tokens
from nca.errors import ConfigError
from nca.messages import clean_text
from nca.models.catalog import ModelFacts
from nca.tools.files.workspace import Workspace, open_own
from nca.tools.skill import FOLDER, SkillFile, find_skills
from nca.tools.tool import ToolError

MAX_FILE_BYTES = 128 * 1024
"""A section's file is sent with every request; what is larger than this belongs into an attachment."""
MAX_PROBLEMS = 3
"""Files that are no skills are told one by one up to here: a project must not fill the screen."""
MAX_SKILL_TOKENS = 1_000
SKILL_SHARE = 16
"""The list of skills is sent with every request: at most so many raw tokens, and in a small window that part of it."""
_SKILLS = (
    "## Skills\n"
    "How things are done here. Before you begin with something that one of these is for, read it with the skill tool."
)
_MORE_SKILLS = "- [{count} more are not listed]"


def system_prompt(settings: Settings, directory: Path, *parts: str) -> str:
    """The same text for a whole session, so that what a provider has cached of it stays valid.

    parts: what the project says and which skills there are; they stand before the person's sections.
    Raises ConfigError for a section whose file cannot be used.
    """
    text = settings.agent.system_prompt or _own().format(directory=directory)
    rendered = render_sections(settings.context.section, directory)
    return clean_text("\n\n".join(part for part in (text.strip(), *parts, rendered) if part))


@dataclass(frozen=True, slots=True)
class Briefing:
    """text: the system prompt; project: what of it the project says; notices: for a person, one line each."""

    text: str
    skills: tuple[SkillFile, ...]
    notices: tuple[str, ...]
    project: str = ""


def brief(settings: Settings, facts: ModelFacts, directory: Path, *, has_skills: bool = True) -> Briefing:
    """What a session begins with in this directory, as the files are now.

    has_skills: the model can ask for skills. Raises ConfigError for a section whose file cannot be used.
    """
    window = settings.model.context_window or facts.window_tokens
    budget = Budget.of(window, settings.model.max_output_tokens, settings.context.max_tokens)
    project = project_instructions(directory, budget.budget_tokens)
    skills, problems = list[SkillFile](), list[str]()
    if has_skills and facts.can_use_tools:
        skills, problems = find_skills(directory, user_config_file(os.environ).parent / FOLDER)
    listed, told = skill_list(skills, min(MAX_SKILL_TOKENS, budget.budget_tokens // SKILL_SHARE))
    text = system_prompt(settings, directory, project.text, listed)
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"{len(problems) - MAX_PROBLEMS} more skills were left out."]
    return Briefing(text, tuple(skills), (*project.notices, *told, *problems), project.text)


class Briefings:
    """What a session begins with, cut for the model that answers: the same text as before with a window seen before."""

    def __init__(self, directory: Path, *, has_skills: bool) -> None:
        self._directory = directory
        self._has_skills = has_skills
        self._made: dict[Hashable, Briefing] = {}

    def of(self, settings: Settings, facts: ModelFacts) -> Briefing:
        """For a model with its own settings. Raises ConfigError for a section whose file cannot be used."""
        limits = settings.model.context_window or facts.window_tokens, settings.model.max_output_tokens
        told = settings.context.max_tokens, settings.context.section, settings.agent.system_prompt
        key = (*limits, *told, facts.can_use_tools)
        if key not in self._made:
            self._made[key] = brief(settings, facts, self._directory, has_skills=self._has_skills)
        return self._made[key]


def skill_list(skills: Sequence[SkillFile], max_tokens: int) -> tuple[str, list[str]]:
    """The section that names the skills, within so many raw tokens, and what is to be said of it."""
    if not skills:
        return "", []
    lines, left_out = [_SKILLS], 0
    room = max_tokens - text_tokens(_SKILLS) - text_tokens(_MORE_SKILLS.format(count=len(skills)))
    for skill in skills:
        line = f"- {skill.name}: {skill.when}"
        room -= text_tokens(line) + 1
        if room < 0:
            left_out += 1
        else:
            lines.append(line)
    told = f"Skills: {', '.join(skill.name for skill in skills)}."
    if not left_out:
        return "\n".join(lines), [told]
    lines.append(_MORE_SKILLS.format(count=left_out))
    return "\n".join(lines), [told, f"{left_out} of {len(skills)} skills are not listed: there is no room for more."]


def render_sections(sections: tuple[Section, ...], directory: Path) -> str:
    """`## Label` and its text for each section, lower priority first, equals in their order (seed 4)."""
    ordered = sorted(sections, key=lambda section: section.priority)
    return "\n\n".join(f"## {section.label}\n{_text_of(section, directory).strip()}" for section in ordered)


def _text_of(section: Section, directory: Path) -> str:
    if not section.file:
        return section.text
    try:
        with _opened(section.file, directory) as file:
            size = os.fstat(file.fileno()).st_size
            raw = file.read(MAX_FILE_BYTES + 1)
    except (ToolError, RuntimeError) as error:
        # RuntimeError: `~name` of somebody who is not known here.
        raise _unusable(section, str(error)) from error
    except OSError as error:
        raise _unusable(section, f"{section.file} cannot be read ({error.strerror})") from error
    if len(raw) > MAX_FILE_BYTES:
        raise _unusable(section, f"{section.file} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are sent")
    if b"\0" in raw:
        raise _unusable(section, f"{section.file} is not a text file")
    return raw.decode("utf-8-sig", "replace")


def _opened(name: str, directory: Path) -> BinaryIO:
    """A relative name stays inside the directory, wherever its links lead. Raises ToolError where it does not.

    An absolute one comes from the person's own settings (a project's file cannot give it), and may lead anywhere.
    """
    own = Path(name).expanduser()
    if own.is_absolute():
        return open_own(own, name)
    workspace = Workspace(directory)
    return workspace.open(workspace.resolve(name), name)


def _unusable(section: Section, why: str) -> ConfigError:
    return ConfigError(f"[[context.section]] {section.label}: {why}.", advice="Mend the file's name or the section.")


@cache
def _own() -> str:
    return files(__package__).joinpath("prompts/system.md").read_text(encoding="utf-8")
