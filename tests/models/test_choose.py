import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.config.layers import defaults, load
from nca.config.schema import ModelSettings
from nca.errors import ModelUnavailable
from nca.models.catalog import describe
from nca.models.choose import Choice, choice_of_session, choose, named, open_model
from nca.models.client import ProviderModel
from nca.models.embedded.known import QWEN, RUNTIME, SMOLLM
from nca.models.embedded.weights import models_dir
from nca.models.providers import PROVIDERS, LocalServer, find_servers, is_loopback
from nca.testing.provider import Provider

NOTHING = ModelSettings()
ROOT = Path(__file__).parents[2]
ENV = {"OPENAI_API_KEY": "k", "HOME": "/nowhere"}


class Doorbell:
    """A port that counts who rings."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.rings = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.rings += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def doorbell() -> Iterator[Doorbell]:
    bell = Doorbell()
    yield bell
    bell.close()


def _server(port: int, *, prefix: str = "openai", path: str = "/v1/models") -> LocalServer:
    base = f"http://127.0.0.1:{port}"
    return LocalServer("A server", base + path, prefix, base + "/v1")


def test_what_is_configured_wins_and_nobody_is_asked(doorbell: Doorbell) -> None:
    settings = ModelSettings(name="mistral/mistral-large-latest")
    choice = choose(settings, {"OPENAI_API_KEY": "o", "MISTRAL_API_KEY": "m"}, servers=[_server(doorbell.port)])
    assert (choice.model, choice.api_key, choice.api_key_variable) == (settings.name, "m", "MISTRAL_API_KEY")
    assert (choice.why, choice.is_named) == ("set by model.name", True)
    assert "m'" not in repr(choice)
    assert doorbell.rings == 0


@pytest.mark.parametrize(
    ("variable", "prefix"),
    [
        ("OPENAI_API_KEY", "openai/"),
        ("ANTHROPIC_API_KEY", "anthropic/"),
        ("GEMINI_API_KEY", "gemini/"),
        ("GOOGLE_API_KEY", "gemini/"),
        ("MISTRAL_API_KEY", "mistral/"),
        ("OPENROUTER_API_KEY", "openrouter/"),
        ("GROQ_API_KEY", "groq/"),
        ("DEEPSEEK_API_KEY", "deepseek/"),
        ("XAI_API_KEY", "xai/"),
    ],
)
def test_a_key_decides_and_nobody_is_asked(variable: str, prefix: str, doorbell: Doorbell) -> None:
    choice = choose(NOTHING, {variable: " key "}, servers=[_server(doorbell.port)])
    assert choice.model.startswith(prefix)
    assert (choice.api_key, choice.api_key_variable) == ("key", variable)
    assert variable in choice.why
    assert doorbell.rings == 0


def test_other_keys_are_alternatives() -> None:
    choice = choose(NOTHING, {"GROQ_API_KEY": "g", "OPENAI_API_KEY": "o"}, servers=[])
    assert choice.model == PROVIDERS["openai"].model
    assert choice.alternatives == (PROVIDERS["groq"].model,)


@pytest.mark.parametrize("facts", [facts for facts in PROVIDERS.values() if facts.model], ids=lambda facts: facts.name)
def test_every_chosen_model_is_known_and_able(facts: object) -> None:
    known = describe(PROVIDERS[facts.name].model)  # type: ignore[attr-defined]
    assert known.window_source.startswith("litellm's entry")
    assert known.can_use_tools
    assert known.window_tokens >= 100_000


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_an_endpoint_in_the_environment_is_asked_for_its_model(variable: str) -> None:
    with Provider(models=["their-model"]) as provider:
        choice = choose(NOTHING, {variable: provider.url, "OPENAI_API_KEY": "k"}, servers=[])
    assert (choice.model, choice.api_base, choice.api_key) == ("openai/their-model", provider.url, "k")
    assert variable in choice.why


@pytest.mark.parametrize(
    ("name", "model", "base"),
    [
        ("gpt-4o", "openai/gpt-4o", "http://there/v1"),
        ("openai/gpt-4o", "openai/gpt-4o", "http://there/v1"),
        ("their-model", "openai/their-model", "http://there/v1"),
        ("their/model", "openai/their/model", "http://there/v1"),
        ("groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-120b", ""),
        ("claude-sonnet-4-5", "claude-sonnet-4-5", ""),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro", ""),
        ("gemini-99-new", "gemini/gemini-99-new", ""),
        ("embedded/smollm2-135m", "embedded/smollm2-135m", ""),
    ],
)
def test_openais_address_is_for_openais_models_and_unknown_ones(name: str, model: str, base: str) -> None:
    choice = named(name, NOTHING, {"OPENAI_API_BASE": "http://there/v1"})
    assert (choice.model, choice.api_base) == (model, base)


def test_a_configured_address_is_for_every_model() -> None:
    settings = ModelSettings(api_base="http://there/v1")
    assert named("anything", settings, {}).model == "openai/anything"
    assert named("gemini-2.5-pro", settings, {}).model == "openai/gemini-2.5-pro"
    assert named("mistral/x", settings, {}) == Choice(
        "mistral/x", "http://there/v1", "", "MISTRAL_API_KEY", "chosen", is_named=True
    )
    assert named("gpt-4o", NOTHING, {}).model == "gpt-4o"


def test_a_local_server_that_answers_is_taken() -> None:
    with Provider(models=["nomic-embed-text", "qwen3:8b", "llama3"]) as provider:
        closed = _server(1)
        ollama = _server(provider.port, prefix="ollama_chat", path="/api/tags")
        choice = choose(NOTHING, {}, servers=[closed, ollama, _server(provider.port)])
    assert choice.model == "ollama_chat/qwen3:8b"
    assert choice.alternatives == ("ollama_chat/llama3", "openai/qwen3:8b")
    assert choice.api_key_variable == ""


def test_a_server_that_does_not_speak_is_not_there(doorbell: Doorbell) -> None:
    assert find_servers([_server(doorbell.port), _server(1)]) == []
    assert doorbell.rings == 1


def test_at_last_there_is_the_embedded_model(tmp_path: Path) -> None:
    env = {"NCA_HOME": str(tmp_path), "NCA_EMBEDDED": "smollm2-135m"}
    choice = choose(NOTHING, env, servers=[])
    assert (choice.model, choice.is_embedded, choice.api_key_variable) == ("embedded/smollm2-135m", True, "")
    assert "nca models get" in choice.why
    installed = models_dir(env) / QWEN.filename
    installed.parent.mkdir(parents=True)
    installed.touch()
    os.truncate(installed, QWEN.size_bytes)
    assert choose(NOTHING, env, servers=[]).model == choice.model, "it was named"


async def test_a_missing_key_is_said_before_a_request() -> None:
    with pytest.raises(ModelUnavailable, match="MISTRAL_API_KEY is not set"):
        await open_model(named("mistral/mistral-large-latest", NOTHING, {}), defaults())


def test_a_bare_gemini_has_the_key_of_gemini() -> None:
    choice = named("gemini-2.5-pro", NOTHING, {"GEMINI_API_KEY": "g"})
    assert (choice.api_key, choice.api_key_variable) == ("g", "GEMINI_API_KEY")


async def test_a_choice_opens_to_a_model() -> None:
    loaded = defaults().with_values({"model.context_window": 9_000, "model.api_base": "http://there/v1"}, "the test")
    model = await open_model("gpt-4o", loaded)
    assert isinstance(model, ProviderModel)
    assert (model.facts.name, model.facts.window_tokens) == ("openai/gpt-4o", 9_000)
    await model.close()


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434", True),
        ("http://[::1]:1234/v1", True),
        ("https://api.example.com/v1", False),
        ("http://localhost.example.com/v1", False),
        ("", False),
    ],
)
def test_a_proxy_is_not_asked_for_this_machine_itself(address: str, is_here: bool) -> None:
    assert is_loopback(address) is is_here


def test_who_has_weights_is_told_to_install_what_runs_them_and_no_download(tmp_path: Path) -> None:
    env = {"NCA_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    models_dir(env).mkdir(parents=True)
    with (models_dir(env) / SMOLLM.filename).open("wb") as file:
        file.truncate(SMOLLM.size_bytes)
    code = (
        f"import os, sys; sys.modules[{RUNTIME!r}] = None\n"
        "from nca.config.schema import ModelSettings; from nca.models.choose import choose, require_usable\n"
        "require_usable(choose(ModelSettings(), os.environ, servers=()), os.environ)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "nca.errors.ModelUnavailable: The embedded model's runtime is not installed. Install it: "
    )
    assert "nca models get" not in done.stderr


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
