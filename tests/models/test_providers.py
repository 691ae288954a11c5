"""Providers of models, and which environment variables hold keys."""

from __future__ import annotations

from nca.models.providers import known_secrets


def test_keys_are_found_by_provider_and_by_name() -> None:
    env = {
        "OPENAI_API_KEY": " sk-1 ",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "hf",
        "MY_DB_PASSWORD": "pw",
        "GEMINI_API_KEY": "",
        "GOOGLE_APPLICATION_CREDENTIALS": "/a/file.json",
        "HOME": "/home/me",
        "TOKENIZER": "x",
    }
    assert known_secrets(env) == {
        "OPENAI_API_KEY": "sk-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "hf",
        "MY_DB_PASSWORD": "pw",
    }
