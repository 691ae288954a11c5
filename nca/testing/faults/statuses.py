"""Errors by their status: what waiting cures and what it cannot."""

from __future__ import annotations

from nca.testing.faults.fault import Fault, Run, once, times
from nca.testing.http_exchange import Exchange

_NGINX = b"<html><head><title>413 Request Entity Too Large</title></head><body><hr><center>nginx</center></body></html>"
_AT_ONCE = {"retry-after": "0"}


def status(code: int, message: str, *, kind: str = "invalid_request_error", name: str | None = None) -> Run:
    """An error as OpenAI words it, to be tried again at once where that helps."""
    return lambda exchange: exchange.error(code, message, kind=kind, code=name, retry_after="0")


def body(code: int, value: object) -> Run:
    return lambda exchange: exchange.send_json(code, value, _AT_ONCE)


def page(code: int, text: bytes, content_type: str = "text/html") -> Run:
    return lambda exchange: exchange.send(code, content_type, text, _AT_ONCE)


def _redirects(exchange: Exchange) -> None:
    """To itself, for ever."""
    exchange.send(307, "text/plain", b"", {"Location": exchange.handler.path})


_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_ORPHAN = "messages.12.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."
_IMAGE = "messages.7.content.2.image.source.base64.data: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"
_ECHO = "Invalid user message={'role': 'user', 'content': 'This model\\'s maximum context length is 4096 tokens'}"
_SURROGATE = "'utf-8' codec can't encode character '\\ud840' in position 955242: surrogates not allowed"

ACCOUNT = {
    "wrong-key": Fault("401", status(401, "Incorrect API key provided.", name="invalid_api_key"), says="API_KEY"),
    "payment-required": Fault("402", status(402, "Payment Required"), says="credit"),
    "forbidden": Fault("403", status(403, "This key has no access to the model."), says="may not use"),
    "no-such-model": Fault("404", status(404, "The model does not exist.", name="model_not_found"), says="not known"),
    "no-money": Fault(
        "429 for quota: waiting cannot help",
        status(429, _QUOTA, kind="insufficient_quota", name="insufficient_quota"),
        says="credit",
    ),
    "low-credit": Fault("400 for credit", status(400, _CREDIT), says="credit"),
    "billing-limit": Fault(
        "400 for a billing limit",
        status(400, "Billing hard limit has been reached", name="billing_hard_limit_reached"),
        says="credit",
    ),
}
REFUSED = {
    "bad-request-empty": Fault("400 without a body", page(400, b""), says="refused the request (status 400)"),
    "bad-request-text": Fault("400, the error a text", body(400, {"error": "No such parameter."}), says="No such"),
    "bad-request-list": Fault("400, the error in a list", body(400, [{"error": {"message": "No."}}]), says="No."),
    "range": Fault("416", status(416, "Range Not Satisfiable"), says="416"),
    "unprocessable": Fault("422", body(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}), says="422"),
    "not-implemented": Fault("501", status(501, "Not Implemented"), says="501"),
    "too-many-bytes": Fault("413 of a gateway, a page", page(413, _NGINX), says="too large in bytes"),
    "too-many-bytes-empty": Fault("413 without a body", page(413, b""), says="too large in bytes"),
    "image-too-large": Fault("400 for an image", status(400, _IMAGE), says="too large in bytes"),
    "broken-history": Fault("400 for the order of messages", status(400, _ORPHAN), says="form"),
    "cannot-encode": Fault("500 for a text that cannot be encoded", status(500, _SURROGATE), says="form"),
    "echo": Fault("400 that repeats a person's words on overflows", status(400, _ECHO), says="refused the request"),
    "redirects": Fault("a redirect to itself", _redirects, says="redirects, in a circle", requests=21),
}
PASSING = {
    "request-timeout": Fault("408 once", once(status(408, "Request Timeout")), "answer", "408", requests=2),
    "conflict": Fault("409 once", once(status(409, "Conflict")), "answer", "409", requests=2),
    "server-error": Fault("500 once", once(status(500, "The server had an error.")), "answer", "500", requests=2),
    "server-error-for-ever": Fault("500 always", status(500, "An error of its own."), says="of its own", requests=6),
    "gateway-page": Fault("502 with a page, once", once(page(502, b"<h1>Bad Gateway</h1>")), "answer", requests=2),
    "unavailable": Fault("503 twice", times(2, status(503, "Loading model")), "answer", "Loading", requests=3),
    "gateway-timeout": Fault("504 once, empty", once(page(504, b"")), "answer", "504", requests=2),
    "unknown-error": Fault(
        "520 once, a page",
        once(page(520, b"<h1>Web server is returning an unknown error</h1>")),
        "answer",
        "unknown error",
        requests=2,
    ),
    "overloaded": Fault(
        "529 twice",
        times(2, body(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
        "answer",
        "Overloaded",
        requests=3,
    ),
}
FAULTS = {**ACCOUNT, **REFUSED, **PASSING}
