"""Context overflows with the words and statuses of real providers, and errors that only sound like one.

The provider refuses what is larger than WINDOW_TOKENS; what comes back has the true numbers where the provider's
words have numbers. Each must be answered by one compaction and a smaller request, never by the same request again.
Wordings: public issue trackers (tests/models/errors.README.md).
"""

from __future__ import annotations

import json

from nca.testing.faults import FAULTS, WINDOW_TOKENS, Fault, output_cap, overflow, with_numbers
from nca.testing.http_exchange import Exchange
from tests.testing.cases import overflow_messages as messages
from tests.testing.cases.case import Case


def streamed(body: object) -> Fault:
    """The same as the first event of a stream."""

    def run(exchange: Exchange) -> None:
        if not exchange.refuse(WINDOW_TOKENS):
            return exchange.reply()
        exchange.begin()
        exchange.event(with_numbers(json.dumps(body), exchange))
        return exchange.done()

    return run


def _never_fits(exchange: Exchange) -> None:
    """Whatever comes is too large, and how large it may be is not said."""
    exchange.refuse(1)
    exchange.error(400, "Prompt is too long", kind="invalid_request_error")


def _openai(message: str, code: str | None = "context_length_exceeded") -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}


def _case(about: str, run: Fault, *, has_limit: bool = True) -> Case:
    """One compaction and a smaller request. A limit that was told also bounds what the summarizer is asked at once:

    three questions then; without one, two that are refused, and code writes the summary.
    """
    requests = 2 + (3 if has_limit else 2)
    return Case(about, run, "answer", "Compacted", requests=requests, compactions=1, needs_talk=True)


CASES = {
    "overflow-of-openai": _case("OpenAI, 400", FAULTS["overflow-of-openai"]),
    "overflow-of-openai-with-output": _case(
        "OpenAI, the answer's room counted",
        overflow(400, _openai(f"{messages.REQUESTED} {messages.TO_REDUCE}"), counts_output=True),
    ),
    "overflow-of-anthropic": _case("Anthropic, 400", FAULTS["overflow-of-anthropic"]),
    "overflow-of-anthropic-sum": _case(
        "Anthropic, with max_tokens", overflow(400, _openai(messages.SUM, None), counts_output=True)
    ),
    "overflow-of-gemini": _case("Gemini, 400", FAULTS["overflow-of-gemini"]),
    "overflow-of-bedrock": _case(
        "Bedrock, no numbers", overflow(400, {"message": "Input is too long for requested model."}), has_limit=False
    ),
    "overflow-of-mistral": _case(
        "Mistral, 422, a code alone", overflow(422, {"error": {"type": "prompt_too_long"}}), has_limit=False
    ),
    "overflow-of-groq": _case("Groq, no numbers", overflow(400, _openai(messages.TO_REDUCE)), has_limit=False),
    "overflow-of-cerebras": _case(
        "Cerebras", overflow(400, {"message": messages.CEREBRAS, "type": "invalid_request_error"})
    ),
    "overflow-of-together": _case(
        "Together, no code",
        overflow(
            400,
            _openai("The input (<prompt> tokens) is longer than the model's context length (<limit> tokens).", None),
        ),
    ),
    "overflow-of-xai": _case(
        "xAI, the error a text",
        overflow(
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is <limit> but the request contains <prompt> tokens.",
            },
        ),
    ),
    "overflow-of-ollama": _case(
        "Ollama, how much too long",
        overflow(400, {"error": "prompt too long; exceeded max context length by 4 tokens"}),
        has_limit=False,
    ),
    "overflow-of-llamacpp": _case("llama.cpp, 400", overflow(400, messages.LLAMA_CPP)),
    "overflow-of-llama-cpp-python": _case(
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
    "overflow-of-lm-studio": _case("LM Studio, the error a text", overflow(400, {"error": messages.STUDIO})),
    "overflow-of-tgi": _case(
        "TGI, 422", overflow(422, {"error": messages.TGI, "error_type": "validation"}, counts_output=True)
    ),
    "overflow-of-copilot": _case(
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
    "overflow-of-proxy": _case("litellm's proxy around Anthropic", overflow(400, _openai(messages.PROXY, "400"))),
    "overflow-of-router": _case("OpenRouter around Anthropic", overflow(400, messages.ROUTER)),
    "overflow-of-zai": _case(
        "z.ai, a number as its code",
        overflow(400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        has_limit=False,
    ),
    "overflow-of-moonshot": _case(
        "Moonshot",
        overflow(
            400,
            _openai("Invalid request: Your request exceeded model token limit: <limit> (requested: <prompt>)", None),
        ),
    ),
    "overflow-as-success": _case("200 with the error as JSON", overflow(200, _openai(messages.RESULTED))),
    "overflow-in-stream": _case("the first event of a stream", streamed(_openai(messages.RESULTED))),
    "overflow-of-responses": _case("an event of the Responses API", streamed(messages.RESPONSES), has_limit=False),
    "overflow-as-reason": _case(
        "z.ai, a finish reason",
        streamed({"choices": [{"index": 0, "delta": {}, "finish_reason": "model_context_window_exceeded"}]}),
        has_limit=False,
    ),
    "overflow-as-text": _case(
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
    "overflow-for-ever": Case(
        "nothing is ever small enough",
        _never_fits,
        says="Compacting did not help",
        requests=5,
        compactions=2,
        needs_talk=True,
        error_code=4,
    ),
    **{
        f"without-a-word-{status}": Case(
            f"a request near the window, and {status} without a body",
            overflow(status, ""),
            "answer",
            "refused the request as too large",
            requests=4,
            compactions=1,
            settings={"model.context_window": "16000", "context.auto": "off"},
            needs_talk=True,
        )
        for status in (400, 413)
    },
    "too-much-output": Case(
        "a small prompt, and too much room for the answer",
        overflow(400, _openai(f"{messages.REQUESTED} {messages.TO_REDUCE}"), counts_output=True),
        "answer",
        requests=2,
    ),
    "too-much-output-vllm": Case(
        "vLLM: max_tokens and the window",
        overflow(
            400,
            _openai(
                "'max_tokens' or 'max_completion_tokens' is too large: <output>. This model's maximum context length is"
                " <limit> tokens and your request has <prompt> input tokens (<output> > <limit> - <prompt>).",
                None,
            ),
            counts_output=True,
        ),
        "answer",
        requests=2,
    ),
    "output-cap": Case("a cap on the answer", FAULTS["output-cap"], "answer", requests=2),
    "output-cap-unsaid": Case(
        "a cap on the answer, without its number", output_cap("max_tokens is too large."), "answer", requests=3
    ),
}
