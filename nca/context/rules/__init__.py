"""The rules that providers have for a request, one rule a file.

Each rule answers two questions: where may a view not be cut, and what to do with a log that arrives broken.
`cut_points` intersects the first answers, `nca.context.request` applies the second in the order of REPAIRS.
"""

from nca.context.rules.arguments import ValidArguments
from nca.context.rules.empty import NoEmptyMessages
from nca.context.rules.ids import UniqueIds
from nca.context.rules.media import MediaBesideResults
from nca.context.rules.open_step import OpenStep
from nca.context.rules.parallel_batch import ParallelBatch
from nca.context.rules.rule import Rule, Span
from nca.context.rules.system_first import SystemFirst
from nca.context.rules.tool_pairs import ToolPairs
from nca.context.rules.turn_order import AssistantAfterTool, OneAssistant, UserFirst

CUTS: tuple[Rule, ...] = (ToolPairs(), ParallelBatch(), OpenStep())
REPAIRS: tuple[Rule, ...] = (
    MediaBesideResults(),
    ParallelBatch(),
    ToolPairs(),
    ParallelBatch(),
    NoEmptyMessages(),
    SystemFirst(),
    UserFirst(),
    OneAssistant(),
    ValidArguments(),
    UniqueIds(),
)
WHOLE_REPAIRS: tuple[Rule, ...] = (SystemFirst(), UserFirst(), OneAssistant(), UniqueIds())
"""The repairs that regular messages (see `regular_spans`) may need all the same: they look at what stands elsewhere."""
BLOCK_REPAIRS: tuple[Rule, ...] = (ParallelBatch(), ToolPairs(), NoEmptyMessages(), ValidArguments())
"""The repairs that look at nothing outside a block."""

__all__ = ["BLOCK_REPAIRS", "CUTS", "REPAIRS", "WHOLE_REPAIRS", "AssistantAfterTool", "Rule", "Span"]
