"""`nca compact`: compact a transcript, as a filter."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags
from nca.cli.flags import open_source, print_notes, stored_session
from nca.cli.printing import echo
from nca.cli.startup import settings_of
from nca.terminal.render.sanitize import json_to_terminal, one_line

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings
    from nca.library.compaction import CompactionResult
    from nca.library.engine import Summarizer

STAGES_HELP = (
    "The stages in order, with commas: prune, deduplicate, summarize, truncate. A result that is still over the"
    " budget is truncated in any case."
)


def compact(
    file: flags.ConversationFile = "-",
    model: flags.CountedModel = "",
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    target: Annotated[str | None, typer.Option(help="The share of the budget to compact down to.")] = None,
    stages: Annotated[str | None, typer.Option(help=STAGES_HELP)] = None,
    summarizer: flags.Summarizer = None,
    fit: flags.Fit = None,
    focus: Annotated[str, typer.Option(help="What summaries should keep above all.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the figures and messages.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file, not to standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file of --out if it exists.")] = False,
) -> int:
    """Compact a transcript to its target size and print it as JSON lines. No model is called without --summarizer.

    Messages of OpenAI's and Anthropic's shape and Responses items come back in their own shape; with a system prompt
    beside them they come back as one JSON object.
    """
    from nca.config.layers import load
    from nca.library.compaction import compact_loaded
    from nca.transcripts.conversation_file import read_plain, transcript_of
    from nca.transcripts.export_formats import refuse_existing

    if out is not None:
        refuse_existing(out, overwrites=force)
    given = settings_of(
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        summarizer=summarizer,
        target=target,
        stages=stages,
        fit=fit,
    )
    loaded = load(project=Path.cwd(), env=os.environ, flags=given)
    if (copy := stored_session(file)) is not None:
        transcript = transcript_of(copy)
    else:
        source, key = open_source(file)
        transcript, notes = read_plain(source, key=key)
        print_notes(notes)
    result = compact_loaded(
        transcript.whole or transcript.messages,
        loaded,
        model=model or transcript.model,
        summarizer=summarizer_of(loaded),
        focus=focus,
        tools=transcript.tools,
    )
    _write(result, as_json, out, overwrites=force)
    if not as_json:
        echo(_report(result), err=True)
    return 0


def summarizer_of(loaded: LoadedSettings) -> Summarizer | None:
    """The writer of summaries: the model that the settings name, or None for code alone."""
    name = loaded.settings.model.summarizer
    if not name or name == "none":
        return None
    return lambda messages: _ask(name, loaded, messages)


def _write(result: CompactionResult, as_json: bool, out: Path | None, *, overwrites: bool) -> None:
    import msgspec

    from nca.transcripts.export_formats import write_private

    rows: Sequence[Any] = result.messages
    if as_json:
        rows = [{**msgspec.to_builtins(result), "kept_facts": result.kept_facts, "kept": result.kept}]
    elif result.request is not None and result.shape != "openai":
        rows = [result.request]
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    if out is None:
        sys.stdout.buffer.write(json_to_terminal(data))
        sys.stdout.buffer.flush()
    else:
        write_private(out, data, overwrites=overwrites)


def _report(result: CompactionResult) -> str:
    """One line for standard error, so that standard output stays clean for a pipe."""
    from nca.context.retention import kept_in_words
    from nca.terminal.render.event_lines import in_shell

    if result.compacted:
        kept = f"; kept {kept_in_words(result.kept)}" if result.kept else ""
        numbers = f"{result.tokens_before:,} → {result.tokens_after:,} tokens"
        line = f"Compacted {numbers} ({', '.join(result.stages_used)}{kept})."
    else:
        line = f"Nothing to compact: {result.tokens_before:,} tokens, the target is {result.target_tokens:,}."
    return " ".join([line, *(one_line(in_shell(notice)) for notice in result.notices)])


def _ask(name: str, loaded: LoadedSettings, messages: list[dict[str, Any]]) -> str:
    """The model's answer to one request."""
    import asyncio

    from nca.models.choose import open_model
    from nca.models.client import ModelRequest

    async def ask() -> str:
        settings = loaded.for_model(name).settings
        model = await open_model(name, loaded)
        try:
            # The request leaves a fifth of the summarizer's window for the answer (see nca.context.summary_writer).
            limit = min(settings.context.summarize.max_tokens, model.facts.window_tokens // 5)
            return (await model.ask(ModelRequest(messages, [], limit), lambda _: None)).message.text
        finally:
            await model.close()

    return asyncio.run(ask())
