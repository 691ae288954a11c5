"""Fit tool outputs and attached files into a window."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

from nca.config.paths import PathLike, read_path
from nca.context import admission
from nca.context.admission import FILE_RATIO, MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES, Limits, admit_output
from nca.context.calibration import Calibration
from nca.errors import NcaError, system_reason
from nca.library.counting import available_input_tokens
from nca.library.inputs import read_choice, read_mappings, read_number, read_text, read_whole
from nca.messages import clean_text
from nca.models.catalog import describe
from nca.safe_files import write_atomically

Direction = Literal["both", "head", "tail"]
PRIVATE_FOLDER = 0o700
"""A tool's output may hold secrets: only its owner reads what is saved of it."""


@dataclass(frozen=True, slots=True)
class TruncatedOutput:
    """A tool's output within its limits.

    content         the text that stays, with a notice if something is missing
    saved_path      the file with the whole output; None if nothing was cut or `save_to` was not given
    original_size   of the whole, in bytes of UTF-8
    """

    content: str
    truncated: bool
    saved_path: str | None
    original_size: int


def truncate_tool_output(
    text: str,
    *,
    max_bytes: int = MAX_OUTPUT_BYTES,
    max_lines: int = MAX_OUTPUT_LINES,
    direction: Direction = "both",
    save_to: PathLike | None = None,
) -> TruncatedOutput:
    """Cut a tool's output to its limits, on character boundaries.

    Added lines (the notice, the file's name) count towards `max_bytes`; if that is too little for
    both, the text alone is cut. They do not count towards `max_lines`.

    direction   which end stays: "both" (a quarter head, the rest tail), "head" or "tail"
    save_to     keeps the whole if something is cut: an existing folder (the file's name follows from the
                text), or a file, which is replaced; missing folders are created. The notice names it

    Raises UsageError for a bad argument, NcaError if the file cannot be written.
    """
    whole = read_text(text, "text")
    limits = Limits(
        read_whole(max_bytes, "max_bytes", 1),
        read_whole(max_lines, "max_lines", 1),
        read_choice(direction, "direction", get_args(Direction)),
    )
    folder = None if save_to is None else read_path(save_to, "save_to")
    admitted = admit_output(whole, **asdict(limits))
    if not admitted.is_cut:
        return TruncatedOutput(admitted.text, False, None, admitted.original_bytes)
    saved = None if folder is None else str(_save(whole, folder))
    added = "" if saved is None else f"\n[Full output saved to {clean_text(saved)}]"
    return TruncatedOutput(_fitted(whole, added, limits), True, saved, admitted.original_bytes)


def _fitted(text: str, added: str, limits: Limits) -> str:
    """The text with its notice and `added` at the end, in all within the limit of bytes."""
    room = limits.max_bytes
    while room > 0:
        content = admit_output(text, **asdict(replace(limits, max_bytes=room))).text + added
        over = len(content.encode()) - limits.max_bytes
        if over <= 0:
            return content
        room -= over
    raw = text.encode()
    kept = raw[-limits.max_bytes :] if limits.direction == "tail" else raw[: limits.max_bytes]
    return kept.decode("utf-8", "ignore")


def file_token_budget(
    context_window: int, used_tokens: int = 0, max_output_tokens: int = 0, *, file_ratio: float = FILE_RATIO
) -> int:
    """Tokens that attached files may take: floor((window - used - output) * 0.6), never below 0, as in NeuroLink.

    `max_output_tokens` is used as given, even 0. Raises UsageError.
    """
    return admission.file_token_budget(
        read_whole(context_window, "context_window", 1),
        read_whole(used_tokens, "used_tokens"),
        read_whole(max_output_tokens, "max_output_tokens"),
        file_ratio=read_number(file_ratio, "file_ratio", 0, 1),
    )


def fit_files(
    files: Sequence[Mapping[str, Any]],
    *,
    budget_tokens: int | None = None,
    model: str = "",
    provider: str = "",
    context_window: int = 0,
    max_output_tokens: int = 0,
    used_tokens: int = 0,
) -> list[dict[str, Any]]:
    """Fit files into one budget.

    Files under 100 KiB stay whole if they fit together; the larger ones share the rest in proportion to
    their size. If even the small ones do not fit, all share.

    files           mappings with `content` (text) and, if known, `path`; other keys are kept
    budget_tokens   None: 60% of the model's window less the answer and `used_tokens`

    Returns new mappings in the same order, with the fitting `content`, `truncated` and `original_size` (bytes). A file
    above 5 MiB shows its first 2,000 characters; a cut ends at a sentence and says so; a file without room
    has an empty content. Together they cost at most the budget. Raises UsageError, ConfigError.
    """
    rows = read_mappings(files, "files")
    texts = [read_text(row.get("content"), f"files, entry {index}: content") for index, row in enumerate(rows, 1)]
    for index, row in enumerate(rows, 1):
        read_text(row.get("path") or "", f"files, entry {index}: path")
    used = read_whole(used_tokens, "used_tokens")
    if budget_tokens is None:
        free = available_input_tokens(model, provider, max_output_tokens, context_window=context_window)
        most = admission.file_token_budget(free, used, 0)
    else:
        most = read_whole(budget_tokens, "budget_tokens")
    known = read_text(provider, "provider") or describe(read_text(model, "model")).provider
    # Half a token a file: each one's count is rounded by itself.
    raw_budget = max(0, int((most - len(rows) / 2) / Calibration.unlearned(known).ratio))
    pairs = [(str(row.get("path") or ""), text) for row, text in zip(rows, texts, strict=True)]
    fitted = admission.fit_files(pairs, raw_budget)
    return [
        {**row, "content": one.text, "truncated": one.is_cut, "original_size": one.original_bytes}
        for row, one in zip(rows, fitted, strict=True)
    ]


def _save(text: str, place: Path) -> Path:
    """Write the whole, readable by its owner only; the same text in a folder gives the same file."""
    try:
        if os.path.isdir(place):
            digest = blake2b(text.encode("utf-8"), digest_size=8).hexdigest()
            place = place / f"tool-output-{digest}.txt"
        place.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_atomically(place, text.encode())
    except (OSError, ValueError) as error:
        raise NcaError(f"save_to: {clean_text(str(place))!r} cannot be written ({system_reason(error)}).") from error
    return place.absolute()
