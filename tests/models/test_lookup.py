"""The name of a model is looked up before it is used, and offline nothing that may be right is refused."""

from __future__ import annotations

import pytest

from nca.config.schema import ModelSettings
from nca.errors import ModelNotFound
from nca.models.choose import named
from nca.models.lookup import look_up, require_provider, served_beside
from nca.testing.provider import Provider


def caution(name: str, api_base: str = "") -> str:
    choice = named(name, ModelSettings(api_base=api_base), {})
    return look_up(choice.model, choice.api_base, choice.api_key)


def test_an_endpoint_of_one_s_own_says_what_it_has() -> None:
    with Provider(lambda request: "", models=("qwen3:latest", "org/model-7b", "proxied/*")) as endpoint:
        for known in ("qwen3", "qwen3:latest", "openai/org/model-7b", "org/model-7b", "proxied/any"):
            assert caution(known, endpoint.url) == ""
        with pytest.raises(ModelNotFound, match="lists no model org/model-8b") as near:
            caution("org/model-8b", endpoint.url)
        anyway = "To use it anyway: nca loop --continue -m openai/"
        assert near.value.advice == f"Did you mean org/model-7b? {anyway}org/model-8b"
        with pytest.raises(ModelNotFound) as far:
            caution("zzz", endpoint.url)
        assert far.value.advice == f"It lists qwen3:latest, org/model-7b, proxied/*. {anyway}zzz"
        offered = served_beside("openai/qwen3", endpoint.url, "")
        assert [one.name for one in offered] == ["openai/qwen3:latest", "openai/org/model-7b"]
        endpoint.models = ()
        assert caution("zzz", endpoint.url) == ""
    assert caution("zzz", endpoint.url) == "", "it may answer later"


def test_without_an_endpoint_the_nearest_known_names_are_said() -> None:
    assert caution("openai/gpt-4.1") == caution("embedded/nothing") == ""
    assert "Did you mean openai/gpt-4.1-mini" in caution("openai/gpt-4.1-mni")
    assert caution("no-provider-of-ours/zzz") == "nca does not know this model."
    for nobody in ("nosuch", "zzzzzz"):
        with pytest.raises(ModelNotFound, match="No provider is known") as refused:
            require_provider(nobody, "")
        assert refused.value.advice
