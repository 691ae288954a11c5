"""Prompts that a person calls by name, as `/review 123`: skills, and Markdown files in a folder `commands`.

The file's text goes along as an attachment, with what was typed after the name in the place of `$ARGUMENTS`, `$1` and
so on. What is put in is never looked at again, so an argument cannot name a file or another argument.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nca.agent.mentions import Beside, mentioned
from nca.config.paths import user_config_file
from nca.errors import UsageError
from nca.humanize import natural, one_line
from nca.messages import clean_text
from nca.tools.skill_places import Place, front_line, places, split_front
from nca.tools.skills import FOLDER, MAX_SKILL_BYTES, SkillFile, find_skills
from nca.tools.tool import ToolError
from nca.words import Words, text_of, words

COMMANDS = "commands"
ABOUT_CHARS = 200
_ARGUMENT = re.compile(r"\$ARGUMENTS(?:\[(\d+)\])?|\$(\d)(?!\d)")
_RUNS = re.compile(r"(?m)(?:^|(?<=\s))!`[^`\n]+`")
_RUN_FIRST = "[Where it says !`command`, run that command first and go on with its output.]\n"


@dataclass(frozen=True, slots=True)
class CalledPrompt:
    """The parts that a call sends: the message, its attached text, and the files that the prompt names with `@`.

    Without the others it is a message that calls nothing.
    """

    message: Words
    beside: tuple[Beside, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """One prompt with a name. about: what it does. hint: what to type after its name."""

    name: str
    about: str
    hint: str
    place: Place
    file: str
    skill: SkillFile | None = None

    def call(self, argument: Words, directory: Path) -> CalledPrompt:
        """The prompt with what was said after its name.

        Raises UsageError if its file, or one that it names, cannot be read.
        """
        source = self.place.shown(self.file)
        try:
            text = self.skill.text() if self.skill is not None else self._text(source)
        except ToolError as error:
            raise UsageError(f"/{self.name}: {error}.", advice="Nothing was sent.") from error
        files = [*(self._files(text, directory) if self.skill is None else ()), *mentioned(argument, directory)]
        first = _RUN_FIRST if _RUNS.search(text) else ""
        message = (*words(f"Follow {source}: "), *argument) if argument else words(f"Follow {source}.")
        filled = first + with_arguments(text, text_of(argument), is_skill=self.skill is not None)
        return CalledPrompt(message, (Beside(source, filled, "attached"),), tuple(files))

    def _text(self, source: str) -> str:
        raw = self.place.read(self.file, MAX_SKILL_BYTES + 1)
        if len(raw) > MAX_SKILL_BYTES:
            raise ToolError(f"{source} is larger than {MAX_SKILL_BYTES:,} bytes")
        return split_front(clean_text(raw.decode("utf-8-sig", "replace")))[1].strip()

    def _files(self, text: str, directory: Path) -> tuple[Path, ...]:
        """A project's prompt cannot attach a file from outside of the project."""
        found = mentioned(words(text), directory)
        root = directory.resolve()
        return tuple(path for path in found if self.place.is_own or path.is_relative_to(root))


def find_prompts(directory: Path, own_folder: Path | None = None) -> dict[str, PromptCommand]:
    """All prompts by name. A skill wins over the person's own file of that name, and that over the project's.

    own_folder  where the person's settings are; None: where they usually are
    """
    own_folder = own_folder or user_config_file(os.environ).parent
    found: dict[str, PromptCommand] = {}
    skills, _ = find_skills(places(directory, own_folder, FOLDER))
    for skill in skills:
        if skill.is_called:
            found[skill.name] = PromptCommand(skill.name, skill.when, "", skill.place, skill.file, skill)
    for place in places(directory, own_folder, COMMANDS):
        for file in place.markdown_files():
            command = _described(place, file)
            if command is not None:
                # A second one of the name is still there with its folder, as `git:commit`.
                whole = ":".join(PurePosixPath(file).with_suffix("").parts)
                found.setdefault(whole if command.name in found else command.name, command)
    return found


def with_arguments(text: str, words: str, *, is_skill: bool = False) -> str:
    """The text with the words in their places, or after it where it has none.

    is_skill  `$0` is the first word where the text has it, as in Claude Code's skills; else `$1` is, as in its commands
    """
    try:
        split = shlex.split(words)
    except ValueError:
        split = words.split()
    first = 0 if is_skill and re.search(r"\$0(?!\d)", text) else 1

    def word(match: re.Match[str]) -> str:
        if match[1] is None and match[2] is None:
            return words
        place = natural(match[1]) if match[1] is not None else int(match[2]) - first
        return split[place] if place is not None and 0 <= place < len(split) else ""

    filled, count = _ARGUMENT.subn(word, text)
    return f"{filled}\n\nARGUMENTS: {words}" if words and not count else filled


def _described(place: Place, file: str) -> PromptCommand | None:
    """None if the file cannot be read or has a name that cannot be typed."""
    name = PurePosixPath(file).stem
    if not name.isprintable() or " " in name:
        return None
    try:
        found, body = place.front(file, MAX_SKILL_BYTES)
    except ToolError:
        return None
    found = found or {}
    first = next((line.strip("# ") for line in body.splitlines() if line.strip("# ")), "")
    about = front_line(found, "description") or first
    hint = front_line(found, "argument-hint")
    return PromptCommand(name, one_line(about, ABOUT_CHARS), one_line(hint, ABOUT_CHARS), place, file)
