"""The model that a session goes on with, because the person chose it with /model in that session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nca.config.loaded import LoadedSettings
from nca.config.overrides import Layer
from nca.models.choose import Choice, named
from nca.models.reasoning import split_level

_WHY = "set by /model in this session"


def choice_of_session(
    typed: str, loaded: LoadedSettings, env: Mapping[str, str]
) -> tuple[LoadedSettings, Choice] | None:
    """The settings and the model that a session goes on with; None if the settings decide.

    typed: what the person chose in the session (`SessionInfo.chosen_model`). A model that the environment or a flag
    names wins, for it was named for this start.
    """
    if not typed or loaded.base["model.name"].layer >= Layer.ENVIRONMENT:
        return None
    name, level = split_level(typed)
    if level and loaded.base["model.reasoning"].layer < Layer.ENVIRONMENT:
        loaded = loaded.with_value("model.reasoning", level, "/model in this session")
    choice = named(name, loaded.for_model(name).settings.model, env, why=_WHY)
    return loaded, replace(choice, is_named=True, is_remembered=True)
