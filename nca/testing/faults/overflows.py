"""Context overflows in the words and with the statuses of real providers, and limits that only sound alike.

The provider refuses what is larger than WINDOW_TOKENS; what comes back has the true numbers where the provider's
words have numbers. Each must be answered by one compaction and a smaller request, never by the same request again.
Wordings: public issue trackers (tests/models/errors.README.md).
"""

from __future__ import annotations

import json

from nca.testing.faults import wordings
from nca.testing.faults.fault import Fault, Run
from nca.testing.http_exchange import Exchange

WINDOW_TOKENS = 6_000
OUTPUT_TOKENS = 3_000
"""The most that `caps` scripts allow for an answer."""


def overflow(status: int, body: object, *, is_sum: bool = False) -> Run:
    """Refuse what is too large with this body; see wordings.

    is_sum: the answer's room counts too. A status of 200 is a success to HTTP.
    """
    text = body if isinstance(body, str) else json.dumps(body)

    def run(exchange: Exchange) -> None:
        if exchange.refuse(WINDOW_TOKENS, is_sum=is_sum):
            exchange.send(status, "application/json", _numbered(text, exchange).encode())
        else:
            exchange.reply()

    return run


def streamed(body: object) -> Run:
    """The same as the first event of a stream."""

    def run(exchange: Exchange) -> None:
        if not exchange.refuse(WINDOW_TOKENS, is_sum=False):
            return exchange.reply()
        exchange.begin()
        exchange.event(_numbered(json.dumps(body), exchange))
        return exchange.done()

    return run


def _numbered(text: str, exchange: Exchange) -> str:
    prompt, output = exchange.prompt_tokens, exchange.max_tokens
    numbers = {"prompt": prompt, "asked": prompt + output, "limit": WINDOW_TOKENS, "output": output}
    for name, number in numbers.items():
        text = text.replace(f"<{name}>", str(number))
    return text


def _capped(message: str) -> Run:
    """More output than the model can give."""

    def run(exchange: Exchange) -> None:
        if exchange.max_tokens > OUTPUT_TOKENS:
            said = message.replace("<output>", str(exchange.max_tokens)).replace("<limit>", str(OUTPUT_TOKENS))
            exchange.error(400, said, kind="invalid_request_error", code="invalid_value")
        else:
            exchange.reply()

    return run


def _never_fits(exchange: Exchange) -> None:
    """Whatever comes is too large, and how large it may be is not said."""
    exchange.refuse(1, is_sum=False)
    exchange.error(400, "Prompt is too long", kind="invalid_request_error")


def _openai(message: str, code: str | None = "context_length_exceeded") -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}


def _fault(about: str, run: Run, *, has_limit: bool = True) -> Fault:
    """One compaction and a smaller request. A limit that was told also bounds what the summarizer is asked at once:

    three questions then; without one, two that are refused, and code writes the summary.
    """
    return Fault(about, run, "answer", "Compacted", requests=5 if has_limit else 4, compactions=1, needs_talk=True)


