"""Providers: key variables and the keys in the environment, endpoints, default models, and servers on this machine.

Names are litellm's. The default models are general ones that support tools, neither the most expensive nor the
smallest; a test checks that each is in litellm's price map.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

T = TypeVar("T")

EMBEDDED = "embedded/"
"""The prefix of embedded models' names."""


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """One provider.

    key_variables   environment variables of the key, the usual one first
    title           for display
    model           the default model if only a key is set; "" for none
    openai_base     its OpenAI-compatible endpoint; "" if it has none, or no fixed one
    reports_usage   reports the usage of streams unasked, and must not be asked
    keeps_thoughts  expects its reasoning back with tool calls
    """

    name: str
    key_variables: tuple[str, ...]
    title: str
    model: str = ""
    openai_base: str = ""
    reports_usage: bool = False
    keeps_thoughts: bool = False


def _facts(name: str, title: str, model: str = "", openai_base: str = "", *keys: str, **marks: bool) -> ProviderFacts:
    """`model` is named without the provider; without `keys`, the key's variable is NAME_API_KEY."""
    named = f"{name}/{model}" if model else ""
    return ProviderFacts(name, keys or (f"{name.upper()}_API_KEY",), title, named, openai_base, **marks)


PROVIDERS: dict[str, ProviderFacts] = {
    facts.name: facts
    for facts in (
        # In the order of preference, if several keys are set.
        _facts("openai", "OpenAI", "gpt-6.1-sol"),
        _facts("anthropic", "Anthropic", "claude-sonnet-5-5"),
        _facts("gemini", "Gemini", "gemini-pro-latest", "", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        _facts("mistral", "Mistral", "mistral-medium-latest", "https://api.mistral.ai/v1", reports_usage=True),
        _facts("openrouter", "OpenRouter", "anthropic/claude-sonnet-5.5", "https://openrouter.ai/api/v1"),
        _facts("groq", "Groq", "openai/gpt-oss-120b", "https://api.groq.com/openai/v1"),
        _facts("deepseek", "DeepSeek", "deepseek-v4-pro", "https://api.deepseek.com/beta", keeps_thoughts=True),
        _facts("xai", "xAI", "grok-4.7", "https://api.x.ai/v1"),
        _facts("moonshot", "Moonshot", "kimi-k3", "https://api.moonshot.ai/v1", keeps_thoughts=True),
        _facts("zai", "Z.ai", "glm-5.3", "https://api.z.ai/api/paas/v4"),
        _facts("cerebras", "Cerebras", "gpt-oss-120b", "https://api.cerebras.ai/v1"),
        _facts(
            *("fireworks_ai", "Fireworks", "glm-5p3", "https://api.fireworks.ai/inference/v1"),
            *("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
        ),
        _facts("together_ai", "Together", "", "https://api.together.ai/v1", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
        _facts("dashscope", "DashScope", "qwen3.8-max", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        _facts("azure", "Azure"),
        _facts("bedrock", "Bedrock", "", "", "AWS_ACCESS_KEY_ID"),
        _facts("vertex_ai", "Vertex AI", "", "", "GOOGLE_APPLICATION_CREDENTIALS"),
        _facts("cohere", "Cohere"),
        _facts("perplexity", "Perplexity", "", "", "PERPLEXITYAI_API_KEY"),
        _facts("minimax", "MiniMax"),
        _facts("huggingface", "Hugging Face", "", "", "HF_TOKEN", "HUGGINGFACE_API_KEY"),
        _facts("lm_studio", "LM Studio", "", "http://127.0.0.1:1234/v1"),
        _facts("hosted_vllm", "vLLM"),
        _facts("litellm_proxy", "litellm proxy"),
        ProviderFacts("llamafile", (), "llamafile", "", "http://127.0.0.1:8080/v1"),
        ProviderFacts("ollama", (), "Ollama"),
        ProviderFacts("ollama_chat", (), "Ollama"),
    )
}

_WITH_ANY_BASE = frozenset({"openai", "hosted_vllm", "litellm_proxy"})
SPEAKS_OPENAI = _WITH_ANY_BASE.union(facts.name for facts in PROVIDERS.values() if facts.openai_base)
"""Providers with streams that nca reads directly, in OpenAI's protocol."""


def provider_of(name: str) -> str:
    """The provider that a model's name begins with; "" if none."""
    first = name.split("/", 1)[0].lower() if "/" in name else ""
    return first if first in PROVIDERS else ""


def key_of(provider: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The environment variable of the provider's key, and the key; the usual variable and "" if none is set."""
    variables = PROVIDERS[provider].key_variables if provider in PROVIDERS else ()
    for variable in variables:
        if env.get(variable, "").strip():
            return variable, env[variable].strip()
    return (variables[0] if variables else ""), ""


_BASE_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")


def endpoint_of(provider: str, api_base: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The person's own endpoint for a provider's models, and which setting or variable names it; "" if there is none.

    provider  "" if unknown, which is asked as OpenAI is
    api_base  the setting `model.api_base`
    """
    if api_base:
        return api_base, "model.api_base"
    for variable in _BASE_VARIABLES if provider in ("openai", "") else ():
        if env.get(variable, "").strip():
            return env[variable].strip(), variable
    return "", ""


_KEY_FILES = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
"""Variables that name a key file but contain no key."""
_OTHER_KEYS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_SECRET_ENDS = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD")
"""Usual endings of such variables; a tool may have printed any of them."""


def known_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Secrets by variable name: providers' keys, and all variables with a usual ending."""
    named = {
        name: value.strip() for name, value in env.items() if value.strip() and name.upper().endswith(_SECRET_ENDS)
    }
    return {**named, **provider_keys(env)}


def provider_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Providers' keys by variable name."""
    names = {name for facts in PROVIDERS.values() for name in facts.key_variables} - _KEY_FILES | _OTHER_KEYS
    return {name: value.strip() for name, value in env.items() if name in names and value.strip()}


PROBE_SECONDS = 0.3
"""A local server answers at once if it runs; nobody should wait for a guess."""
MOST_TOKENS = 1_000_000_000
"""The largest window that is believed."""
_AFTER_SECONDS = 0.2
"""For an error that comes with the limit, and says more than that the time is over."""
_MOST_BYTES = 8_000_000
_PIECE_BYTES = 65_536
"""OpenRouter's list has more than one million."""
_WINDOW_FIELDS = (
    ("loaded_context_length",),
    ("meta", "n_ctx"),
    ("max_model_len",),
    ("context_window",),
    ("context_length",),
    ("max_context_length",),
    ("meta", "n_ctx_train"),
)
"""Where a row of a list says the model's window: first what the server runs it with, last what it was made for.

Of LM Studio, llama.cpp, vLLM, Groq, OpenRouter (and Together, Fireworks), Mistral, llama.cpp.
"""

_WINDOW_LISTS = {"lm_studio": "/api/v0/models"}
"""Where a provider's server lists its models with their windows, if its OpenAI-compatible list is without them."""


def window_list(provider: str, address: str) -> str:
    """The URL of the list that says the windows of the models at an address."""
    listed = _WINDOW_LISTS.get(provider)
    return urljoin(address, listed) if listed else f"{address.rstrip('/')}/models"


class LocalServer(NamedTuple):
    """`list_url` lists the models; litellm reaches them with `prefix` and `api_base`. `start` is a command."""

    title: str
    list_url: str
    prefix: str
    api_base: str
    start: str = ""


LOCAL_SERVERS = (
    LocalServer("Ollama", "http://127.0.0.1:11434/api/tags", "ollama_chat", "http://127.0.0.1:11434", "ollama serve"),
    LocalServer(
        *("LM Studio", "http://127.0.0.1:1234/v1/models", "lm_studio", "http://127.0.0.1:1234/v1", "lms server start"),
    ),
    LocalServer(
        *("llama.cpp", "http://127.0.0.1:8080/v1/models", "openai", "http://127.0.0.1:8080/v1"),
        "llama-server -m FILE",
    ),
)
_STARTS = {
    **{server.prefix: server.start for server in LOCAL_SERVERS if server.prefix != "openai"},
    "ollama": "ollama serve",
    "hosted_vllm": "vllm serve MODEL",
}
"""The command that starts a provider's server."""
_ADDRESSES = {
    **dict.fromkeys(("ollama", "ollama_chat"), ("OLLAMA_API_BASE", "http://localhost:11434")),
    "hosted_vllm": ("HOSTED_VLLM_API_BASE", ""),
    "litellm_proxy": ("LITELLM_PROXY_API_BASE", ""),
}
"""The variable in which litellm looks for a provider's address, and the one that it takes without."""


def address_of(provider: str, api_base: str, env: Mapping[str, str]) -> str:
    """The address at which a provider's models are asked; "" if only litellm knows it."""
    variable, usual = _ADDRESSES.get(provider, ("", ""))
    facts = PROVIDERS.get(provider)
    return api_base or env.get(variable, "").strip() or usual or (facts.openai_base if facts else "")


def address_setting(address: str, env: Mapping[str, str]) -> str:
    """What names an address that is asked: a variable with just this value, else the setting."""
    variables = (*_BASE_VARIABLES, *(variable for variable, _ in _ADDRESSES.values()))
    return next((one for one in variables if address and env.get(one, "").strip() == address), "model.api_base")


def address_variable(provider: str) -> str:
    """The variable that must name the address of a provider that has none of its own; "" for the others."""
    variable, usual = _ADDRESSES.get(provider, ("", ""))
    return "" if usual else variable


def start_of(provider: str, address: str) -> str:
    """The command that starts the server that is expected at an address of this machine; "" if nobody knows it."""
    at = urlsplit(address)
    listed = (server.start for server in LOCAL_SERVERS if urlsplit(server.api_base).port == at.port)
    return _STARTS.get(provider, "") or next(listed, "")


class Found(NamedTuple):
    server: LocalServer
    models: tuple[str, ...]

    @property
    def model(self) -> str:
        return f"{self.server.prefix}/{self.models[0]}"


def is_loopback(address: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(address).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def proxy_variable(api_base: str, env: Mapping[str, str]) -> str:
    """The variable of the environment that sends requests for an address through a proxy; "" if none does.

    Without an address it is a provider's, which is reached with encryption.
    """
    parts = urlsplit(api_base or "https://")
    names = (f"{parts.scheme}_proxy", "all_proxy")
    named = next((way for name in names for way in (name, name.upper()) if env.get(way)), "")
    if not named or is_loopback(api_base):
        return ""
    # Imports much that few need.
    from urllib.request import proxy_bypass

    return "" if proxy_bypass(parts.hostname or "") else named


def find_servers(servers: Sequence[LocalServer] = LOCAL_SERVERS) -> list[Found]:
    """The servers that answer in time and have a model, in order. All are asked at once."""
    from concurrent.futures import ThreadPoolExecutor

    if not servers:
        return []
    with ThreadPoolExecutor(max_workers=len(servers)) as pool:
        listed = list(pool.map(lambda server: list_models(server.list_url), servers))
    return [Found(server, models) for server, models in zip(servers, listed, strict=True) if models]


def list_models(url: str, *, api_key: str = "", seconds: float = PROBE_SECONDS) -> tuple[str, ...]:
    """The chat models of an Ollama or OpenAI-compatible server; () if there is no valid answer in time."""
    return tuple(list_windows(url, api_key=api_key, seconds=seconds))


def list_windows(url: str, *, api_key: str = "", seconds: float = PROBE_SECONDS) -> dict[str, int]:
    """The same with the window of each, in tokens; 0 if the server does not say it."""
    from http.client import HTTPException

    try:
        return read_models(url, api_key=api_key, seconds=seconds)
    except (OSError, HTTPException, ValueError):
        return {}


def read_models(url: str, *, api_key: str = "", seconds: float = PROBE_SECONDS) -> dict[str, int]:
    """See `list_windows`. Raises OSError, HTTPException, and ValueError for an answer that is not valid."""
    read = partial(_read_models, url, api_key, seconds)
    return within(seconds + _AFTER_SECONDS, read, late="the list did not begin in time")


def within(seconds: float, work: Callable[[], T], *, late: str) -> T:
    """What the work returns or raises. Raises TimeoutError with the text `late` if it takes longer.

    In a thread that nobody waits for: a limit for each read never ends a server that sends a byte now and then.
    """
    from concurrent.futures import Future
    from threading import Thread

    done = Future[T]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised below
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or late) from None


def _read_models(url: str, api_key: str, seconds: float) -> dict[str, int]:
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    request = Request(url, headers=headers)  # noqa: S310  settings take http and https alone
    deadline = time.monotonic() + seconds
    try:
        with _opener(url).open(request, timeout=seconds) as response:
            listed = json.loads(_read_until(deadline, response))
    except HTTPError:
        return {}
    except URLError as error:
        raise error.reason if isinstance(error.reason, OSError) else error from None
    except RecursionError:
        raise ValueError("the list is nested too deeply") from None
    rows = listed.get("models") or listed.get("data") if isinstance(listed, dict) else None
    rows = rows if isinstance(rows, list) else []
    named = {str(row.get("id") or row.get("name") or ""): row for row in rows if isinstance(row, dict)}
    return {name: _window_in(row) for name, row in named.items() if name and "embed" not in name.lower()}


def _read_until(deadline: float, response: HTTPResponse) -> bytes:
    """The body. Raises TimeoutError for one that goes on after the deadline, as what a server streams without end."""
    body = bytearray()
    while len(body) < _MOST_BYTES and (piece := response.read1(_PIECE_BYTES)):
        body += piece
        if time.monotonic() > deadline:
            raise TimeoutError("the list did not end in time")
    return bytes(body)


def _opener(url: str) -> OpenerDirector:
    """Reaches an address as requests to models do: through its proxy of the environment, and nowhere else."""
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, build_opener

    scheme, proxy = urlsplit(url).scheme, os.environ.get(proxy_variable(url, os.environ), "")
    if (kind := urlsplit(proxy).scheme if "://" in proxy else "http") != "http":
        raise OSError(f"a proxy of the kind {kind} is not asked for a list")

    class Stays(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            """Nowhere: the key is for this address alone."""

    handlers = [ProxyHandler({scheme: proxy} if proxy else {}), Stays()]
    if scheme == "https":
        from nca.models.certificates import certificates

        return build_opener(*handlers, HTTPSHandler(context=certificates()))
    return build_opener(*handlers)


def _window_in(row: Mapping[str, Any]) -> int:
    """The window that a row of the list says, in tokens; 0 if it says none."""
    for path in _WINDOW_FIELDS:
        value: Any = row
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS:
            return value
    return 0
