"""How providers word a context overflow. <prompt>, <asked>, <limit> and <output> stand for numbers."""

from __future__ import annotations

import json

from nca.testing.faults import ANTHROPIC_OVERFLOW

MAXIMUM = "This model's maximum context length is <limit> tokens."
TO_REDUCE = "Please reduce the length of the messages or completion."
REQUESTED = f"{MAXIMUM} However, you requested <asked> tokens (<prompt> in the messages, <output> in the completion)."
RESULTED = f"{MAXIMUM} However, your messages resulted in <prompt> tokens."
SUM = "input length and `max_tokens` exceed context limit: <prompt> + <output> > <limit>, decrease input length"
TGI = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= <limit>."
    " Given: <prompt> `inputs` tokens and <output> `max_new_tokens`"
)
STUDIO = (
    "Trying to keep the first <prompt> tokens when context the overflows. However, the model is loaded with context"
    " length of only <limit> tokens, which is not enough."
)
CEREBRAS = f"{TO_REDUCE} Current length is <prompt> while limit is <limit>"
PROXY = (
    f"litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - {json.dumps(ANTHROPIC_OVERFLOW)}"
)
LLAMA_CPP = {
    "error": {
        "code": 400,
        "message": "request (<prompt> tokens) exceeds the available context size (<limit> tokens), try increasing it",
        "type": "exceed_context_size_error",
    }
}
RESPONSES = {
    "type": "response.failed",
    "response": {
        "status": "failed",
        "error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."},
    },
}
ROUTER = {
    "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(ANTHROPIC_OVERFLOW)}}
}