FAULTS = {
    "overflow-of-openai": _fault("OpenAI, 400", overflow(400, _openai(wordings.RESULTED))),
    "overflow-of-openai-with-output": _fault(
        "OpenAI, the answer's room counted",
        overflow(400, _openai(f"{wordings.REQUESTED} {wordings.TO_REDUCE}"), is_sum=True),
    ),
    "overflow-of-anthropic": _fault("Anthropic, 400", overflow(400, wordings.ANTHROPIC)),
    "overflow-of-anthropic-sum": _fault(
        "Anthropic, with max_tokens", overflow(400, _openai(wordings.SUM, None), is_sum=True)
    ),
    "overflow-of-gemini": _fault(
        "Gemini, 400", overflow(400, {"error": {"code": 400, "message": wordings.GEMINI, "status": "INVALID_ARGUMENT"}})
    ),
    "overflow-of-bedrock": _fault(
        "Bedrock, no numbers", overflow(400, {"message": "Input is too long for requested model."}), has_limit=False
    ),
    "overflow-of-mistral": _fault(
        "Mistral, 422, a code alone", overflow(422, {"error": {"type": "prompt_too_long"}}), has_limit=False
    ),
    "overflow-of-groq": _fault("Groq, no numbers", overflow(400, _openai(wordings.TO_REDUCE)), has_limit=False),
    "overflow-of-cerebras": _fault(
        "Cerebras", overflow(400, {"message": wordings.CEREBRAS, "type": "invalid_request_error"})
    ),
    "overflow-of-together": _fault(
        "Together, no code",
        overflow(
            400,
            _openai("The input (<prompt> tokens) is longer than the model's context length (<limit> tokens).", None),
        ),
    ),
    "overflow-of-xai": _fault(
        "xAI, the error a text",
        overflow(
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is <limit> but the request contains <prompt> tokens.",
            },
        ),
    ),
    "overflow-of-ollama": _fault(
        "Ollama, how much too long",
        overflow(400, {"error": "prompt too long; exceeded max context length by 4 tokens"}),
        has_limit=False,
    ),
    "overflow-of-llamacpp": _fault("llama.cpp, 400", overflow(400, wordings.LLAMA_CPP)),
    "overflow-of-llama-cpp-python": _fault(
        "llama-cpp-python, 500",
        overflow(
            500,
            {
                "error": {
                    "message": "Requested tokens (<prompt>) exceed context window of <limit>",
                    "type": "internal_server_error",
                }
            },
        ),
    ),
    "overflow-of-lm-studio": _fault("LM Studio, the error a text", overflow(400, {"error": wordings.STUDIO})),
    "overflow-of-tgi": _fault(
        "TGI, 422", overflow(422, {"error": wordings.TGI, "error_type": "validation"}, is_sum=True)
    ),
    "overflow-of-copilot": _fault(
        "Copilot",
        overflow(
            400,
            {
                "error": {
                    "message": "prompt token count of <prompt> exceeds the limit of <limit>",
                    "code": "model_max_prompt_tokens_exceeded",
                }
            },
        ),
    ),
    "overflow-of-proxy": _fault("litellm's proxy around Anthropic", overflow(400, _openai(wordings.PROXY, "400"))),
    "overflow-of-router": _fault("OpenRouter around Anthropic", overflow(400, wordings.ROUTER)),
    "overflow-of-zai": _fault(
        "z.ai, a number as its code",
        overflow(400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        has_limit=False,
    ),
    "overflow-of-moonshot": _fault(
        "Moonshot",
        overflow(
            400,
            _openai("Invalid request: Your request exceeded model token limit: <limit> (requested: <prompt>)", None),
        ),
    ),
    "overflow-as-success": _fault("200 with the error as JSON", overflow(200, _openai(wordings.RESULTED))),
    "overflow-in-stream": _fault("the first event of a stream", streamed(_openai(wordings.RESULTED))),
    "overflow-of-responses": _fault("an event of the Responses API", streamed(wordings.RESPONSES), has_limit=False),
    "overflow-as-reason": _fault(
        "z.ai, a finish reason",
        streamed({"choices": [{"index": 0, "delta": {}, "finish_reason": "model_context_window_exceeded"}]}),
        has_limit=False,
    ),
    "overflow-as-text": _fault(
        "gpt4all, an answer",
        streamed(
            {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "delta": {
                            "content": "ERROR: The prompt size exceeds the context window size and cannot be processed."
                        },
                    }
                ]
            }
        ),
        has_limit=False,
    ),
    "overflow-for-ever": Fault(
        "nothing is ever small enough", _never_fits, says="does not fit", requests=7, compactions=2, needs_talk=True
    ),
    "too-much-output": Fault(
        "a small prompt, and too much room for the answer",
        overflow(400, _openai(f"{wordings.REQUESTED} {wordings.TO_REDUCE}"), is_sum=True),
        "answer",
        requests=2,
    ),
    "too-much-output-vllm": Fault(
        "vLLM: max_tokens and the window",
        overflow(
            400,
            _openai(
                "'max_tokens' or 'max_completion_tokens' is too large: <output>. This model's maximum context length is"
                " <limit> tokens and your request has <prompt> input tokens (<output> > <limit> - <prompt>).",
                None,
            ),
            is_sum=True,
        ),
        "answer",
        requests=2,
    ),
    "output-cap": Fault("a cap on the answer", _capped(wordings.CAP), "answer", requests=2),
    "output-cap-unsaid": Fault(
        "a cap on the answer, without its number", _capped("max_tokens is too large."), "answer", requests=3
    ),
}
