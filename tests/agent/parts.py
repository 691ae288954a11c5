"""Parts of a conversation, built separately for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nca.agent.archive import Archive
from nca.agent.background import Background
from nca.agent.context import Context
from nca.agent.fallbacks import Fallbacks
from nca.agent.instructions import SystemPrompt
from nca.agent.memory import Memory
from nca.agent.state import SessionState
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.events import Listener, Listeners
from nca.models.catalog import ModelFacts
from nca.models.model import Model
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.toolbox import Toolbox


class FixedTools(Toolbox):
    """Offers these definitions, whatever the budget."""

    def __init__(self, definitions: Sequence[dict[str, Any]]) -> None:
        super().__init__()
        self._definitions = list(definitions)

    def definitions(self, budget_tokens: int | None = None) -> list[dict[str, Any]]:
        return self._definitions


class OnlyModel:
    """Opens this model under any name; without one, nothing may be opened."""

    def __init__(self, model: Model | None = None) -> None:
        self._model = model

    async def open(self, name: str) -> Model:
        if self._model is None:
            raise AssertionError(f"nobody asked for {name}")
        return self._model


def window_of(
    store: Store,
    session: Session,
    loaded: LoadedSettings,
    facts: ModelFacts,
    prompt: str = "You are a test.",
    tools: Sequence[dict[str, Any]] = (),
) -> Window:
    return Window(SessionState(store, session, loaded, facts), FixedTools(tools), lambda *_: SystemPrompt(prompt))


def compactor_of(
    window: Window, model: Model, emit: Listener | None = None, opener: OnlyModel | None = None
) -> Background:
    emit = emit or Listeners().emit
    models = Fallbacks(model, (opener or OnlyModel()).open, window.use_model, emit)
    return Background(window, models, emit, None, prepares=False)


def context_of(window: Window, compactor: Background | None = None) -> Context:
    compactor = compactor or compactor_of(window, ScriptedModel([], facts=window.facts))
    archive = Archive(window.state, Memory(window.state, Path("/nowhere")))
    return Context(window, compactor, archive)
