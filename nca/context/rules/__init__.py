"""The rules that providers have for a request.

A rule answers two questions: where a view may not be cut, and how to repair a broken log.
`cut_points` combines the first answers, `nca.context.request` applies the second in the order of REPAIRS, then of
PROVIDER_REPAIRS.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from nca.context.rules.calls import (
    pair_spans,
    with_results_after_calls,
    with_results_in_order,
    with_unique_ids,
    with_valid_arguments,
    with_whole_pairs,
)
from nca.context.rules.messages import (
    in_plain_words,
    with_assistant_after_tool,
    with_media_beside_results,
    with_one_assistant,
    with_system_first,
    with_user_first,
    without_empty,
    without_nothing,
)
from nca.context.rules.steps import Repair, Spans, open_step_spans

CUTS: tuple[Spans, ...] = (pair_spans, open_step_spans)
REPAIRS: tuple[Repair, ...] = (
    in_plain_words,
    with_media_beside_results,
    with_results_in_order,
    with_whole_pairs,
    with_results_in_order,
    without_empty,
    with_system_first,
    with_user_first,
    with_one_assistant,
    with_valid_arguments,
    with_unique_ids,
)
WHOLE_REPAIRS: tuple[Repair, ...] = (
    in_plain_words,
    with_system_first,
    with_user_first,
    with_one_assistant,
    with_unique_ids,
)
"""The repairs that look beyond a block: even regular messages (see `regular_spans`) may need them."""
BLOCK_REPAIRS: tuple[Repair, ...] = (with_results_after_calls, with_whole_pairs, without_empty, with_valid_arguments)
"""The repairs that look at nothing outside a block."""
_MISTRAL: tuple[Repair, ...] = (with_assistant_after_tool, partial(with_unique_ids, form="nine"))
_PAIRS: tuple[Repair, ...] = (with_results_after_calls, with_whole_pairs, with_results_after_calls)
_OPENAI: tuple[Repair, ...] = (
    *_PAIRS,
    without_nothing,
    with_valid_arguments,
    partial(with_unique_ids, form="any"),
)
_FULL: tuple[Repair, ...] = (
    *_PAIRS,
    without_empty,
    with_system_first,
    with_valid_arguments,
)
_CHAT: tuple[Repair, ...] = (in_plain_words, with_media_beside_results)
PROGRAM_REPAIRS: Mapping[str, tuple[Repair, ...]] = {
    "openai": (with_media_beside_results, *_OPENAI),
    "responses": _OPENAI,
    "anthropic": (*_CHAT, *_FULL, with_user_first, with_unique_ids),
    "anthropic's blocks": (*_FULL, with_user_first, with_unique_ids),
    "gemini": (
        *_CHAT,
        with_results_in_order,
        *_FULL,
        with_results_in_order,
        with_user_first,
        with_one_assistant,
        with_unique_ids,
    ),
    "mistral": (*_CHAT, *_FULL, *_MISTRAL),
}
"""The repairs of messages that a program keeps: what their provider would take stays as it is. By the provider's family
(`nca.context.validate.FAMILIES`), or by the shape that one provider has for itself."""


class RuleSet(NamedTuple):
    """The repairs of a request: all, and those that regular messages may need."""

    all: tuple[Repair, ...]
    of_regular: tuple[Repair, ...]


def _of_chat(*more: Repair) -> RuleSet:
    return RuleSet((*REPAIRS, *more), (*WHOLE_REPAIRS, *more))


def _of_program(rules: tuple[Repair, ...]) -> RuleSet:
    return RuleSet(rules, tuple(rule for rule in rules if rule not in BLOCK_REPAIRS))


OF_A_PROGRAM = "a program's "
USUAL = _of_chat()
RULE_SETS: Mapping[str, RuleSet] = {
    "": _of_chat(with_assistant_after_tool),
    "mistral": _of_chat(*_MISTRAL),
    "codestral": _of_chat(*_MISTRAL),
    **{f"{OF_A_PROGRAM}{name}": _of_program(rules) for name, rules in PROGRAM_REPAIRS.items()},
}
"""The repairs by the provider, if it has not the USUAL ones. Under "": those that every provider takes, while the
provider is unknown."""
