import pytest

from nca.messages import Usage
from nca.models import price_map
from nca.models.catalog import FROM_ERROR, MODEL_WINDOWS, ModelFacts, cost_of, describe


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-4", 8_192),
        ("GPT-4o", 128_000),
        ("openai/gpt-4o-2099-01-01", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("openrouter/anthropic/claude-sonnet-4.5", 200_000),
        ("anthropic/claude-sonnet-4-5-20991231", 200_000),
        ("claude-3-5-sonnet-latest", 200_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("ollama/llama3:8b", 8_192),
        ("o1-mini", 128_000),
        ("gemini/gemini-2.5-flash", 1_048_576),
        ("google-ai/gemini-1.5-pro", 2_097_152),
    ],
)
def test_the_window_of_a_known_model(name: str, window: int) -> None:
    facts = describe(name)
    assert facts.window_tokens == window
    assert not facts.window_is_assumed


def test_a_version_with_a_dot_is_another_model() -> None:
    # gpt-4 has 8,192 tokens; nothing of it may be said of an unknown gpt-4.x.
    assert describe("gpt-4.9").window_tokens == 128_000
    assert describe("gpt-4.9").window_is_assumed


def test_an_unknown_model_of_a_known_provider_has_its_default() -> None:
    facts = describe("mistral/some-new-one")
    assert (facts.window_tokens, facts.window_is_assumed) == (128_000, False)
    assert describe("huggingface/some/model").window_tokens == 32_000


def test_an_unknown_model_is_assumed_and_says_so() -> None:
    facts = describe("my-own-model")
    assert (facts.window_tokens, facts.window_is_assumed, facts.can_use_tools) == (128_000, True, True)
    assert (facts.input_cost, facts.max_output_tokens) == (None, None)
    # Not any more where its window was told, even if that is the one that was assumed.
    for window in (9_000, 128_000):
        told = facts.with_window(window, FROM_ERROR)
        assert (told.window_tokens, told.is_window_guess, told.window_origin) == (window, False, FROM_ERROR)


def test_an_embedding_model_is_not_a_chat_model() -> None:
    assert describe("text-embedding-3-small").window_is_assumed


def test_the_persons_word_wins() -> None:
    facts = describe("gpt-4", context_window=32_000)
    assert (facts.window_tokens, facts.window_source) == (32_000, "model.context_window")
    assert facts.max_output_tokens == 4_096


def test_prices_belong_to_the_seller() -> None:
    assert describe("gpt-4o").input_cost == pytest.approx(2.5e-06)
    assert describe("openai/gpt-4o").input_cost == pytest.approx(2.5e-06)
    assert describe("some_gateway/gpt-4o").input_cost is None
    assert describe("ollama/qwen3:8b").input_cost == 0.0


NEUROLINKS = {
    200_000: (
        *("claude-opus-4-20250514", "claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219"),
        *("claude-3-5-sonnet-20241022", "claude-3-5-haiku-20241022", "claude-3-opus-20240229"),
        *("claude-3-sonnet-20240229", "claude-3-haiku-20240307", "o1", "o1-pro", "o3", "o3-mini", "o4-mini"),
        *("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic.claude-3-5-haiku-20241022-v1:0"),
        *("anthropic.claude-3-opus-20240229-v1:0", "anthropic.claude-3-sonnet-20240229-v1:0"),
    ),
    128_000: ("gpt-4o", "gpt-4o-mini", "gpt-4-turbo", "o1-mini"),
    8_192: ("gpt-4",),
    16_385: ("gpt-3.5-turbo",),
    1_047_576: ("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"),
    1_048_576: ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3-pro-preview"),
    300_000: ("amazon.nova-pro-v1:0", "amazon.nova-lite-v1:0"),
}
"""Windows of NeuroLink's registry that litellm's price map has too, and that are not repeated in nca."""


@pytest.mark.parametrize("name", MODEL_WINDOWS)
def test_a_model_that_the_map_lacks_has_its_window(name: str) -> None:
    assert (describe(name).window_tokens, describe(name).window_is_assumed) == (MODEL_WINDOWS[name], False)


@pytest.mark.parametrize("window", NEUROLINKS)
def test_the_map_has_the_windows_that_are_not_repeated(window: int) -> None:
    assert {name: describe(name).window_tokens for name in NEUROLINKS[window]} == dict.fromkeys(
        NEUROLINKS[window], window
    )


def test_the_map_is_read_without_importing_litellm() -> None:
    path = price_map.locate()
    assert path is not None
    assert path.name == price_map.FILE_NAME
    assert len(price_map.load()) > 1_000


def test_cost_counts_cached_tokens_at_their_own_price() -> None:
    facts = ModelFacts("m", input_cost=2.0, output_cost=10.0, cache_read_cost=0.5, cache_write_cost=3.0)
    usage = Usage(prompt_tokens=10, completion_tokens=2, cache_read_tokens=4, cache_write_tokens=1)
    assert cost_of(facts, usage) == 5 * 2.0 + 4 * 0.5 + 1 * 3.0 + 2 * 10.0
    assert cost_of(ModelFacts("m"), usage) is None


def test_whether_a_model_takes_images_is_looked_up() -> None:
    assert not describe("openai/of-my-own").can_see
    assert describe("openai/gpt-4o").can_see


def test_a_provider_s_usual_window_is_told_from_a_known_one() -> None:
    assert describe("openai/of-my-own").is_window_guess
    assert not describe("openai/of-my-own", context_window=9_000).is_window_guess
    assert not describe("openai/gpt-4o").is_window_guess
