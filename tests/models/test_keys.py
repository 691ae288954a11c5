"""Keys that the person stored: private, below the environment, and never replaced unread."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nca.config.paths import keys_file
from nca.errors import ConfigError
from nca.models import keys
from nca.models.providers import known_secrets, provider_keys

KEY, OTHER = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa", "sk-ant-api03-bbbbbbbbbbbbbbbbbbbb"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"NCA_HOME": str(tmp_path)}


def test_a_key_comes_and_goes_and_the_others_stay(env: dict[str, str]) -> None:
    keys.save(env, "ANTHROPIC_API_KEY", KEY)
    keys.save(env, "GROQ_API_KEY", OTHER)
    assert stat.S_IMODE(keys_file(env).stat().st_mode) == 0o600
    assert keys.stored(env) == {"ANTHROPIC_API_KEY": KEY, "GROQ_API_KEY": OTHER}
    assert keys.remove(env, "ANTHROPIC_API_KEY")
    assert not keys.remove(env, "ANTHROPIC_API_KEY")
    assert keys.stored(env) == {"GROQ_API_KEY": OTHER}


def test_a_stored_key_is_used_as_if_its_variable_were_set(env: dict[str, str]) -> None:
    keys.save(env, "ANTHROPIC_API_KEY", KEY)
    keys.use(env)
    assert env["ANTHROPIC_API_KEY"] == KEY
    assert keys.origin("ANTHROPIC_API_KEY", env) == "stored (nca keys)"
    # Commands do not get it, and it is redacted.
    assert provider_keys(env) == known_secrets(env) == {"ANTHROPIC_API_KEY": KEY}
    keys.save(env, "ANTHROPIC_API_KEY", OTHER)
    keys.use(env)
    assert env["ANTHROPIC_API_KEY"] == OTHER


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_the_environment_wins(env: dict[str, str], variable: str) -> None:
    keys.save(env, "GEMINI_API_KEY", KEY)
    env[variable] = OTHER
    keys.use(env)
    assert {name: value for name, value in env.items() if name.endswith("_API_KEY")} == {variable: OTHER}
    assert keys.origin(variable, env) == "in the environment"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"keys": 5}', b"\xff\xff", b"[" * 100_000])
def test_a_file_that_cannot_be_read_is_left_and_named(env: dict[str, str], content: bytes) -> None:
    path = keys_file(env)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for act in (keys.stored, keys.use, lambda env: keys.save(env, "GROQ_API_KEY", KEY)):
        with pytest.raises(ConfigError, match="Remove the file"):
            act(env)
    assert path.read_bytes() == content


def test_only_known_variables_are_set(env: dict[str, str]) -> None:
    path = keys_file(env)
    path.parent.mkdir(parents=True)
    path.write_text('{"keys": {"PATH": "/tmp/of-somebody", "LD_PRELOAD": "/tmp/x.so.8", "GROQ_API_KEY": 5}}')
    before = dict(env)
    keys.use(env)
    assert env == before


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        (KEY, "anthropic"),
        ("sk-or-v1-0123456789", "openrouter"),
        ("sk-proj-0123456789", "openai"),
        ("sk-0123456789", ""),
    ],
)
def test_a_key_may_say_whose_it_is(key: str, provider: str) -> None:
    assert keys.is_key(key)
    assert keys.provider_by(key) == provider


@pytest.mark.parametrize(
    "text", ["", "short", "two words here", "schlüssel-123", "tab\tinside-it", "x" * 2_000, "anthropic"]
)
def test_what_cannot_be_a_key(text: str) -> None:
    assert not keys.is_key(text)
