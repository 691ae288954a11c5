"""A provider's failure in one clear line for a person, and what to do about it."""

from __future__ import annotations

import re

from nca.errors import ModelNotFound, ModelUnavailable, ProviderError, ProviderFailure
from nca.models.error_details import ErrorDetails, read_error
from nca.models.failure_rules import AUTH_CODES, FILTER_CODES, MODEL_CODES, QUOTA, QUOTA_CODES
from nca.models.failures import classify_provider_error, shorten
from nca.models.providers import key_of, provider_of
from nca.models.retry import EMPTY_TRIES, LATE_TRIES, LONGEST_ASKED_SECONDS, UNREACHABLE_TRIES, PassingFailure

_UNREACHABLE = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "ProxyError", "gaierror"})
"""Nothing was reached. Not litellm's APIConnectionError, which is its word for whatever it does not know."""


_RATE_WORDS = re.compile(r"\brate\b|per[ -]minute|throttl|too many", re.IGNORECASE)


class EmptyAnswer(Exception):
    """The provider said success and sent nothing; `body` is what there was instead of an answer."""

    def __init__(self, body: str = "") -> None:
        super().__init__(body)
        self.body = body


class BrokenStream(Exception):
    """The connection ended, or carried something unreadable, before the answer did."""


def explain(error: BaseException, *, model: str = "", api_base: str = "") -> ProviderError:
    """The error for the rooms above: `message` says what happened, `advice` what to do, `failure` what it means.

    A PassingFailure may be tried again. Texts of the provider are cut to 200 characters.
    """
    details = read_error(error)
    if isinstance(error, EmptyAnswer) and not error.body.strip():
        return _empty(model)
    if isinstance(error, BrokenStream):
        return _passing(ProviderFailure("backoff", False, message=shorten(str(error))), shorten(str(error)))
    if isinstance(error, TimeoutError) and str(error):
        return _late(str(error))
    failure = classify_provider_error(error)
    is_account = bool(details.codes & QUOTA_CODES or QUOTA.search(details.text))
    if isinstance(error, EmptyAnswer) and failure.action == "fail" and not (details.statuses or is_account):
        return _not_an_answer(error.body, model, api_base)
    provider = model.split("/", 1)[0] if "/" in model else ""
    if "TooManyRedirects" in details.classes:
        where = f" at {api_base}" if api_base else ""
        return _final(failure, f"What answers{where} only redirects, in a circle.", "Check model.api_base.")
    if _is_unreachable(details):
        return _unreachable(failure, model, api_base)
    if special := _by_kind(details, failure, model, provider, api_base):
        return special
    return _by_action(failure, details, model)


def _by_kind(
    details: ErrorDetails, failure: ProviderFailure, model: str, provider: str, api_base: str
) -> ProviderError | None:
    """What waiting cannot cure: a wrong key, an unknown model, no money, a filter."""
    statuses = set(details.statuses)
    said = f" ({failure.message})" if failure.message else ""
    if failure.action != "fail":
        return None
    if details.codes & QUOTA_CODES or QUOTA.search(details.text) or 402 in statuses:
        return _final(
            failure,
            f"The account for {model} has no credit left{said}.",
            "Check the provider's billing page, or /model.",
        )
    if 401 in statuses or details.codes & (AUTH_CODES - {"permission_error", "permission_denied"}):
        variable = key_of(provider_of(model) or provider, {})[0] or "the provider's API key variable"
        at = f" at {api_base}" if api_base else ""
        advice = f"Check {variable}, or choose another model with /model or --model."
        return ModelUnavailable(f"The key for {model} was refused{at}{said}.", advice=advice, failure=failure)
    if 403 in statuses:
        return _final(failure, f"This key may not use {model}{said}.", "Check the account's rights, or /model.")
    if 404 in statuses or details.codes & MODEL_CODES:
        at = f" at {api_base}" if api_base else ""
        return ModelNotFound(
            f"The model {model} is not known{at}{said}.",
            advice="Check the name (nca models lists what was found), or set it with --model or /model.",
            failure=failure,
        )
    if details.codes & FILTER_CODES:
        return _final(failure, f"The provider's content filter refused the request{said}.", "Rephrase, or /model.")
    return None


