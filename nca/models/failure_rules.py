"""Patterns of provider errors: which code or message means what. `failures` applies them in order.

Source: error replies of some forty providers in public issue trackers (tests/models/errors.README.md). Each pattern
matches a general wording, not one message. Case is ignored.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE | re.DOTALL)


N = r"\(?(\d[\d,_]*)\)?"
"""A count, possibly with thousands separators or in brackets."""

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "content_length_exceeded",
        "model_max_prompt_tokens_exceeded",
        "exceed_context_size_error",
        "model_context_exceeded",
        "prompt_too_long",
        "model_context_window_exceeded",
        "context_window_exceeded",
        "1261",  # Zhipu: the prompt exceeds the maximum length
    }
)

RATE_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "ratelimitexceeded",
        "resource_exhausted",
        "token_quota_exceeded",
        "too_many_tokens_error",
        "too_many_requests",
        "throttlingexception",
        "overloaded_error",
        "tokens",
    }
)
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"})
AUTH_CODES = frozenset({"invalid_api_key", "authentication_error", "permission_error", "permission_denied"})
MODEL_CODES = frozenset({"model_not_found", "not_found_error", "model_not_available"})
FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
PAYLOAD_CODES = frozenset({"request_too_large", "payload_too_large"})
BAD_PARAMETER_CODES = frozenset({"string_above_max_length", "max_tokens_exceeded"})
HISTORY_CODES = frozenset({"invalid_request_message_order", "3230"})

PASSING_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
NEVER_OVERFLOW_STATUSES = frozenset({401, 402, 403, 404, 408, 409, 416, 429, 502, 503, 504, 529})

WRAPPING = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]*(?:Error|Exception)\s*(?::|-)\s*)+")
"""Class names that litellm puts in front of what a provider said."""
ONLY_STATUS = re.compile(r"Error code: \d+")
"""What the openai package says of a response without a body."""
PAGE = re.compile(r"<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
TITLE = re.compile(r"<title[^>]*>\s*([^<]*[^<\s])\s*</title", re.IGNORECASE)

QUOTA = _any(
    r"credit balance",
    r"insufficient (?:balance|credit|funds|quota)",
    r"(?:requires|need|purchase|out of|not enough|no) (?:more )?credits",
    r"exceeded your current quota",
    r"payment required",
    r"billing (?:hard )?limit",
    r"account (?:is )?(?:not active|suspended|deactivated|in arrears)",
)

RATE = _any(
    r"per[ -](?:minute|min|second|day|hour)\b",
    r"rate[ _-]?limit",
    r"too many requests",
    r"throttl",
    r"wait before trying",
    r"resource (?:has been |is )?exhausted",
    r"\bquota\b",
    r"overloaded",
    r"at capacity|concurren",
    r"(?:retry|try again) (?:after|in) [\d.]+ ?(?:s|ms|m|seconds|minutes)\b",
)

SINGLE_REQUEST_RATE = _any(r"request too large for .*(?:per min|tpm)", r"single request .*(?:per min|tpm)")
"""A single request above a per-minute limit: waiting never helps."""

IN_TOKENS = _any(r"\btokens?(?:\b|_)", r"\btpm\b", r"\bprompt\b", r"\bcontext(?:\b|_)", r"_tokens?\b")
"""In an error that says that the request is too large: what is too large is counted in tokens, not in bytes."""

HISTORY = _any(
    r"tool_?call.*(?:must be followed|did not have response|must be a response)",
    r"must be a response to a prece+ding message with",
    r"tool_?use.*(?:tool_?result|without)|tool_?result.*(?:tool_?use|without)|expected tool_?result",
    r"(?:text content blocks|messages?|content)\b.{0,40}must (?:be|have) non-?empty",
    r"non-empty content|at least one message is required|must (?:have|include) .{0,12}(?:text|parts?)\b",
    r"must have either content or tool_calls|tool call id was",
    r"function (?:response|call) (?:parts|turn).*function (?:call|response)",
    r"not the same number of function calls and responses",
    r"(?:unexpected|expected last) role",
    r"roles must alternate|must alternate between",
    r"must start with a user message",
    r"(?:failed to parse|unable to convert|invalid).{0,30}tool[ _]calls?\b",
    r"missing corresponding tool call",
    r"no tool (?:call|output) found for",
    r"surrogates? not allowed|lone surrogate|invalid (?:unicode|utf-8|surrogate)",
    r"final assistant content cannot end with trailing whitespace",
    r"does not support assistant message prefill|must end with a user message",
    r"thinking blocks?.*cannot be modified|expected `?thinking`?|`?signature`? in `?thinking|thought_?signature",
    r"invalid_encrypted_content",
)

PAYLOAD = _any(
    r"(?:payload|body|request)(?: entity)? (?:size )?(?:is )?too large(?! for)",
    r"request exceeds the maximum size",
    r"payload size exceeds",
    r"entity too large",
    r"\bimages?\b(?!.{0,80}tokens).{0,60}(?:exceed|too large|too many|maximum|dimension|resolution)",
    r"(?:exceed|too many)(?:(?!tokens).){0,30}\bimages?\b(?!.{0,30}tokens)",
    r"(?:exceeds?|maximum|limit).{0,40}\b(?:bytes|mb|mib|megabytes)\b",
)

OUTPUT_CAP = _any(
    r"max(?:imum)?[ _]?(?:completion_|new_|output_|output )?tokens\W{0,3}(?: value)?,? ?(?:is |are )?"
    r"(?:too (?:large|high|big)|must be|should be|is limited|cannot (?:be|exceed)|exceeds?)",
    r"(?:invalid|valid range of|out of range).{0,20}max_?(?:completion_|new_|output_)?tokens",
    r"max_?(?:completion_|new_|output_)?tokens.{0,40}\b(?:less than or equal|exceeds the (?:maximum|limit)|is limited)",
    r"supports? at most [\d,]+ (?:completion|output)",
    r"maximum (?:allowed )?number of (?:output|completion) tokens",
    r"(?:output|completion) token limit",
    r"fewer max_tokens|maximum tokens you requested|maxoutputtokens",
)

PARAMETER = _any(
    r"string too long|expected maxlength",
    r"minimum token count|budget_tokens",
    r"malformed input request",
)

# Wordings that `is_exceeded` does not know: they leave out who exceeds what.
OVERFLOW = _any(
    r"(?:prompt|inputs?|request|messages?|conversation|context)(?: is| are)? too (?:long|large) ?(?:for|:|;|$|\.)",
    r"(?:prompt|input|request|context|messages?)(?: is| are)? too long",
    r"maximum (?:context|prompt|input|sequence) length",
    r"max(?:imum)? (?:context|sequence|prompt) (?:length|size|window)",
    r"context[ _-]?(?:window|length|size|limit)\b.{0,40}\b(?:exceed|overflow|reached|full|too small|not enough)",
    r"reduce the (?:length|size) of (?:the|your) (?:messages?|prompt|input|conversation)",
    r"exceeds? the (?:maximum|max) (?:number of )?(?:input |prompt |context )?tokens",
    r"(?:input|prompt|request) tokens exceed|exceed(?:s|ed)? (?:the )?(?:model(?:'s)? )?(?:token|input) limit",
    r"exceeds? the model'?s maximum",
    r"exceeded model token limit|model token limit",
    r"range of input length should be",
    r"prompt (?:exceeds|has too many)|prompt size exceeds|exceeds max(?:imum)? length",
    r"too many (?:input |prompt )?tokens(?! processed)",
    r"input length .{0,40}exceed",
    r"inputs?`? tokens \+",
    r"maximum number of tokens",
    r"token limit (?:of|is) [\d,]+.{0,40}exceed",
    r"(?:loaded|model) .{0,30}context length of (?:only )?[\d,]+",
    r"prompt contains [\d,]+ tokens",
    r"content is too long|input is too large|conversation is too long|longer than the (?:maximum )?model",
    r"tokens?\b.{0,40}exceeds? (?:the )?max(?:imum)?\b.{0,20}(?:tokens|length)",
    r"token count.{0,60}only supports|(?:inputs?|prompt)`? must have (?:less|fewer) than",
    r"token length.{0,10}too long|exceed max message tokens",
    r"(?:exceeds?|over|more than) (?:the )?max(?:imum)? tokens?\b",
    r"too long to fit|prompt length .{0,30}(?:exceed|longer)|max_(?:seq|model)_len",
    r"max input (?:length|tokens)|max tokens of [\d,]+ exceeded|size limit exceeded by",
    r"(?:reached|greater than|exceeds?) the context length|reached context length",
    r"超长|输入.{0,8}过长|上下文.{0,8}(?:过长|超)|超过.{0,16}(?:上下文|长度|token)",
    *sorted(OVERFLOW_CODES - {"1261"}),
)

SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_GIVEN = _any(
    r"\b(?:prompt|inputs?|messages?|conversation|history|request(?:ed)?|session|sequence|context)(?:_?tokens)?\b(?![\[._])",
    r"(?:prompt|input|context)_(?:tokens|length)|\btokens? (?:count|length)|(?:number|count) of tokens",
    r"tokens in\b|\btokens?\b.{0,20}[+>]",
)
"""What may be too large: what was sent. A field of it, such as messages[0].name, is not."""
_EXCEEDS = _any(
    r"exceed|surpass|overflow|\bbeyond\b|\babove\b|[\d)] > \(?(?:\d|max)|\bonly (?:\w+ )?\d",
    r"(?:larger|longer|greater|higher|bigger|more) than",
    r"too (?:long|large|big|many)|\d (?:tokens )?(?:is |are )?not supported|(?:not|n't|cannot) fit|outgrown",
    r"(?:must|should) be (?:less|smaller|shorter|fewer|lower|at most)|(?:must|should) have (?:less|fewer) than",
    r"\d,? (?:model |token )?limit:? \d",
)
_ITS_LIMIT = _any(
    r"\btokens?\b|\bcontext\b|\bwindow\b|max_\w*(?:len|length|tokens)\b|session max length",
    r"\b(?:this|the|your) model\b|for \S+ model\b|model(?:'s)? (?:\w+ ){0,3}(?:limit|length|maximum)",
    r"max(?:imum)? (?:model|input|prompt|sequence|allowed) (?:\w+ )?(?:length|size)",
)
"""Whose limit it is: the model's, or one counted in tokens."""
_OTHER_LIMIT = _any(
    r"\b(?:images?|audio|video|tools?|functions?|stop|metadata|schema|logit_bias|names?|description|field|string|key)\b",
    r"\b(?:seconds|minutes|month|restarts?|retries|bytes|[kmg]i?b|concurren\w*|quota)\b|\bper[ -]\w+",
    r"^(?!.*\b(?:prompt|inputs?|messages)\b).*\b(?:output|completion)\b",
)
TOKEN_COUNT = re.compile(rf"{N} tokens", re.IGNORECASE)


