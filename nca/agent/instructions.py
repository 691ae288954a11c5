"""What the model is told before the conversation."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from nca.config.schema import Settings
from nca.config.tables import Section
from nca.errors import ConfigError
from nca.messages import clean_text
from nca.tools.tool import ToolError
from nca.tools.workspace import Workspace

MAX_FILE_BYTES = 128 * 1024
"""A section's file is sent with every request; what is larger than this belongs into an attachment."""


def system_prompt(settings: Settings, directory: Path) -> str:
    """The same text for a whole session, so that what a provider has cached of it stays valid.

    Raises ConfigError for a section whose file cannot be used.
    """
    text = settings.agent.system_prompt or _own().format(directory=directory)
    rendered = render_sections(settings.context.section, directory)
    return clean_text("\n\n".join(part for part in (text.strip(), rendered) if part))


def render_sections(sections: tuple[Section, ...], directory: Path) -> str:
    """`## Label` and its text for each section, lower priority first, equals in their order (seed 4)."""
    ordered = sorted(sections, key=lambda section: section.priority)
    return "\n\n".join(f"## {section.label}\n{_text_of(section, directory).strip()}" for section in ordered)


def _text_of(section: Section, directory: Path) -> str:
    if not section.file:
        return section.text
    try:
        path = _path_of(section.file, directory)
        if path.is_dir():
            raise _unusable(section, f"{section.file} is a directory")
        with Workspace(directory).open(path, section.file) as file:
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


def _path_of(name: str, directory: Path) -> Path:
    """A relative name stays inside the directory, wherever its links lead. Raises ToolError where it does not.

    An absolute one comes from the person's own settings: a project's file cannot give it.
    """
    path = Path(name).expanduser()
    return Path(os.path.realpath(path)) if path.is_absolute() else Workspace(directory).resolve(name)


def _unusable(section: Section, why: str) -> ConfigError:
    return ConfigError(f"[[context.section]] {section.label}: {why}.", advice="Mend the file's name or the section.")


@cache
def _own() -> str:
    return files(__package__).joinpath("prompts/system.md").read_text(encoding="utf-8")
