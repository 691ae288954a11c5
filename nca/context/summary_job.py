"""What is the same for every summary of one compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nca.config.schema import ContextSettings


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """One compaction's orders.

    focus          what a summary should keep above all
    input_tokens   raw tokens that the summarizer's window leaves for what it reads
    has_recall     whoever reads the record can look up what it leaves out: it has numbers and says how
    changed_files  what the record of files knows to have changed: the message behind which, and the path
    """

    settings: ContextSettings
    budget_tokens: int
    focus: str
    input_tokens: int
    has_summarizer: bool = True
    has_recall: bool = True
    changed_files: Sequence[tuple[int, str]] = ()
