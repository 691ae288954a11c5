"""What the model is told before the conversation."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from nca.config.schema import Settings
from nca.messages import clean_text


def system_prompt(settings: Settings, directory: Path) -> str:
    """The same text for a whole session, so that what a provider has cached of it stays valid."""
    text = settings.agent.system_prompt or _own().format(directory=directory)
    return clean_text(text).strip()


@cache
def _own() -> str:
    return files(__package__).joinpath("prompts/system.md").read_text(encoding="utf-8")
