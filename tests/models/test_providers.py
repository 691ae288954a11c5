"""Providers of models, and which environment variables hold keys."""

from __future__ import annotations

from nca.models.providers import LOCAL_SERVERS, known_secrets, start_of


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


def test_a_server_is_started_as_its_provider_or_its_port_says() -> None:
    assert start_of("hosted_vllm", "http://gpu.example:1") == "vllm serve MODEL"
    for server in LOCAL_SERVERS:
        assert start_of("openai", server.api_base) == server.start
    assert start_of("openai", "http://127.0.0.1:1") == ""
