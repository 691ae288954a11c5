"""Choose a model if none is named, and open it.

The order: the configured model, a provider with a key in the environment or stored by nca, a server on this machine,
the embedded model. Nothing is connected to unless the earlier steps found nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nca.config.loaded import CHOICE
from nca.config.overrides import Layer
from nca.config.schema import ModelSettings
from nca.config.value_types import is_web_address, web_address
from nca.errors import ConfigError, ModelUnavailable
from nca.humanize import byte_size, check_kind
from nca.models.providers import EMBEDDED, PROVIDERS, endpoint_of, key_of, provider_of

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings
    from nca.models.failures import OnRetry
    from nca.models.model import Model
    from nca.models.providers import LocalServer

_LIST_SECONDS = 2.0
"""A configured endpoint may be far away, so it gets more time than a guessed one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen model, and the reason.

    model              litellm's name, or embedded/NAME
    api_base           "" for the provider's own address
    api_key_variable   the environment variable of the key; "" if none is needed
    why                the reason, in one line
    alternatives       other models that are available
    is_named           the settings name it, or the person did with /model
    is_remembered      the person chose it with /model in this session, or in an earlier chat of this directory
    is_guess           its endpoint lists no models, or does not answer
    """

    model: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    api_key_variable: str = ""
    why: str = ""
    alternatives: tuple[str, ...] = ()
    is_named: bool = False
    is_remembered: bool = False
    is_guess: bool = False

    @property
    def is_embedded(self) -> bool:
        return self.model.startswith(EMBEDDED)


def choose(
    settings: ModelSettings,
    env: Mapping[str, str],
    *,
    named_by: str = "model.name",
    servers: Sequence[LocalServer] | None = None,
) -> Choice:
    """Choose the model. Local servers are asked only if nothing is configured and there is no key.

    named_by: the origin of model.name, for the reason. servers: local servers to ask; None: the usual ones.
    """
    if settings.name:
        return named(settings.name, settings, env, why=f"set by {named_by}")
    base, base_origin = checked_endpoint("openai", settings.api_base, env)
    if base:
        return _at_endpoint(base, base_origin, env)
    if (keyed := _by_keys(env)) is not None:
        return keyed
    from nca.models.providers import LOCAL_SERVERS, find_servers

    found = find_servers(LOCAL_SERVERS if servers is None else servers)
    if found:
        first = found[0]
        others = tuple(f"{first.server.prefix}/{name}" for name in first.models[1:4])
        others += tuple(other.model for other in found[1:])
        return Choice(
            model=first.model,
            api_base=first.server.api_base,
            why=f"{first.server.title} answers at {first.server.api_base}",
            alternatives=others,
        )
    return _embedded(env)


def checked_endpoint(provider: str, api_base: str, env: Mapping[str, str]) -> tuple[str, str]:
    """See `endpoint_of`. Raises ConfigError for an address of the environment that cannot be one."""
    base, origin = endpoint_of(provider, api_base, env)
    if base and not is_web_address(base):
        raise ConfigError(f"{origin} = {base!r} is not valid; valid: {web_address().valid}.")
    return base, origin


def named(name: str, settings: ModelSettings, env: Mapping[str, str], *, why: str = "chosen") -> Choice:
    """The choice for a model that is configured, or named with --model or /model."""
    if name.startswith(EMBEDDED):
        return Choice(model=name, why=why, is_named=True)
    if name.lower().startswith("gemini-") and not settings.api_base:
        # litellm would take it for Vertex AI's, which no API key opens.
        name = f"gemini/{name}"
    base = settings.api_base or checked_endpoint(_provider(name), "", env)[0]
    if not base and "/" not in name:
        # Imports the price map, which a whole name does not need.
        from nca.models.lookup import with_provider

        name = with_provider(name, env)
    has_prefix = "/" in name and bool(_provider(name))
    model = name if has_prefix or not base else f"openai/{name}"
    variable, key = key_of(_provider(model), env)
    return Choice(model=model, api_base=base, api_key=key, api_key_variable=variable, why=why, is_named=True)


def choice_of_session(
    typed: str, loaded: LoadedSettings, env: Mapping[str, str]
) -> tuple[LoadedSettings, Choice] | None:
    """The settings and the model that a session continues with; None if the settings decide.

    typed: what the person chose in the session (`SessionInfo.chosen_model`). A model that the environment or a flag
    names wins, for it was named for this start.
    """
    if not typed or loaded.base["model.name"].layer >= Layer.ENVIRONMENT:
        return None
    # Imports the price map, which a start with a named model need not have.
    from nca.models.reasoning import split_level

    name, level = split_level(typed)
    if loaded.base["model.reasoning"].layer < Layer.ENVIRONMENT:
        loaded = loaded.with_chosen_level(level)
    choice = named(name, loaded.for_model(name).settings.model, env, why=f"set by {CHOICE}")
    return loaded, replace(choice, is_remembered=True)


async def open_model(choice: Choice | str, loaded: LoadedSettings, on_retry: OnRetry = lambda _: None) -> Model:
    """Open the chosen model, or the one with a name such as `openai/gpt-4.1`. Keys are in the settings' `env`.

    Its requests follow the settings for this model. `on_retry` hears of each failed try that is repeated. Whoever opens
    a model closes it, or the conversation that it is given to.
    Raises UsageError for a wrong argument, ConfigError for an address that cannot be one, and ModelUnavailable if a
    provider, key or weights are missing.
    """
    from nca.config.loaded import LoadedSettings

    check_kind(choice, str | Choice, "choice", "a model's name, such as openai/gpt-4.1")
    check_kind(loaded, LoadedSettings, "loaded", "settings of nca.load_settings")
    if isinstance(choice, str):
        choice = named(choice, loaded.for_model(choice).settings.model, loaded.env)
    settings = loaded.for_model(choice.model).settings.model
    require_usable(choice, loaded.env)
    if choice.is_embedded:
        # Imports the runtime of the child process: only if needed.
        from nca.models.embedded import server

        return await server.open_embedded(choice.model, settings=settings, on_retry=on_retry, env=loaded.env)
    # Imports the HTTP clients: only when a model is opened.
    from nca.models.catalog import describe
    from nca.models.client import ProviderModel
    from nca.models.lookup import with_listed_window

    facts = describe(choice.model, context_window=settings.context_window, is_own_endpoint=bool(choice.api_base))
    if not settings.context_window:
        facts = await asyncio.to_thread(with_listed_window, facts, choice.api_base, choice.api_key, loaded.env)
    base, key = choice.api_base, choice.api_key
    model = ProviderModel(facts, settings, on_retry, api_base=base, api_key=key, env=loaded.env)
    if not choice.api_base and not _provider(choice.model):
        # Only litellm knows whether there is such a provider, and it is slow to import.
        await model.load()
    return model


def require_usable(choice: Choice, env: Mapping[str, str]) -> None:
    """Raise ModelUnavailable if a provider, a key, weights or the runtime is missing. It asks no server."""
    if not choice.is_embedded:
        from nca.models.lookup import require_provider

        require_provider(choice.model, choice.api_base)
        _require_key(choice, env)
        return
    # Looks at the disk: only if needed.
    from nca.models.embedded import weights
    from nca.models.embedded.known import runtime_command

    try:
        weights.require(choice.model, env)
    except ModelUnavailable as missing:
        if choice.is_named or weights.path_of(choice.model, env) is not None:
            raise
        model = weights.known(choice.model, env)
        download = f"download a model (nca models get: {byte_size(model.size_bytes)})"
        if not weights.has_runtime():
            download = f"install what runs a model on this machine ({runtime_command()}) and {download}"
        raise ModelUnavailable(
            "No model can answer: no API key, no server on this machine and no embedded model was found.",
            advice=f"Store a key (nca keys add) or set it (export OPENAI_API_KEY=…), start a server (ollama serve), or"
            f" {download}.",
        ) from missing


def _require_key(choice: Choice, env: Mapping[str, str]) -> None:
    """Raise if the provider's key is missing or cannot be read, unless the endpoint may not need one."""
    facts = PROVIDERS.get(_provider(choice.model))
    if facts is None or not facts.model or choice.api_base or choice.api_key:
        return
    from nca.models import keys

    keys.stored(env)
    raise ModelUnavailable(
        f"No API key for {choice.model}: {facts.key_variables[0]} is not set.",
        advice=f"Store one (nca keys add {facts.name}) or set it (export {facts.key_variables[0]}=…), or choose another"
        " model with --model.",
    )


