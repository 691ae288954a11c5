"""Which model a session goes on with."""

from __future__ import annotations

from nca.config.layers import defaults, load
from nca.models.remembered import choice_of_session

ENV = {"OPENAI_API_KEY": "k", "HOME": "/nowhere"}


def test_the_model_that_was_chosen_in_it_with_its_level() -> None:
    found = choice_of_session("openai/gpt-5:high", defaults(), ENV)
    assert found is not None
    loaded, choice = found
    assert (choice.model, choice.api_key, choice.is_remembered) == ("openai/gpt-5", "k", True)
    assert loaded.settings.model.reasoning == "high"


def test_the_settings_decide_where_nothing_was_chosen_or_this_start_names_a_model() -> None:
    assert choice_of_session("", defaults(), ENV) is None
    for given in (
        {"flags": {"model.name": "openai/gpt-4.1"}, "env": ENV},
        {"env": {**ENV, "NCA_MODEL__NAME": "openai/gpt-4.1"}},
    ):
        assert choice_of_session("openai/gpt-5", load(project=None, **given), ENV) is None  # type: ignore[arg-type]
    file_wins_not = defaults().with_value("model.reasoning", "low", "here")
    found = choice_of_session("openai/gpt-5:high", file_wins_not, ENV)
    assert found is not None
    assert found[0].settings.model.reasoning == "low"
