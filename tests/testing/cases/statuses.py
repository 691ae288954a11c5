"""Errors by status: which a retry can cure."""

from __future__ import annotations

from nca.testing.faults import FAULTS, error, once, send
from nca.testing.http_exchange import Exchange
from tests.testing.cases.case import Case

_PAGE = "text/html"


def _redirects(exchange: Exchange) -> None:
    """To itself, for ever."""
    exchange.send(307, "text/plain", b"", {"Location": exchange.handler.path})


_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
_ORPHAN = "messages.12.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."
_IMAGE = "messages.7.content.2.image.source.base64.data: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"
_ECHO = "Invalid user message={'role': 'user', 'content': 'This model\\'s maximum context length is 4096 tokens'}"
_SURROGATE = "'utf-8' codec can't encode character '\\ud840' in position 955242: surrogates not allowed"

ACCOUNT = {
    "wrong-key": Case("401", FAULTS["wrong-key"], says="API_KEY"),
    "payment-required": Case("402", error(402, "Payment Required"), says="credit"),
    "forbidden": Case("403", FAULTS["forbidden"], says="has no access"),
    "no-such-model": Case("404", FAULTS["no-such-model"], says="was not found"),
    "no-money": Case(
        "429 for quota: waiting cannot help",
        FAULTS["no-money"],
        says="credit",
    ),
    "low-credit": Case("400 for credit", error(400, _CREDIT), says="credit"),
    "billing-limit": Case(
        "400 for a billing limit",
        error(400, "Billing hard limit has been reached", code="billing_hard_limit_reached"),
        says="credit",
    ),
}
REFUSED = {
    "bad-request-empty": Case(
        "400 without a body", send(400, b"", _PAGE, retry_after="0"), says="rejected the request (status 400)"
    ),
    "bad-request-text": Case(
        "400, the error a text", send(400, {"error": "No such parameter."}, retry_after="0"), says="No such"
    ),
    "bad-request-list": Case(
        "400, the error in a list", send(400, [{"error": {"message": "No."}}], retry_after="0"), says="No."
    ),
    "range": Case("416", error(416, "Range Not Satisfiable"), says="416"),
    "unprocessable": Case(
        "422", send(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, retry_after="0"), says="422"
    ),
    "not-implemented": Case("501", error(501, "Not Implemented"), says="501"),
    "too-many-bytes": Case("413 of a gateway, a page", FAULTS["too-many-bytes"], says="too large in bytes"),
    "too-many-bytes-empty": Case(
        "413 without a body", send(413, b"", _PAGE, retry_after="0"), says="too large in bytes"
    ),
    "image-too-large": Case("400 for an image", error(400, _IMAGE), says="too large in bytes"),
    "broken-history": Case("400 for the order of messages", error(400, _ORPHAN), says="structure of the conversation"),
    "cannot-encode": Case(
        "500 for a text that cannot be encoded", error(500, _SURROGATE), says="structure of the conversation"
    ),
    "echo": Case("400 that repeats a person's words on overflows", error(400, _ECHO), says="rejected the request"),
    "redirects": Case("a redirect to itself", _redirects, says="redirects in a loop", requests=21),
}
PASSING = {
    "request-timeout": Case("408 once", once(error(408, "Request Timeout")), "answer", "408", requests=2),
    "conflict": Case("409 once", once(error(409, "Conflict")), "answer", "409", requests=2),
    "server-error": Case("500 once", FAULTS["server-error"], "answer", "500", requests=2),
    "server-error-for-ever": Case("500 always", FAULTS["server-error-for-ever"], says="of its own", requests=6),
    "gateway-page": Case(
        "502 with a page, once", once(send(502, b"<h1>Bad Gateway</h1>", _PAGE, retry_after="0")), "answer", requests=2
    ),
    "unavailable": Case("503 twice", FAULTS["unavailable"], "answer", "Loading", requests=3),
    "gateway-timeout": Case(
        "504 once, empty", once(send(504, b"", _PAGE, retry_after="0")), "answer", "504", requests=2
    ),
    "unknown-error": Case(
        "520 once, a page",
        once(send(520, b"<h1>Web server is returning an unknown error</h1>", _PAGE, retry_after="0")),
        "answer",
        "unknown error",
        requests=2,
    ),
    "overloaded": Case(
        "529 twice",
        FAULTS["overloaded"],
        "answer",
        "Overloaded",
        requests=3,
    ),
}
CASES = {**ACCOUNT, **REFUSED, **PASSING}
