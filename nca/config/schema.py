"""Every setting: its type, default, unit and description; `nca.config.value_types` parses the values.

The one source for the TOML files, the environment, `/config`, its completion, the example and docs/configuration.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from nca.config.extensions import STAGES, stage_names
from nca.config.harmless import HARMLESS, Harmless
from nca.config.hooks import Hook, hook_tables
from nca.config.tables import Injection, Section, status_format, tables
from nca.config.tool_settings import AgentSettings, McpSettings, PermissionSettings, RewindSettings, ToolSettings
from nca.config.value_types import (
    Table,
    ValueType,
    boolean,
    choice,
    file_path,
    model_names,
    number,
    number_or,
    one_line,
    or_word,
    postgres_url,
    ratio,
    setting,
    table,
    text,
    texts,
    whole,
)

INFO_THRESHOLD = 0.60
AUTO = "auto"
"""The window decides."""
PROFILES = ("nca", "neurolink", "cowagent", "neuron", "nexora")
"""Other programs whose settings can be used; nca.compat.names has their values."""


class ModelSettings(Table):
    name: str = setting(
        "",
        model_names(text()),
        "The model, as litellm names it (openai/gpt-4.1, anthropic/…). Empty: the best available one.",
    )
    context_window: int = setting(0, whole(), "The model's context window. 0: look it up.", unit="tokens")
    max_output_tokens: int = setting(
        0, whole(), "Tokens reserved for the answer. 0: 35% of the window, at most max_reserve_tokens."
    )
    max_reserve_tokens: int = setting(
        32_000, whole(1), "The most tokens that the 35% may be. An answer that needs more is continued."
    )
    output_ratio: float = setting(
        0.0, ratio(zero=True), "The same as a share of the window, if max_output_tokens is 0. 0: off."
    )
    images: str = setting(
        "auto",
        choice("auto", "yes", "no", aliases={True: "yes", False: "no"}),
        "Whether the model accepts images. auto: look it up (no for a model at your own endpoint).",
    )
    summarizer: str = setting(
        "",
        model_names(text()),
        "The model that writes summaries. Empty: the chat's model. none: summarize without a model.",
    )
    api_base: str = setting("", text(), "The endpoint's address. Empty: the provider's own.", user_only=True)
    temperature: float | str = setting(
        "provider", number_or("provider", 0, 2), "Sampling temperature. provider: the provider's default."
    )
    reasoning: str = setting(
        "auto",
        choice("auto", "off", "low", "medium", "high", aliases={False: "off", "none": "off"}),
        "How much the model reasons before it answers. auto: the provider's default. Also NAME:high, and /effort.",
    )
    first_token_seconds: float = setting(120.0, number(1, 3600), "Timeout for the first token of an answer.")
    idle_seconds: float = setting(60.0, number(1, 3600), "Timeout between two tokens of an answer.")
    total_seconds: float = setting(1800.0, number(1, 86400), "Timeout for one whole answer.")
    max_retries: int = setting(5, whole(0, 20), "Retries after a temporary failure.")
    fallbacks: tuple[str, ...] = setting(
        (), model_names(texts()), "Models to use, in this order, while the first one's provider is down."
    )

    @property
    def own_temperature(self) -> float | None:
        """The temperature to ask for; None: the provider's default."""
        return None if isinstance(self.temperature, str) else self.temperature


class PruneSettings(Table):
    protect_tokens: int = setting(
        40_000, whole(), "Tokens of the newest tool results to keep; at most a quarter of the budget."
    )
    keep_results: int = setting(2, whole(0, 1000), "Number of the newest tool results to keep.")
    minimum_savings_tokens: int = setting(
        20_000, whole(), "Prune only if it saves this much; at most 10% of the budget."
    )
    protected_tools: tuple[str, ...] = setting(("skill",), texts(), "Tools whose results are never pruned.")
    placeholder: str = setting(
        "[cleared: recall expand={seq}]",
        one_line(),
        "Placeholder for a cleared tool result; {seq} is its message's number.",
    )


class DeduplicateSettings(Table):
    minimum_ratio: float = setting(
        0.3, ratio(zero=True), "Deduplicate only if it saves this share of the tokens from file reads."
    )


class SummarizeSettings(Table):
    max_tokens: int = setting(
        0,
        whole(0, 100_000),
        "Maximum length of a summary that a model writes; at most 10% of the budget. 0: no other limit.",
    )
    deadline_seconds: float = setting(180.0, number(1, 3600), "Timeout for one summary, with all requests it takes.")
    role: str = setting("user", choice("user", "system"), "The role of a summary message.")
    header: str = setting("## Conversation Summary (Earlier Context)", one_line(), "The first line of a summary.")
    form: str = setting(
        "sections", choice("sections", "bullets"), "Format of a summary: nine sections, or a short bullet list."
    )
    ledger_tokens: int = setting(
        0, whole(0, 100_000), "Maximum size of the state of the work in a record. 0: no limit."
    )
    user_turns_tokens: int = setting(
        0, whole(0, 100_000), "Maximum size of your own messages in a record. 0: no limit."
    )