def _provider(name: str) -> str:
    """The provider of a model: the prefix of its name, or the price map's; "" if unknown."""
    if "/" not in name:
        from nca.models.catalog import describe

        return describe(name).provider
    first = name.split("/", 1)[0].lower()
    if provider_of(name):
        return first
    from nca.models import price_map

    return first if first in price_map.providers() else ""


def _at_endpoint(base: str, origin: str, env: Mapping[str, str]) -> Choice:
    """OpenAI's default model if the endpoint lists it or lists nothing, otherwise the first that it lists."""
    from nca.models.providers import list_models

    variable, key = key_of("openai", env)
    listed = list_models(f"{base.rstrip('/')}/models", api_key=key, seconds=_LIST_SECONDS)
    usual = PROVIDERS["openai"].model
    is_usual = not listed or usual.removeprefix("openai/") in listed
    return Choice(
        model=usual if is_usual else f"openai/{listed[0]}",
        api_base=base,
        api_key=key,
        api_key_variable=variable if key else "",
        why=f"the endpoint {base} is set ({origin})" + ("" if listed else "; it lists no models"),
        is_guess=not listed,
        alternatives=tuple(f"openai/{name}" for name in listed[:4] if not is_usual)[1:],
    )


def _by_keys(env: Mapping[str, str]) -> Choice | None:
    """The first provider with a key; the others are alternatives. Raises ConfigError if none can be read."""
    keyed = [(facts.model, *key_of(facts.name, env)) for facts in PROVIDERS.values() if facts.model]
    usable = [one for one in keyed if one[2]]
    # Reads a file, if there is one: only if needed.
    from nca.models import keys

    if not usable:
        keys.stored(env)
        return None
    (model, variable, key), *others = usable
    why = f"{variable} is {keys.origin(variable, env)}"
    return Choice(model, "", key, variable, why, alternatives=tuple(other[0] for other in others))


def _embedded(env: Mapping[str, str]) -> Choice:
    # Looks at disk and memory: only if needed.
    from nca.models.embedded import weights

    installed, wanted = weights.installed(env), weights.recommended(env)
    if installed and wanted not in installed and not env.get(weights.VARIABLE, "").strip():
        wanted = installed[0]
    why = "no key, no endpoint and no local server was found"
    why += "; it is installed" if wanted in installed else "; download its weights with nca models get"
    others = tuple(f"{EMBEDDED}{name}" for name in installed if name != wanted)
    return Choice(model=f"{EMBEDDED}{wanted}", why=why, alternatives=others)