def is_exceeded(sentence: str) -> bool:
    """Whether a sentence says that what was sent exceeds a limit of the model's, in whatever words."""
    return all(part.search(sentence) for part in (_GIVEN, _EXCEEDS, _ITS_LIMIT)) and not _OTHER_LIMIT.search(sentence)


EXPLICIT_CONTEXT = _any(
    r"context[ _-]?(?:window|length|size|limit)",
    r"prompt (?:is )?too long",
    r"exceed_context_size",
    r"maximum number of tokens",
)
"""With a server error, a sentence that names the context or says by how much it is exceeded."""

_SUMS = (
    r"in the (?:completion|output)\)",
    r"input length and `?max_tokens",
    r"requested [\d,]+ output tokens",
    r"prompt and prediction|prompt \+ (?:completion|max)|input and (?:maximum )?output tokens",
    r"tokens for the completion|and requested [\d,]+ output",
    r"tokens?`? (?:\+|plus|and) `?max_(?:\w+_)?tokens",
)
SUM = _any(*_SUMS)
WITH_OUTPUT = _any(*_SUMS, r"max_?(?:new_|completion_|output_)?tokens`?'? (?:must|is too large)")
"""The request and the room for the answer together are too large: first lower the answer's room."""

EITHER = _any(r"(?:messages|prompt|input) or (?:the )?completion")
"""The provider leaves open which of the two is too large."""

