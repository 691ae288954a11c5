"""Turn a provider's failure into an error with one clear line for the user, and advice."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from nca.errors import ModelNotFound, ModelUnavailable, ProviderError, ProviderFailure, install_command
from nca.humanize import one_line
from nca.models import certificates, failures
from nca.models.error_details import ErrorDetails, causes, read_error
from nca.models.failure_rules import codes, says
from nca.models.failures import MAX_TEXT_CHARS, PassingFailure, classify_provider_error, is_quota, quoted
from nca.models.providers import (
    EMBEDDED,
    address_of,
    address_setting,
    is_loopback,
    key_of,
    provider_of,
    proxy_variable,
    start_of,
)
from nca.models.redirects import RedirectRefused
from nca.redact import KEYS_BY_SHAPE, Redactor

_UNREACHABLE = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "ProxyError", "gaierror"})
"""No connection was made. litellm's APIConnectionError is not listed: litellm uses it for every unknown error."""
_WANTS_TLS = "wants encryption (https).", "Set model.api_base to its address with https://."
_CLOSED = frozenset({"ReadError", "RemoteProtocolError"})
_NO_ADDRESS = frozenset({"UnsupportedProtocol", "InvalidURL"})
_REFUSED_BY_PROXY = re.compile(r"^(4\d\d)\b", re.MULTILINE)
_PACKAGES = {"azure": "azure-identity", "google": "google-auth", "vertexai": "google-cloud-aiplatform"}
"""The packages with modules of another name that litellm imports only for some providers."""
_RATE_WORDS = re.compile(r"\brate\b|per[ -]minute|throttl|too many", re.IGNORECASE)
_BY_ACTION = {
    "compact": ("The context does not fit {model}", "Run /compact in the chat and try again."),
    "lower_max_tokens_then_compact": ("The context does not fit {model}", "Run /compact in the chat and try again."),
    "lower_max_tokens": ("{model} does not allow that many output tokens", "Lower model.max_output_tokens."),
    "repair_history": ("{model} rejected the structure of the conversation", "Run /compact in the chat and try again."),
    "shrink_payload": (
        "The request is too large in bytes for {model}",
        "Leave out attachments, or run /compact in the chat and try again.",
    ),
}
"""The message and advice, if the failure's action could not be carried out."""


class EmptyAnswer(Exception):
    """A successful response without an answer; `body` is what the response contained instead."""

    def __init__(self, body: str = "") -> None:
        super().__init__(body)
        self.body = body


class BrokenStream(Exception):
    """The connection ended, or carried something unreadable, before the answer was complete."""


def explain(
    error: BaseException, *, model: str = "", api_base: str = "", redactor: Redactor = KEYS_BY_SHAPE
) -> ProviderError:
    """The error to raise: `message` says what happened, `advice` what to do, `failure` how nca reacts.

    A PassingFailure may be retried. The provider's own text has passed the redactor, and is cut to 200 characters.
    """
    details = read_error(error)
    if isinstance(error, EmptyAnswer) and not error.body.strip():
        return _passing(f"{model} sent an empty answer.", most_retries=failures.EMPTY_TRIES)
    if isinstance(error, BrokenStream):
        return _passing(quoted(str(error), redactor))
    if isinstance(error, TimeoutError) and str(error):
        advice = "Try again, raise the setting (`nca config set`), or choose another model with --model."
        return _passing(str(error), advice, most_retries=failures.LATE_TRIES)
    for cause in causes(error):
        if isinstance(cause, RedirectRefused):
            advice = "Set model.api_base to the address that is right."
            return ProviderError(f"{cause}; nca does not follow it with your conversation and key", advice=advice)
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            package = _PACKAGES.get(top := cause.name.partition(".")[0], top)
            said = f"{model} needs the Python package {package}, which is not installed."
            return ModelUnavailable(said, advice=f"Install it: {install_command(package)}")
    address = address_of(provider_of(model), api_base, os.environ)
    where = address or f"the provider of {model}"
    if lasting := _lasting(error, details, where, address):
        return ProviderError(lasting[0], advice=lasting[1])
    failure = classify_provider_error(error, redactor=redactor)
    at = f" at {api_base}" if api_base else ""
    if isinstance(error, EmptyAnswer) and failure.action == "fail" and not (details.statuses or is_quota(details)):
        message = f"The server{at} does not speak the chat protocol: {quoted(error.body, redactor)}"
        advice = f"Check {address_setting(address, os.environ)}, or the proxy."
        return _passing(message, advice, most_retries=failures.EMPTY_TRIES)
    if "TooManyRedirects" in details.classes:
        advice = f"Check {address_setting(address, os.environ)}."
        return ProviderError(f"The server{at} redirects in a loop.", advice=advice, failure=failure)
    if details.classes & _UNREACHABLE and not [code for code in details.statuses if code != 500]:
        if is_loopback(address) and not model.startswith(EMBEDDED):
            return _no_server(address, model, failure)
        if proxy := proxy_variable(address, os.environ):
            where += f" through the proxy of {proxy}"
        checked = f"the proxy ({proxy}), the address" if proxy else "the address"
        checked += f" ({address_setting(address, os.environ)})"
        advice = f"Check {checked} and the network, or choose another model with --model."
        return _passing(f"Cannot connect to {where}.", advice, failure, most_retries=failures.UNREACHABLE_TRIES)
    if failure.action == "fail" and (refusal := _refusal(details, failure, model, at)):
        return refusal
    return _by_action(failure, details, model)


