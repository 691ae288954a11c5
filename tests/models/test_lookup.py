"""The name of a model is looked up before it is used, and offline nothing that may be right is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nca.config.loaded import defaults
from nca.config.schema import ModelSettings
from nca.errors import ModelNotFound
from nca.models import price_map
from nca.models.catalog import FROM_LIST, describe
from nca.models.choose import named, open_model
from nca.models.lookup import look_up, require_provider, served_beside, with_provider
from nca.models.providers import PROVIDERS, list_windows, window_list
from nca.testing.provider import LoopbackHandler, LoopbackProvider, Provider


def caution(name: str, api_base: str = "") -> str:
    choice = named(name, ModelSettings(api_base=api_base), {})
    return look_up(choice.model, choice.api_base, choice.api_key)


def test_an_endpoint_of_one_s_own_says_what_it_has() -> None:
    with Provider(
        lambda request: "", models=("qwen3:latest", "org/model-7b", "proxied/*"), listed={"max_model_len": 4_096}
    ) as endpoint:
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
        assert [one.window_tokens for one in offered] == [4_096, 4_096]
        endpoint.models = ()
        assert caution("zzz", endpoint.url) == ""
    assert caution("zzz", endpoint.url) == "", "it may answer later"


@pytest.mark.parametrize(
    ("listed", "tokens"),
    [
        ({"max_model_len": 32_768}, 32_768),
        ({"meta": {"n_ctx_train": 131_072, "n_ctx": 8_192}}, 8_192),
        ({"meta": {"n_ctx_train": 40_960}}, 40_960),
        ({"max_context_length": 32_768, "loaded_context_length": 4_096}, 4_096),
        ({"context_length": 100_000}, 100_000),
        ({"context_length": None, "context_window": 131_072}, 131_072),
        ({"context_length": "much", "max_model_len": True, "meta": []}, 0),
        ({"context_length": -1}, 0),
    ],
)
async def test_the_window_is_the_one_that_the_endpoint_lists(listed: dict[str, Any], tokens: int) -> None:
    with Provider(models=("qwen3", "gpt-4o"), listed=listed) as endpoint:
        loaded = defaults().with_value("model.api_base", endpoint.url, "the test")
        for name in ("qwen3", "gpt-4o"):
            model = await open_model(name, loaded)
            known = describe(f"openai/{name}")
            source = FROM_LIST if tokens else known.window_origin
            assert (model.facts.window_tokens, model.facts.window_origin) == (tokens or known.window_tokens, source)
            assert model.facts.is_window_guess is (name == "qwen3" and not tokens)
            await model.close()
            by_person = await open_model(name, loaded.with_value("model.context_window", 9_000, "the test"))
            assert (by_person.facts.window_tokens, by_person.facts.window_origin) == (9_000, "")
            await by_person.close()
        assert not endpoint.requests


async def test_lm_studio_says_the_window_that_a_model_was_loaded_with() -> None:
    """Its OpenAI-compatible list says none, and it loads models with a few thousand tokens."""
    with Provider(models=("qwen3",), listed={"loaded_context_length": 4_096}) as endpoint:
        model = await open_model("lm_studio/qwen3", defaults().with_value("model.api_base", endpoint.url, "the test"))
        assert model.facts.window_in_words == "4,096 tokens (from the endpoint's list)"
        await model.close()
    assert window_list("lm_studio", "http://host:1234/v1") == "http://host:1234/api/v0/models"
    assert window_list("openai", "http://host:1234/v1/") == "http://host:1234/v1/models"


async def test_an_endpoint_that_lists_nothing_leaves_what_is_known() -> None:
    with Provider(models=("other",), listed={"max_model_len": 9_000}) as endpoint:
        loaded = defaults().with_value("model.api_base", endpoint.url, "the test")
        models = [await open_model("qwen3", loaded)]
    models.append(await open_model("qwen3", loaded))
    for model in models:
        assert model.facts.window_in_words == "128,000 tokens (assumed)"
        await model.close()


class _Proxy(LoopbackHandler):
    def do_CONNECT(self) -> None:  # noqa: N802 - the name that http.server calls
        self.on_get()

    def on_get(self) -> None:
        self.server.provider.asked.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        body = json.dumps({"data": [{"id": "far", "max_model_len": 9_000}]}).encode()
        self.send_response(200 if self.command == "GET" else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Proxies(LoopbackProvider):
    asked: list[tuple[str, str, str | None]]


def test_a_list_is_asked_for_through_the_proxy_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, each start waited for a connection that a company's network does not make."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    proxy = Proxies(_Proxy)
    proxy.asked = []
    with proxy, Provider(models=("near",)) as endpoint:
        monkeypatch.setenv("ALL_PROXY", f"http://me:se%20cret@127.0.0.1:{proxy.port}")
        assert list_windows("http://models.invalid/v1/models") == {"far": 9_000}
        assert list_windows("https://models.invalid/v1/models") == {}
        assert list_windows(f"{endpoint.url}/models") == {"near": 0}, "this machine needs no proxy"
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
        assert list_windows("http://models.invalid/v1/models") == {}
    password = "Basic bWU6c2UgY3JldA=="
    assert proxy.asked == [
        ("GET", "http://models.invalid/v1/models", password),
        ("CONNECT", "models.invalid:443", password),
    ]


def test_without_an_endpoint_the_nearest_known_names_are_said() -> None:
    assert caution("openai/gpt-4.1") == caution("embedded/nothing") == ""
    assert "Did you mean openai/gpt-4.1-mini" in caution("openai/gpt-4.1-mni")
    assert caution("no-provider-of-ours/zzz") == "nca does not know this model."
    for nobody in ("nosuch", "zzzzzz", "…"):
        with pytest.raises(ModelNotFound, match="No provider is known") as refused:
            require_provider(nobody, "")
        assert refused.value.advice


def _of_several() -> tuple[str, list[str]]:
    """A bare name that the map has for several providers, and none of them is litellm's own choice."""
    known = price_map.load()
    for name in sorted({one.partition("/")[2] for one in known if "/" in one}):
        served = [full for provider in PROVIDERS if (full := f"{provider}/{name}") in known]
        if len(served) > 1 and name not in known and "/" not in name and not name.startswith("gemini-"):
            return name, served
    raise AssertionError("the map has none")


def test_a_bare_name_is_taken_for_the_one_provider_that_has_it() -> None:
    assert with_provider("mistral-medium-latest", {}) == "mistral/mistral-medium-latest"
    assert named("mistral-medium-latest", ModelSettings(), {"MISTRAL_API_KEY": "m"}).api_key == "m"
    assert named("mistral-medium-latest", ModelSettings(api_base="http://there/v1"), {}).model.startswith("openai/")
    for taken in ("gpt-4.1", "claude-sonnet-4-5", "nosuch", "openai/mistral-medium-latest"):
        assert with_provider(taken, {}) == taken


def test_a_bare_name_of_several_providers_is_taken_for_the_one_whose_key_is_set() -> None:
    name, served = _of_several()
    with pytest.raises(ModelNotFound) as refused:
        require_provider(with_provider(name, {}), "")
    assert refused.value.message == f"Several providers have a model {name!r}."
    assert refused.value.advice == f"Name one: {' or '.join(served)}."
    key = PROVIDERS[served[1].partition("/")[0]].key_variables[0]
    assert with_provider(name, {key: "k"}) == served[1]


def test_a_family_leads_to_its_models_the_usual_first() -> None:
    with pytest.raises(ModelNotFound, match="Did you mean anthropic/claude-sonnet-5-5 or anthropic/claude-sonnet-"):
        require_provider("sonnet", "")