LIMITS = (
    rf"limit:? {N}, (?:used:? {N}, )?requested",
    rf"maximum context length:? {N}",
    rf"(?:context|sequence|model|input) length(?: is| of)?(?: only)? {N}",
    rf"max input tokens:? {N}|max_(?:seq|model)_len {N}",
    rf"supports (?:only )?up to {N}|(?:less|fewer) than {N} tokens",
    rf"{N} maximum",
    rf"tokens allowed {N}",
    rf"(?:configured|token) limit(?: of|:| is)? {N}",
    rf"limit (?:of|is) {N}|exceeds? the limit {N}|[\d,]+(?: tokens)? > {N}",
    rf"(?:prompt|input) length (?:is|of) {N}",
    rf"context (?:size|window)(?: of)? {N}",
    rf"(?:must be <=|cannot exceed) {N}",
    rf"should be \[\d+, ?{N}\]",
    rf"valid range of max_\w*tokens is \[\d+, ?{N}\]",
    rf"supports at most {N}",
    rf"(?:limit|maximum|max)(?:(?! by )[^\d.]){{0,40}}{N} tokens",
)
ASKED = (
    rf"requested:? {N}",
    rf"resulted in {N}",
    rf"requested(?: about)? {N} tokens",
    rf"request {N} tokens|request \({N} tokens\)",
    rf"total (?:of|length) {N}|supplied {N} tokens|prompt \(length {N}\)|prompt length {N}",
    rf"input token count(?: is)?:? {N}|number of input tokens {N}|output tokens {N}",
    rf"too long: {N}",
    rf"token count (?:of )?{N}",
    rf"contains {N} tokens",
    rf"input \({N} tokens\)",
    rf"length {N} exceeds",
    rf"current length is {N}",
    rf"requested tokens {N}",
    rf"received {N}",
    rf"the first {N} tokens|{N}(?: tokens)? > \d",
    rf"whereas you provided {N}|max_tokens: {N} >",
)
INPUTS = (
    rf"{N} in the messages",
    rf"{N} of text input",
    rf"{N} input tokens",
    rf"exceed context limit: {N} \+",
    rf"given: {N} `?inputs`? tokens",
)
EXTRA_INPUTS = (rf"{N} of tool input", rf"{N} in the functions")
OUTPUTS = (
    rf"{N} in the (?:completion|output)",
    rf"requested {N} output tokens",
    rf"exceed context limit: [\d,]+ \+ {N}",
    rf"is too large: {N}",
    rf"and {N} `?max_new_tokens",
)

