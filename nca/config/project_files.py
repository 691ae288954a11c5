"""The files of a project's settings: those of other agents, `.claude/settings.json` and `.nca/config.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nca.config.claude_settings import claude_documents
from nca.config.document import Document, read_document
from nca.config.other_agents import server_documents
from nca.config.paths import project_config_file


def read_project(directory: Path, env: Mapping[str, str]) -> tuple[list[Document], list[str]]:
    """The documents of a project, the later ones more important, and notes. Raises ConfigError for nca's own file."""
    notes: list[str] = []
    own = read_document(project_config_file(directory))
    found = [*server_documents(directory, notes), *claude_documents(directory, env, notes, is_own=False)]
    return [*found, own] if own is not None else found, notes