class TruncateSettings(Table):
    fraction: float = setting(0.5, ratio(), "Share of the older turns to drop first.")


class AdmissionSettings(Table):
    max_bytes: int = setting(51_200, whole(200), "Maximum size of a new tool output.")
    max_lines: int = setting(2_000, whole(10), "Maximum number of lines of a new tool output.")
    direction: str = setting(
        "both", choice("both", "head", "tail"), "Which end of a long output to keep. both: 25% head, 75% tail."
    )
    history_chars: int = setting(
        20_000, whole(200), "Longer tool results of earlier turns are cut to their beginning and end."
    )
    shorten_each_turn: bool = setting(
        False, boolean(), "Cut such results at the beginning of every turn, not only when the context is compacted."
    )
    file_ratio: float = setting(0.6, ratio(), "Share of the free window that attached files may use.")


class ContextSettings(Table):
    auto: str = setting(
        "on",
        choice("on", "off", "preview", aliases={True: "on", False: "off"}),
        "Automatic compaction: on, off, or preview (report what it would do, change nothing).",
    )
    stages: tuple[str, ...] = setting(STAGES, stage_names(), "Compaction stages to run, in this order.")
    info_threshold: float = setting(
        INFO_THRESHOLD,
        ratio(),
        "Above this usage, a grey line after a turn shows it. The default gives way to a lower compact_threshold.",
    )
    idle_threshold: float = setting(
        0.0,
        ratio(zero=True),
        "From this usage on, a compaction is prepared while you type. 0: 0.05 below compact_threshold.",
    )
    compact_threshold: float | str = setting(
        AUTO,
        or_word(AUTO, ratio()),
        "From this usage on, the context is compacted before the next request. auto: 80%; in a small window up to 95%.",
    )
    compact_tokens: int = setting(0, whole(), "The same as a number of tokens; the lower one counts. 0: off.")
    target_ratio: float | str = setting(
        AUTO,
        or_word(AUTO, ratio()),
        "Usage that a compaction aims for. auto: 40%; in a small window 20,000 tokens, up to 80%.",
    )
    fit: str = setting(
        "cut",
        choice("cut", "refuse"),
        "A newest message that alone is larger than the window: cut it, or refuse it. `nca run` and the library refuse,"
        " unless this is set.",
    )
    max_tokens: int = setting(0, whole(), "Maximum budget of a request, below the window. 0: the window decides.")
    max_messages: int = setting(0, whole(), "Maximum number of messages that a compaction keeps verbatim. 0: no limit.")
    max_turns: int = setting(
        0, whole(), "Above this many complete turns, the older half is summarized. 0: no limit.", unit="turns"
    )
    preserve_turns: int = setting(
        0,
        whole(0, 1000),
        "Newest turns to keep as they are, in at most half of the target. 0: as many as fit.",
    )
    keep_recent_ratio: float = setting(1.0, ratio(), "Maximum share of the target for earlier messages as they are.")
    provider_side: bool = setting(False, boolean(), "Let the provider compact, where it can: Claude at Anthropic.")
    count_as: str = setting("", text(), "Count tokens as for this provider's models. Empty: the model's own provider.")
    section: tuple[Section, ...] = setting((), tables(Section), "Parts of the system prompt, by priority.")
    inject: tuple[Injection, ...] = setting(
        (), tables(Injection), "Reminders that are sent with your message when due."
    )
    prune: PruneSettings = table(PruneSettings, "Stage 1: replace old tool results by a placeholder")
    deduplicate: DeduplicateSettings = table(DeduplicateSettings, "Stage 2: remove superseded reads of the same file")
    summarize: SummarizeSettings = table(SummarizeSettings, "Stage 3: replace the older messages by a summary")
    truncate: TruncateSettings = table(TruncateSettings, "Stage 4: drop the oldest turns")
    admission: AdmissionSettings = table(AdmissionSettings, "Limits on what enters the context")


class MemorySettings(Table):
    file_path: str = setting(
        ".nca/memory.json",
        file_path(),
        "File for notes. Daily records of trimmed turns go to a folder of the same name next to it.",
    )
    max_notes: int = setting(128, whole(1, 100_000), "Maximum number of notes; the oldest are dropped.", unit="notes")
    auto_compact_on_finish: bool = setting(
        False, boolean(), "At the end of a session, compact it and keep the summary as a note."
    )