def _by_action(failure: ProviderFailure, details: ErrorDetails, model: str) -> ProviderError:
    said = f": {failure.message}" if failure.message else "."
    match failure.action:
        case "compact" if not failure.is_overflow:
            return _final(
                failure,
                f"This one request is above the rate limit of {model}{said}",
                "Waiting cannot help: /compact makes it smaller.",
            )
        case "compact" | "lower_max_tokens_then_compact":
            return _final(failure, f"The context does not fit {model}{said}", "Run /compact and try again.")
        case "lower_max_tokens":
            return _final(
                failure, f"{model} allows fewer output tokens{said}", "Lower model.max_output_tokens with /config."
            )
        case "repair_history":
            return _final(failure, f"{model} refused the conversation's form{said}", "Run /compact and try again.")
        case "shrink_payload":
            return _final(failure, f"The request is too large in bytes for {model}{said}", "Leave out attachments.")
        case "backoff":
            return _busy(failure, details, model, said)
        case _:
            status = f" (status {details.statuses[0]})" if details.statuses else ""
            return _final(failure, f"{model} refused the request{status}{said}", "Try again, or /model.")


def _busy(failure: ProviderFailure, details: ErrorDetails, model: str, said: str) -> ProviderError:
    asked = failure.retry_after_seconds
    # A connection that breaks has no status; litellm gives it one of its own.
    has_status = bool(details.statuses) and "TransportError" not in details.classes
    status = f" (status {details.statuses[0]})" if has_status else ""
    if 429 in details.statuses or _RATE_WORDS.search(details.text):
        what = f"{model} is over its rate limit"
    else:
        what = f"{model} has a passing failure" if has_status else f"The connection to {model} broke off"
    if asked is not None and asked > LONGEST_ASKED_SECONDS:
        return _passing(failure, f"{what}{status}{said}", f"It asks to wait {_wait(asked)}: try then, or /model.")
    return _passing(failure, f"{what}{status}{said}", "Try again in a while, or /model.")


def _wait(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _is_unreachable(details: ErrorDetails) -> bool:
    return bool(details.classes & _UNREACHABLE) and not [code for code in details.statuses if code != 500]


def _unreachable(failure: ProviderFailure, model: str, api_base: str) -> ProviderError:
    where = api_base or f"the provider of {model}"
    error = _passing(
        failure,
        f"Nothing answers at {where}.",
        "Check the address (model.api_base), the network, or choose another model with /model or --model.",
    )
    error.most_retries = UNREACHABLE_TRIES
    return error


def _empty(model: str) -> ProviderError:
    message = f"{model} sent an empty answer."
    error = _passing(ProviderFailure("backoff", False, message=message), message, "Try again, or /model.")
    error.most_retries = EMPTY_TRIES
    return error


def _late(message: str) -> ProviderError:
    advice = "Try again, raise the setting with /config, or /model."
    error = _passing(ProviderFailure("backoff", False, message=message), message, advice)
    error.most_retries = LATE_TRIES
    return error


def _not_an_answer(body: str, model: str, api_base: str) -> ProviderError:
    where = f" at {api_base}" if api_base else ""
    message = f"What answers{where} does not speak the chat protocol: {shorten(body)}"
    error = _passing(ProviderFailure("backoff", False, message=message), message, "Check model.api_base, or the proxy.")
    error.most_retries = EMPTY_TRIES
    return error


def _passing(failure: ProviderFailure, message: str, advice: str = "Try again, or /model.") -> PassingFailure:
    return PassingFailure(message, advice=advice, failure=failure)


def _final(failure: ProviderFailure, message: str, advice: str) -> ProviderError:
    return ProviderError(message, advice=advice, failure=failure)