async def told_apart(explained: ProviderError, error: BaseException, address: str) -> ProviderError:
    """The error where a plain connection was closed without a word: most servers with encryption do that."""
    is_silent = isinstance(explained, PassingFailure) and bool(read_error(error).classes & _CLOSED)
    if not is_silent or urlsplit(address).scheme != "http" or proxy_variable(address, os.environ):
        return explained
    if not await certificates.speaks_tls(address):
        return explained
    return ProviderError(f"{address} {_WANTS_TLS[0]}", advice=_WANTS_TLS[1])


def _no_server(address: str, model: str, failure: ProviderFailure) -> ProviderError:
    """The error where nothing on this machine listens."""
    start = start_of(provider_of(model), address)
    setting = address_setting(address, os.environ)
    advice = f"Start the server there{f' ({start})' if start else ''}, or check the address ({setting})."
    return _passing(f"Cannot connect to {address}.", advice, failure, most_retries=failures.NO_SERVER_TRIES)


def _lasting(error: BaseException, details: ErrorDetails, where: str, address: str) -> tuple[str, str] | None:
    """What keeps a connection from being made however long one waits, and the advice; None if nothing is known to."""
    if refused := certificates.refused_encryption(causes(error), where, address_setting(address, os.environ)):
        return refused
    if says("wants_encryption", details.text):
        return f"{where} {_WANTS_TLS[0]}", _WANTS_TLS[1]
    if details.classes & _NO_ADDRESS:
        said = f"{address} is no address of a server." if address else f"The address of {where} is not valid."
        valid = f"an address that begins with http:// or https:// ({address_setting(address, os.environ)})"
        return said, f"Valid: {valid}."
    proxy = proxy_variable(address, os.environ)
    # An answer to CONNECT is in the error's text.
    answers = _REFUSED_BY_PROXY.findall(details.text) if "ProxyError" in details.classes else []
    status = 407 if 407 in details.statuses else int(answers[0]) if answers else 0
    if not (proxy and status):
        return None
    if status != 407:
        advice = f"Check {proxy}, or name the host in no_proxy."
        return f"The proxy of {proxy} refuses to connect to {where} (status {status}).", advice
    has_password = "@" in os.environ[proxy]
    said = (
        "does not accept the user name and the password in it" if has_password else "wants a user name and a password"
    )
    return f"The proxy of {proxy} {said} (status 407).", f"Set {proxy} to http://USER:PASSWORD@HOST:PORT."


def cannot_open(error: Exception, model: str, api_base: str) -> ProviderError:
    """The error for a client that cannot be made: of a proxy or a file of certificates that the environment names."""
    # An OSError is about a file.
    names = certificates.VARIABLES if isinstance(error, OSError) else (proxy_variable(api_base, os.environ),)
    named = " and ".join(name for name in names if os.environ.get(name))
    said = one_line(str(error).removesuffix("."), MAX_TEXT_CHARS)
    return ProviderError(
        f"No connection to {api_base or f'the provider of {model}'} can be opened: {said}. Nothing was sent",
        advice=f"Check {named or 'the network settings of the environment'}.",
    )