class SessionSettings(Table):
    persist: bool = setting(True, boolean(), "Keep sessions on disk.")
    store: str = setting(
        "", postgres_url(), "A PostgreSQL database for the sessions of several machines. Empty: a file.", user_only=True
    )
    retention_days: int = setting(
        0,
        whole(0, 36500),
        "Archive a session when others have been used on more days than this since. 0: never.",
        unit="days",
        user_only=True,
    )
    max_sessions: int = setting(
        0,
        whole(0, 1_000_000),
        "Number of newest sessions to keep besides named, pinned and forked ones; others are archived. 0: no limit.",
        user_only=True,
    )
    max_cost: float = setting(
        0.0,
        number(0, 100_000),
        "Cost limit of a session; no request is sent above it. 0: no limit.",
        unit="USD",
        user_only=True,
    )
    restore: str = setting(
        "full",
        choice("full", "text"),
        "The beginning of a resumed session. full: everything. text: only the text of its messages.",
    )


class TerminalSettings(Table):
    theme: str = setting(
        "auto", choice("auto", "dark", "light"), "Colours for a dark or light background. auto: detect it."
    )
    keys: str = setting("emacs", choice("emacs", "vi"), "Editing keys of the prompt.")
    show_reasoning: bool = setting(
        False, boolean(), "Show the model's reasoning in grey. false: one line with its length."
    )
    plain: bool = setting(
        False, boolean(), "Plain lines without escape codes, for screen readers. Takes effect at the next start."
    )
    notify_seconds: float = setting(
        20.0, number(0, 86_400), "Ring the bell for an answer or question that took at least this long. 0: never."
    )
    status: str = setting(
        "", status_format(), "The line below the prompt, as in `{model} · {usage} · {branch}`. Empty: nca's own."
    )
    status_command: str = setting(
        "", text(), "A program that writes a line below the prompt, as Claude Code's statusLine does."
    )


class Settings(Table):
    profile: str = setting(
        "none", choice("none", *PROFILES), "Use the numbers, stages and texts of another program as defaults."
    )
    hooks: tuple[Hook, ...] = setting(
        (),
        hook_tables(),
        "Programs of yours that run at certain moments, as Claude Code's hooks do; a table [[hooks]] each.",
    )
    model: ModelSettings = table(ModelSettings, "The model")
    context: ContextSettings = table(ContextSettings, "The context window and compaction")
    agent: AgentSettings = table(AgentSettings, "The agent")
    permissions: PermissionSettings = table(PermissionSettings, "Rules for single tools, besides `agent.permission`")
    tools: ToolSettings = table(ToolSettings, "Shell commands that the model or you run")
    rewind: RewindSettings = table(RewindSettings, "The record of changed files, for going back")
    mcp: McpSettings = table(McpSettings, "MCP servers (Model Context Protocol)")
    memory: MemorySettings = table(MemorySettings, "Notes that are kept across sessions")
    session: SessionSettings = table(SessionSettings, "Sessions on disk")
    terminal: TerminalSettings = table(TerminalSettings, "The terminal")


class Key(NamedTuple):
    """One setting's description; `name` is dotted (context.prune.protect_tokens)."""

    name: str
    default: Any
    value_type: ValueType
    about: str
    unit: str
    user_only: bool

    @property
    def harmless(self) -> Harmless | None:
        """Which of its values a project may set before it is trusted; None: none."""
        return None if self.user_only else HARMLESS.get(self.name)

    @property
    def trust_note(self) -> str:
        """Which of its values a project may set only once it is trusted, in words; "" if it may set any."""
        if self.user_only or (self.harmless is not None and not self.harmless.bounds):
            return ""
        return "once trusted" if self.harmless is None else f"once trusted, except {self.harmless.bounds}"


_UNITS = {"tokens": "tokens", "bytes": "bytes", "chars": "characters", "seconds": "seconds"}
"""The unit of a setting, by the last word of its name."""


def walk(node: type = Settings, prefix: str = "") -> Iterator[Key]:
    """All settings in the order of the schema."""
    for item in fields(node):
        name = f"{prefix}{item.name}"
        if "value_type" in item.metadata:
            unit = item.metadata["unit"] or _UNITS.get(name.rpartition("_")[2], "")
            yield Key(name, item.default, **{**item.metadata, "unit": unit})
        else:
            default_factory: Any = item.default_factory
            if isinstance(default_factory, type):
                yield from walk(default_factory, f"{name}.")


def about_section(section: str) -> str:
    """The description of a table of settings, such as `context.prune`."""
    node: Any = Settings
    about = ""
    for name in section.split("."):
        item = next(item for item in fields(node) if item.name == name)
        node, about = item.default_factory, str(item.metadata["about"])
    return about


KEYS: dict[str, Key] = {key.name: key for key in walk()}

NAMED = frozenset(tuple(key.name.split(".")) for key in KEYS.values() if key.value_type.is_named)
"""Paths of settings that hold tables by name; all their tables together are one value."""
