"""Count tokens, measure a request, and truncate a text to a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nca.compat.presets import CODE_PRESETS, FIXED_PRESETS, PRESETS, PROSE_CHARS_PER_TOKEN, PresetName
from nca.context.budget import Budget
from nca.context.calibration import Calibration
from nca.context.meter import Meter
from nca.context.policy import is_due
from nca.context.request import of_a_program
from nca.context.tokens import text_tokens
from nca.errors import UsageError
from nca.library import inputs
from nca.messages import Message, clean_text
from nca.models.catalog import describe
from nca.shapes.shaped import ShapedMessages
from nca.vocabulary import fitting_start, within

ELLIPSIS = "..."
"""Ends a text that was cut, as in NeuroLink."""
SENTENCE_SHARE = 0.5
"""A text is cut after a sentence only if at least this share of what fits stays, as in NeuroLink."""
LOWEST_CHARS_PER_TOKEN, HIGHEST_CHARS_PER_TOKEN = 0.1, 100.0

Rows = list[dict[str, Any]]
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """How full the next request is. Counts in tokens; `breakdown` sums to estimated_input_tokens."""

    within_budget: bool
    estimated_input_tokens: int
    available_input_tokens: int
    usage_ratio: float
    should_compact: bool
    breakdown: dict[str, int]


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """A text within a budget, and whether it was cut."""

    text: str
    truncated: bool


def check_context_budget(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    model: str = "",
    context_window: int = 0,
    max_output_tokens: int = 0,
    system_prompt: str = "",
    current_prompt: str = "",
    tools: Sequence[Mapping[str, Any]] | None = None,
    files: Sequence[Mapping[str, Any]] | None = None,
    threshold: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> BudgetCheck:
    """Measure the next request. `files`: mappings with `content`; `threshold`: share of the budget, None: the setting.

    `messages` have any shape that `compact` takes; the tools, the model and the longest answer of an object count where
    no argument says them. They may be empty if there is a system prompt, a current prompt, a tool or a file to measure.
    Raises InvalidMessages, UsageError, ConfigError.
    """
    loaded = inputs.settings_of(
        settings, context_window=context_window, max_output_tokens=max_output_tokens, threshold=threshold
    )
    shaped = inputs.read_conversation(messages, may_be_empty=bool(system_prompt or current_prompt or tools or files))
    model = inputs.read_text(model, "model") or shaped.model
    loaded = loaded.with_default("model.max_output_tokens", shaped.answer_tokens).for_model(model)
    facts = inputs.facts_of(model, loaded)
    budget = inputs.budget_of(facts, loaded)
    system = inputs.read_text(system_prompt, "system_prompt")
    defined = inputs.read_tools(shaped.tools if tools is None else tools)
    count_as = loaded.settings.context.count_as
    meter = _meter(shaped, model, facts.provider, defined, count_as=count_as, system=system)
    attached = sum(_file_tokens(meter, row, index) for index, row in enumerate(inputs.read_mappings(files, "files"), 1))
    read = shaped.messages
    if inputs.read_text(current_prompt, "current_prompt"):
        read.append(Message("user", clean_text(current_prompt)))
    history = inputs.history_of(read)
    measured = meter.measure(history, budget)
    measured = replace(measured, used_tokens=measured.used_tokens + attached)
    return BudgetCheck(
        within_budget=measured.fits,
        estimated_input_tokens=measured.used_tokens,
        available_input_tokens=budget.budget_tokens,
        usage_ratio=measured.usage_ratio,
        should_compact=is_due(measured, loaded.settings.context),
        breakdown={**measured.breakdown, "attachments": measured.breakdown["attachments"] + attached},
    )


def estimate_tokens(
    text: str,
    *,
    provider: str = "",
    preset: PresetName | Literal[""] = "",
    is_code: bool = False,
    chars_per_token: float | None = None,
) -> int:
    """Tokens of one text; 0 for an empty one.

    provider          whose tokenizer: o200k times its assumed factor; "": o200k. neurolink: its multiplier
    preset            "": the engine's own; nca (its first design), neurolink, neuron, cowagent: see nca.compat.presets
    is_code           3 characters a token instead of 4 (neurolink; the others know no difference)
    chars_per_token   overrides that; "": 4 is usual, another number scales; cowagent has no such option

    Raises UsageError naming the argument.
    """
    name = _preset(preset)
    usual = CODE_PRESETS.get(name, PROSE_CHARS_PER_TOKEN) if is_code else PROSE_CHARS_PER_TOKEN
    density = _density(name, chars_per_token, usual)
    whole, spoken = inputs.read_text(text, "text"), inputs.read_text(provider, "provider")
    if name:
        return PRESETS[name].text(whole, spoken, density)
    return round(text_tokens(whole) * Calibration.unlearned(spoken).ratio * PROSE_CHARS_PER_TOKEN / density)


def estimate_messages_tokens(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    provider: str = "",
    preset: PresetName | Literal[""] = "",
    tools: Sequence[Mapping[str, Any]] | None = None,
    chars_per_token: float | None = None,
) -> int:
    """Tokens of a request: the messages, their framing and the tool definitions; 0 for an empty list.

    Without a preset this is what `check_context_budget` estimates for the same messages and tools, as the model of an
    object counts unless a provider is named; `chars_per_token` (4 is usual) scales it.
    Raises InvalidMessages, UsageError.
    """
    name, spoken = _preset(preset), inputs.read_text(provider, "provider")
    shaped = inputs.read_conversation(messages, may_be_empty=True)
    defined = inputs.read_tools(shaped.tools if tools is None else tools)
    density = _density(name, chars_per_token, PROSE_CHARS_PER_TOKEN)
    if not shaped.messages and not defined:
        return 0
    if name:
        return PRESETS[name].request(shaped.messages, defined, spoken, density)
    model = "" if spoken else shaped.model
    meter = _meter(shaped, model, spoken or describe(model).provider, defined)
    return round(meter.used(inputs.history_of(shaped.messages)) * PROSE_CHARS_PER_TOKEN / density)


def truncate_to_token_budget(text: str, max_tokens: int, provider: str = "") -> TruncatedText:
    """The beginning of a text that `estimate_tokens` counts at most `max_tokens`, "..." included.

    It ends after a sentence if one ends in the second half of the fitting text, else after a word or a character;
    it is empty if not even "..." fits. Raises UsageError.
    """
    whole, most = inputs.read_text(text, "text"), inputs.read_whole(max_tokens, "max_tokens")
    if estimate_tokens(whole, provider=provider) <= most:
        return TruncatedText(whole, False)
    # Rounded down after half a token more, so that rounding up does not exceed it.
    raw = int((most + 0.499) / Calibration.unlearned(inputs.read_text(provider, "provider")).ratio)
    if text_tokens(ELLIPSIS) > raw:
        return TruncatedText("", True)

    def cut(room: int) -> str:
        return _whole_sentences(whole, len(fitting_start(whole, room))) + ELLIPSIS

    return TruncatedText(within(raw, raw - text_tokens(ELLIPSIS), cut), True)


def _whole_sentences(text: str, fitting_chars: int) -> str:
    """The first `fitting_chars` characters of a text, without the sentence or word that the cut splits."""
    least = int(fitting_chars * SENTENCE_SHARE)
    # One character more is looked at: a sentence may end exactly where the cut is.
    ends = [end.end() for end in _SENTENCE_END.finditer(text, least, fitting_chars + 1)]
    ends = [end for end in ends if least < end <= fitting_chars]
    if ends:
        return text[: ends[-1]].rstrip()
    cut = text[:fitting_chars]
    if text[fitting_chars : fitting_chars + 1].isspace():
        return cut.rstrip()
    words = cut.rsplit(maxsplit=1) if not cut[-1:].isspace() else [cut]
    return words[0].rstrip() if len(words) == 2 and len(words[0]) > least else cut.rstrip()


def _meter(
    shaped: ShapedMessages, model: str, provider: str, tools: Rows, *, count_as: str = "", system: str = ""
) -> Meter:
    """What measures a request that a program keeps."""
    return Meter(
        model=model,
        provider=of_a_program(shaped.rules or provider),
        calibration=Calibration.unlearned(provider, model, count_as=count_as),
        system_prompt=system,
        tools=tools,
    )


def _preset(preset: Any) -> str:
    return inputs.read_choice(preset, "preset", tuple(PRESETS)) if preset != "" else ""


def _density(name: str, chars_per_token: Any, usual: float) -> float:
    if chars_per_token is None:
        return usual
    if name in FIXED_PRESETS:
        raise UsageError(f"chars_per_token: the preset {name} has none to set; valid: None.")
    return inputs.read_number(chars_per_token, "chars_per_token", LOWEST_CHARS_PER_TOKEN, HIGHEST_CHARS_PER_TOKEN)


def _file_tokens(meter: Meter, file: Mapping[str, Any], index: int) -> int:
    content = inputs.read_text(file.get("content"), f"files, entry {index}: content")
    return meter.scaled(text_tokens(content))


def context_window_size(model: str, provider: str = "") -> int:
    """The window of a model, in tokens: from litellm's price map, else NeuroLink's table and its provider defaults.

    model      with or without its provider's prefix; "" for the provider's default
    provider   litellm's or NeuroLink's name; "": the model's name says it

    128,000 for an unknown model. Raises UsageError for anything but text.
    """
    name, prefix = inputs.read_text(model, "model").strip(), inputs.read_text(provider, "provider").strip()
    if prefix and not name.lower().startswith(f"{prefix.lower()}/"):
        name = f"{prefix}/{name}"
    return describe(name).window_tokens


def output_reserve(context_window: int, max_output_tokens: int = 0) -> int:
    """Tokens of a window that are reserved for the answer; never more than half of it.

    max_output_tokens   the longest answer; 0: 35% of the window, at most 32,000

    Raises UsageError for anything but a number of tokens.
    """
    return _budget(context_window, max_output_tokens).reserve_tokens


def available_input_tokens(
    model: str = "", provider: str = "", max_output_tokens: int = 0, *, context_window: int = 0
) -> int:
    """Window less reserve, in tokens. `context_window`, if given, overrides the model's known window.

    Raises UsageError, ConfigError.
    """
    known = context_window_size(model, provider)
    return _budget(inputs.read_whole(context_window, "context_window") or known, max_output_tokens).budget_tokens


def _budget(context_window: int, max_output_tokens: int) -> Budget:
    window = inputs.read_whole(context_window, "context_window", 1)
    return Budget.of(window, inputs.read_whole(max_output_tokens, "max_output_tokens"))