PROVIDER_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("azure", _any(r"content_length_exceeded", r"\bazure\b")),
    ("mistral", _any(r"prompt contains [\d,]+ tokens", r"too large for model with", r"prompt_too_long")),
    ("xai", _any(r"maximum prompt length is")),
    ("cerebras", _any(r"current length is [\d,]+ while limit is")),
    ("groq", _any(r"(?:^|\n)please reduce the length of the messages or completion\.?(?:\n|$)")),
    ("ai21", _any(r"prompt has too many tokens")),
    ("openrouter", _any(r"this endpoint's maximum context length", r"maximum allowed input length")),
    ("llamacpp", _any(r"available context size", r"exceed_context_size_error")),
    ("llama-cpp-python", _any(r"requested tokens .{0,20}exceed context window")),
    ("lm_studio", _any(r"context the overflows", r"loaded with context length")),
    ("ollama", _any(r"exceeded max context length by")),
    ("tgi", _any(r"max_new_tokens")),
    ("cohere", _any(r"prompt and prediction")),
    ("moonshot", _any(r"exceeded model token limit")),
    ("dashscope", _any(r"range of input length should be")),
    ("zai", _any(r"prompt exceeds max length", r"model_context_window_exceeded")),
    ("minimax", _any(r"context window exceeds limit")),
    ("github_copilot", _any(r"prompt token count of", r"model_max_prompt_tokens_exceeded")),
    ("fireworks_ai", _any(r"prompt is too long: [\d,]+, model maximum")),
    (
        "bedrock",
        _any(r"validationexception.*(?:token|too long)", r"input is too long", r"exceeds the model'?s maximum"),
    ),
    ("anthropic", _any(r"prompt is too long", r"input length and `?max_tokens`? exceed", r"anthropic")),
    ("google", _any(r"exceeds the maximum number of tokens", r"content is too long")),
    ("together_ai", _any(r"input \([\d,]+ tokens\) is longer than the model's")),
    (
        "openai",
        _any(
            r"this model's maximum context length",
            r"reduce the length of the messages",
            r"exceeds the context window of this model",
            r"exceed the configured limit",
        ),
    ),
    ("mistral", _any(r"context length exceeded", r"maximum number of tokens")),
    ("openrouter", _any(r"context_length_exceeded")),
    ("anthropic", _any(r"too many tokens")),
)
"""Which provider words a context overflow like this, the most specific first. Names are NeuroLink's where possible."""
