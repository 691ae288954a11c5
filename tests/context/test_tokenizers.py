"""Whose tokenizer a model has, by its name."""

from __future__ import annotations

import pytest

from nca.context.calibration import Calibration
from nca.context.tokenizers import CL100K, CLAUDE, MISTRAL, NEW_CLAUDE, O200K, OTHER, Tokenizer, tokenizer_of


@pytest.mark.parametrize(
    ("provider", "model", "tokenizer"),
    [
        ("", "", O200K),
        ("openai", "", O200K),
        ("azure", "azure/gpt-5", O200K),
        ("openai", "openai/gpt-4o-mini", O200K),
        ("openai", "openai/gpt-4.1", O200K),
        ("openai", "gpt-4.5-preview", O200K),
        ("openrouter", "openrouter/openai/o3-mini", O200K),
        ("openai", "gpt-4", CL100K),
        ("openai", "gpt-4-turbo", CL100K),
        ("azure", "azure/gpt-35-turbo", CL100K),
        ("openai", "gpt-3.5-turbo-0125", CL100K),
        ("openai", "openai/a-model-of-my-own", OTHER),
        ("anthropic", "", CLAUDE),
        ("anthropic", "claude-3-5-sonnet-20241022", CLAUDE),
        ("anthropic", "claude-sonnet-4-20250514", CLAUDE),
        ("anthropic", "claude-opus-4-6", CLAUDE),
        ("anthropic", "claude-opus-4-7", NEW_CLAUDE),
        ("anthropic", "claude-sonnet-5", NEW_CLAUDE),
        ("bedrock", "bedrock/us.anthropic.claude-sonnet-4", CLAUDE),
        ("bedrock", "bedrock/anthropic.claude-opus-4-5-20251101-v1:0", CLAUDE),
        ("mistral", "mistral/large", MISTRAL),
        ("codestral", "codestral/codestral-latest", MISTRAL),
        ("ollama", "ollama/mixtral", MISTRAL),
        ("gemini", "gemini/gemini-2.5-pro", OTHER),
        ("deepseek", "deepseek/deepseek-chat", OTHER),
    ],
)
def test_a_tokenizer_belongs_to_the_model_and_not_to_who_serves_it(
    provider: str, model: str, tokenizer: Tokenizer
) -> None:
    assert tokenizer_of(provider, model) == tokenizer == Calibration.unlearned(provider, model).tokenizer
    assert Calibration.unlearned(provider, model, count_as="mistral").tokenizer == MISTRAL


@pytest.mark.parametrize("tokenizer", [O200K, CL100K, CLAUDE, NEW_CLAUDE, MISTRAL, OTHER])
def test_only_an_exact_tokenizer_is_trusted_without_a_margin(tokenizer: Tokenizer) -> None:
    assert (tokenizer.factor == 1) == tokenizer.is_exact
