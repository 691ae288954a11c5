import pytest

from nca.config.schema import ModelSettings
from nca.errors import ModelUnavailable, ProviderError, install_command
from nca.models.catalog import describe
from nca.models.client import ModelRequest, ProviderModel
from nca.models.explain import BrokenStream, EmptyAnswer, explain
from nca.models.failures import NO_SERVER_TRIES, PassingFailure


class Refused(Exception):
    """An error as the openai package has them."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "said", "advice"),
    [
        (Refused(401, "bad key"), "The API key for mistral/m was rejected at http://there/v1", "MISTRAL_API_KEY"),
        (Refused(401, "No such key."), "rejected at http://there/v1 (No such key).", "MISTRAL_API_KEY"),
        (Refused(403, "not for you"), "The API key has no access to mistral/m", "--model"),
        (Refused(404, "model 'm' not found"), "The model mistral/m was not found", "--model"),
        (Refused(402, "pay"), "no credit", "billing"),
        (Refused(400, "The prompt is too long: 9 tokens > 8 maximum"), "does not fit", "/compact"),
        (
            Refused(400, "max_tokens is too large: 9. This model supports at most 8 completion tokens"),
            "does not allow that many output tokens",
            "model.max_output_tokens",
        ),
        (Refused(400, "roles must alternate"), "rejected the structure of the conversation", "/compact"),
        (Refused(413, "Request Entity Too Large"), "too large in bytes", "attachments"),
        (Refused(400, "temperature is odd"), "mistral/m rejected the request (status 400)", "--model"),
        (Refused(429, "slow down"), "The rate limit of mistral/m is reached (status 429)", "later"),
        (Refused(503, "try again in 2 hours"), "mistral/m is temporarily unavailable (status 503)", "2 hours"),
        (EmptyAnswer(), "sent an empty answer", "--model"),
        (EmptyAnswer("<html>Sign in</html>"), "does not speak the chat protocol", "model.api_base"),
        (ConnectionResetError(), "The connection to mistral/m was lost", "later"),
        (Refused(429, "Request too large on tokens per min (TPM): Limit 3, Requested 9"), "alone exceeds", "/compact"),
        (Refused(413, "Request too large on tokens per min (TPM): Limit 3, Requested 9"), "alone", "context_window 3 "),
        (Refused(400, "content_filter"), "rejected the request", "--model"),
        (BrokenStream("The answer ended early."), "ended early", "Try again"),
        (TimeoutError("It sent nothing (model.idle_seconds)."), "model.idle_seconds", "nca config set"),
        (ConnectionRefusedError("[Errno 111]"), "Cannot connect to http://there/v1", "model.api_base"),
    ],
)
def test_every_failure_is_one_line_with_advice(error: Exception, said: str, advice: str) -> None:
    explained = explain(error, model="mistral/m", api_base="http://there/v1")
    assert said in explained.message
    assert advice in explained.advice
    assert "\n" not in str(explained)
    assert "/model" not in explained.advice  # the chat has it, and puts it in place of --model
    assert isinstance(explained, PassingFailure) == (explained.failure.action == "backoff")


def test_what_is_not_there_is_its_own_error() -> None:
    assert isinstance(explain(Refused(401, ""), model="m"), ModelUnavailable)
    assert isinstance(explain(Refused(404, ""), model="m"), ModelUnavailable)


@pytest.mark.parametrize(
    ("module", "package"), [("google.auth", "google-auth"), ("boto3", "boto3"), ("azure.identity", "azure-identity")]
)
def test_a_package_that_is_missing_here_is_no_error_of_the_provider(module: str, package: str) -> None:
    """litellm gives every error that it does not know the status 500."""
    error = Refused(500, f"litellm.APIConnectionError: No module named '{module}'")
    error.__context__ = ModuleNotFoundError(f"No module named '{module}'", name=module)
    explained = explain(error, model="vertex_ai/m")
    assert isinstance(explained, ModelUnavailable)
    assert not isinstance(explained, PassingFailure)
    assert explained.message == f"vertex_ai/m needs the Python package {package}, which is not installed."
    assert explained.advice == f"Install it: {install_command(package)}"


def test_a_providers_text_is_bounded_and_on_one_line() -> None:
    explained = explain(Refused(400, "word\n" * 1_000), model="m")
    assert len(str(explained)) < 300
    assert "\n" not in str(explained)


def test_a_key_in_a_providers_text_is_not_shown() -> None:
    key = "sk-test-1234567890abcdef1234"
    explained = explain(Refused(401, f"Incorrect API key provided: {key}. Look at your account."), model="openai/m")
    assert "Incorrect API key provided: [redacted]" in explained.message
    assert key not in f"{explained} {explained.failure.message}"


@pytest.mark.parametrize(
    ("env", "api_base", "variable"),
    [
        ({"http_proxy": "http://p"}, "http://there/v1", "http_proxy"),
        ({"HTTPS_PROXY": "http://p"}, "", "HTTPS_PROXY"),
        ({"ALL_PROXY": "socks5://p"}, "https://there/v1", "ALL_PROXY"),
        ({"https_proxy": "http://p"}, "http://there/v1", ""),
        ({"http_proxy": "http://p"}, "http://127.0.0.1:8/v1", ""),
        ({"http_proxy": "http://p", "no_proxy": "there"}, "http://there/v1", ""),
    ],
)
def test_the_proxy_that_stands_between_is_named(
    env: dict[str, str], api_base: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    explained = explain(ConnectionRefusedError(), model="mistral/m", api_base=api_base)
    assert (f"through the proxy of {variable}" in explained.message) == bool(variable)
    assert variable in explained.advice


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "what://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://127.0.0.1:99999"),
        ("SSL_CERT_FILE", "/there/is/none.pem"),
    ],
)
async def test_a_client_that_cannot_be_made_names_the_setting_and_is_not_tried_again(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    retries: list[object] = []
    model = ProviderModel(describe("openai/m"), ModelSettings(), retries.append, api_base="https://models.invalid/v1")
    with pytest.raises(ProviderError, match="Nothing was sent") as raised:
        await model.ask(ModelRequest([{"role": "user", "content": "Hello"}]), lambda _: None)
    assert (variable in raised.value.advice, retries) == (True, [])
    await model.close()


def test_the_variable_that_names_an_address_is_named_where_the_address_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = ConnectionRefusedError("[Errno 111]")
    for base in ("http://localhost:8099/v1", "https://models.invalid/v1"):
        monkeypatch.setenv("OPENAI_API_BASE", base)
        assert "address (OPENAI_API_BASE)" in explain(refused, model="openai/m", api_base=base).advice
        monkeypatch.setenv("OPENAI_API_BASE", "http://other")
        assert "address (model.api_base)" in explain(refused, model="openai/m", api_base=base).advice


@pytest.mark.parametrize(
    ("model", "api_base", "address", "start"),
    [
        ("ollama_chat/m", "", "http://localhost:11434", "(ollama serve)"),
        ("ollama/m", "http://127.0.0.1:7000", "http://127.0.0.1:7000", "(ollama serve)"),
        ("lm_studio/m", "", "http://127.0.0.1:1234/v1", "(lms server start)"),
        ("hosted_vllm/m", "http://localhost:8000/v1", "http://localhost:8000/v1", "(vllm serve MODEL)"),
        ("openai/m", "http://localhost:8080/v1", "http://localhost:8080/v1", "(llama-server -m FILE)"),
        ("openai/m", "http://localhost:8099/v1", "http://localhost:8099/v1", "Start the server there, or"),
    ],
)
def test_a_server_of_this_machine_that_does_not_run_is_named_with_how_to_start_it(
    monkeypatch: pytest.MonkeyPatch, model: str, api_base: str, address: str, start: str
) -> None:
    monkeypatch.delenv("OLLAMA_API_BASE", raising=False)
    explained = explain(ConnectionRefusedError("[Errno 111]"), model=model, api_base=api_base)
    assert explained.message == f"Cannot connect to {address}."
    assert start in explained.advice
    assert isinstance(explained, PassingFailure)
    assert explained.most_retries == NO_SERVER_TRIES
    monkeypatch.setenv("OLLAMA_API_BASE", "http://there:1")
    if model == "ollama_chat/m":
        there = explain(ConnectionRefusedError("[Errno 111]"), model=model)
        assert there.message.startswith("Cannot connect to http://there:1")
        assert "ollama serve" not in there.advice
