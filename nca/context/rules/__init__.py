"""The rules that providers have for a request.

A rule answers two questions: where a view may not be cut, and how to repair a broken log.
`cut_points` combines the first answers, `nca.context.request` applies the second in the order of REPAIRS, then of
PROVIDER_REPAIRS.
"""

from collections.abc import Mapping
from functools import partial

from nca.context.rules.calls import (
    pair_spans,
    with_results_in_order,
    with_unique_ids,
    with_valid_arguments,
    with_whole_pairs,
)
from nca.context.rules.messages import (
    with_assistant_after_tool,
    with_media_beside_results,
    with_one_assistant,
    with_system_first,
    with_user_first,
    without_empty,
)
from nca.context.rules.steps import Repair, Spans, open_step_spans

CUTS: tuple[Spans, ...] = (pair_spans, open_step_spans)
REPAIRS: tuple[Repair, ...] = (
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
WHOLE_REPAIRS: tuple[Repair, ...] = (with_system_first, with_user_first, with_one_assistant, with_unique_ids)
"""The repairs that look beyond a block: even regular messages (see `regular_spans`) may need them."""
BLOCK_REPAIRS: tuple[Repair, ...] = (with_results_in_order, with_whole_pairs, without_empty, with_valid_arguments)
"""The repairs that look at nothing outside a block."""
_MISTRAL: tuple[Repair, ...] = (with_assistant_after_tool, partial(with_unique_ids, exactly_nine=True))
PROVIDER_REPAIRS: Mapping[str, tuple[Repair, ...]] = {
    "": (with_assistant_after_tool,),
    "mistral": _MISTRAL,
    "codestral": _MISTRAL,
}
"""Further repairs of single providers. Under "": those that every provider takes, while the provider is unknown."""