def check_proxy(api_base: str) -> None:
    """Raise ValueError for a proxy whose port is none: HTTP libraries find that only when they connect."""
    if name := proxy_variable(api_base, os.environ):
        _ = urlsplit(os.environ[name]).port


def _refusal(details: ErrorDetails, failure: ProviderFailure, model: str, at: str) -> ProviderError | None:
    """Failures that waiting cannot cure: no credit, a wrong key, an unknown model, a content filter."""
    statuses = set(details.statuses)
    said = f" ({failure.message.removesuffix('.')})" if failure.message else ""
    if is_quota(details) or 402 in statuses:
        message = f"The account for {model} has no credit left{said}."
        advice = "Check the provider's billing page, or choose another model with --model."
    elif 401 in statuses or details.codes & (codes("auth") - {"permission_error", "permission_denied"}):
        provider = provider_of(model) or (model.split("/", 1)[0] if "/" in model else "")
        variable = key_of(provider, {})[0] or "the provider's API key variable"
        advice = f"Check {variable}, or choose another model with --model."
        return ModelUnavailable(f"The API key for {model} was rejected{at}{said}.", advice=advice, failure=failure)
    elif 403 in statuses:
        message = f"The API key has no access to {model}{said}."
        advice = "Check the account's permissions, or choose another model with --model."
    elif 404 in statuses or details.codes & codes("model"):
        advice = "Check the name (nca models lists what was found), or choose another model with --model."
        return ModelNotFound(f"The model {model} was not found{at}{said}.", advice=advice, failure=failure)
    elif details.codes & codes("filter"):
        message = f"The provider's content filter blocked the request{said}."
        advice = "Rephrase it, or choose another model with --model."
    else:
        return None
    return ProviderError(message, advice=advice, failure=failure)


def _by_action(failure: ProviderFailure, details: ErrorDetails, model: str) -> ProviderError:
    said = f": {failure.message}" if failure.message else "."
    if failure.action == "backoff":
        return _busy(failure, details, model, said)
    status = f" (status {details.statuses[0]})" if details.statuses else ""
    usual = ("{model} rejected the request{status}", "Try again, or choose another model with --model.")
    what, advice = _BY_ACTION.get(failure.action, usual)
    if failure.action == "compact" and not failure.is_overflow:
        what = "This request alone exceeds the rate limit of {model}"
        smaller = f"model.context_window {failure.limit_tokens}" if failure.limit_tokens else "model.context_window"
        advice = (
            f"Waiting does not help. Send less (/compact in the chat, or {smaller} for every request), or ask the"
            " provider for a higher limit."
        )
    return ProviderError(f"{what.format(model=model, status=status)}{said}", advice=advice, failure=failure)


def _busy(failure: ProviderFailure, details: ErrorDetails, model: str, said: str) -> ProviderError:
    asked = failure.retry_after_seconds
    # A lost connection has no status, but litellm makes one up.
    has_status = bool(details.statuses) and "TransportError" not in details.classes
    status = f" (status {details.statuses[0]})" if has_status else ""
    if 429 in details.statuses or _RATE_WORDS.search(details.text):
        what = f"The rate limit of {model} is reached"
    else:
        what = f"{model} is temporarily unavailable" if has_status else f"The connection to {model} was lost"
    advice = "Try again later, or choose another model with --model."
    if asked is not None and asked > failures.LONGEST_ASKED_SECONDS:
        advice = f"The provider asks to wait {_duration(asked)}. Try again then, or choose another model with --model."
    return _passing(f"{what}{status}{said}", advice, failure)


def _duration(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _passing(
    message: str,
    advice: str = "Try again, or choose another model with --model.",
    failure: ProviderFailure | None = None,
    *,
    most_retries: int | None = None,
) -> PassingFailure:
    error = PassingFailure(
        message, advice=advice, failure=failure or ProviderFailure("backoff", False, message=message)
    )
    error.most_retries = most_retries
    return error
