"""nca compact: the engine as a filter over any OpenAI-shaped transcript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings
    from nca.library import CompactionResult, Summarizer


def compact(
    file: Annotated[str, typer.Argument(help="A JSON array, JSON lines or {messages}; - reads standard input.")] = "-",
    model: Annotated[str, typer.Option("--model", "-m", help="The model that the budget follows from.")] = "",
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    target: Annotated[str | None, typer.Option(help="The share of the budget to come down to.")] = None,
    stages: Annotated[
        str | None, typer.Option(help="Which stages, in which order: prune,deduplicate,summarize,truncate.")
    ] = None,
    summarizer: Annotated[str | None, typer.Option(help="The model that writes the summary, or none.")] = None,
    focus: Annotated[str, typer.Option(help="What the summary should keep above all.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One object with the numbers and the messages.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write there instead of to standard output.")] = None,
) -> int:
    """Bring a transcript to its target and print it as JSON lines (or with --json as one object)."""
    import os

    from nca.cli.opening import settings_of
    from nca.config.layers import load
    from nca.library import compact_loaded
    from nca.transcripts import read_transcript

    given = settings_of(
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        summarizer=summarizer,
        target=target,
        stages=stages,
    )
    loaded = load(project=Path.cwd(), env=os.environ, flags=given)
    transcript = read_transcript(read_input(file), "standard input" if file == "-" else file)
    result = compact_loaded(
        transcript.messages,
        loaded,
        model=model,
        summarizer=summarizer_of(loaded),
        focus=focus,
        tools=transcript.tools,
    )
    _write(result, as_json, out)
    if not as_json:
        _say(result)
    return 0


def read_input(file: str) -> bytes:
    """A file's bytes, or those of standard input. Raises UsageError."""
    import sys

    from nca.errors import UsageError

    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}).") from error


def _write(result: CompactionResult, as_json: bool, out: Path | None) -> None:
    import sys

    import msgspec

    from nca.errors import NcaError
    from nca.terminal.render.sanitize import json_to_terminal

    if as_json:
        data = msgspec.json.encode(result) + b"\n"
    else:
        data = b"".join(msgspec.json.encode(row) + b"\n" for row in result.messages)
    if out is None:
        sys.stdout.buffer.write(json_to_terminal(data))
        sys.stdout.buffer.flush()
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise NcaError(f"{out}: cannot be written ({error.strerror or error}).") from error


def _say(result: CompactionResult) -> None:
    """One line on stderr, so that what is piped on stays clean."""
    from nca.terminal.render.sanitize import one_line

    if result.compacted:
        kept = result.kept_facts
        line = (
            f"Compacted {result.tokens_before:,} → {result.tokens_after:,} tokens"
            f" ({', '.join(result.stages_used)}; kept {kept['kept']} of {kept['total']} facts)."
        )
    else:
        line = f"Nothing to compact: {result.tokens_before:,} tokens, the target is {result.target_tokens:,}."
    typer.echo(" ".join([line, *map(one_line, result.notices)]), err=True)


def summarizer_of(loaded: LoadedSettings) -> Summarizer | None:
    """A filter asks no model unless one is named."""
    name = loaded.settings.model.summarizer
    if not name or name == "none":
        return None
    return lambda messages: _ask(name, loaded, messages)


def _ask(name: str, loaded: LoadedSettings, messages: list[dict[str, Any]]) -> str:
    """One question to one model."""
    import asyncio
    import os

    from nca.models.choose import named, open_model
    from nca.models.client import ModelRequest

    async def ask() -> str:
        settings = loaded.for_model(name).settings
        model = await open_model(settings.model, named(name, settings.model, os.environ), lambda _: None)
        try:
            # What is asked leaves a fifth of the summarizer's window to the answer (see nca.context.summary_writer).
            limit = min(settings.context.summarize.max_tokens, model.facts.window_tokens // 5)
            return (await model.ask(ModelRequest(messages, [], limit), lambda _: None)).message.text
        finally:
            await model.close()

    return asyncio.run(ask())
