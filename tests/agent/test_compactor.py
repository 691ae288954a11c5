"""The compactor on its own: what it asks the model for a summary."""

from __future__ import annotations

import pytest

from nca.agent.compactor import Compactor
from nca.agent.window import Window
from nca.config.loaded import defaults
from nca.context.tokens import message_tokens
from nca.models.catalog import ModelFacts
from nca.models.client import Model
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.wire import message_from_dict
from tests.context.samples import talk

FACTS = ModelFacts("scripted/model", "scripted", 32_000)


@pytest.mark.parametrize(("learned", "summarizer", "limit"), [(4_000, "", 4_000), (0, "openai/gpt-4", 8_192)])
async def test_a_question_fits_the_window_as_it_is_known_by_now(learned: int, summarizer: str, limit: int) -> None:
    store, model = Store.open(None), ScriptedModel(["", ""], facts=FACTS)

    async def opened(_: str) -> Model:
        return model

    loaded = defaults().with_values({"model.summarizer": summarizer} if summarizer else {}, "the test")
    session = store.create(directory="/", model=FACTS.name)
    window = Window(store, session, loaded, FACTS, system_prompt="You are a test.")
    window.append(*talk(400))
    window.learn_window(learned)
    outcome = await Compactor(window, model, lambda _: None, opened, lambda _: None).compact("manual")
    assert outcome.compacted
    assert len(model.requests) == 2
    for request in model.requests:
        tokens = sum(message_tokens(message_from_dict(row)) for row in request.messages)
        assert 1_000 < window.meter.scaled(tokens) <= limit
