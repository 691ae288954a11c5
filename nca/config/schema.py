"""Every setting: its type, default, unit, what it means and what it accepts.

This is the single source for the TOML layers, the environment, `/config` and its completion,
`.nca/config.toml.example` and the reference in docs/. Values are read through `nca.config.value_types`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from nca.config.fields import setting, table
from nca.config.servers import McpServer, named_servers
from nca.config.stage_names import stage_names
from nca.config.tables import Injection, PermissionRule, Section, tables
from nca.config.value_types import (
    Kind,
    boolean,
    choice,
    file_path,
    model_names,
    number,
    one_line,
    ratio,
    text,
    texts,
    whole,
)

STAGES = ("prune", "deduplicate", "summarize", "truncate")
"""The usual stages in their usual order."""
MORE_STAGES = ("condense", "trim")
"""Seed 3's, by name only: finished turns to question and answer; the older half of the turns to a summary."""
PROFILES = ("nca", "neurolink", "cowagent", "neuron", "nexora")
"""The five seeds; what each sets is in nca.config.profiles."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    name: str = setting(
        "",
        model_names(text()),
        "The model, as litellm names it (openai/gpt-4.1, anthropic/…). Empty: the best that is found.",
        acts=True,
    )
    context_window: int = setting(0, whole(), "The model's context window. 0: what is known of it.", unit="tokens")
    max_output_tokens: int = setting(
        0, whole(), "Room kept for the answer. 0: 35 % of the window, at most 64,000.", unit="tokens"
    )
    images: str = setting(
        "auto",
        choice("auto", "yes", "no", aliases={True: "yes", False: "no"}),
        "Whether the model takes images. auto: what is known of it, which of a model at your own endpoint is nothing.",
    )
    summarizer: str = setting(
        "",
        model_names(text()),
        "The model that writes summaries. Empty: the chat's own; none: no model.",
        acts=True,
    )
    api_base: str = setting("", text(), "The endpoint's address, where it is not the provider's own.", trusted=True)
    temperature: float = setting(
        -1.0, number(-1, 2), "How freely the model picks its words. -1: the provider's default."
    )
    first_token_seconds: float = setting(
        120.0, number(1, 3600), "How long to wait for an answer to begin.", unit="seconds"
    )
    idle_seconds: float = setting(60.0, number(1, 3600), "How long a begun answer may stand still.", unit="seconds")
    total_seconds: float = setting(1800.0, number(1, 86400), "How long one answer may take.", unit="seconds")
    max_retries: int = setting(5, whole(0, 20), "Tries after a passing failure.")
    fallbacks: tuple[str, ...] = setting(
        (),
        model_names(texts()),
        "Models that answer, in this order, while the provider of the first is down.",
        acts=True,
    )


@dataclass(frozen=True, slots=True)
class PruneSettings:
    protect_tokens: int = setting(
        40_000, whole(), "The newest tool results that stay; at most a quarter of the budget.", unit="tokens"
    )
    keep_results: int = setting(2, whole(0, 1000), "The newest tool results that stay, by number.")
    minimum_savings_tokens: int = setting(
        20_000, whole(), "Act only if this much is saved; at most 10 % of the budget.", unit="tokens"
    )
    protected_tools: tuple[str, ...] = setting(("skill",), texts(), "Tools whose results are never cleared.")
    placeholder: str = setting("[Tool result cleared]", one_line(), "What stands in a cleared result's place.")


@dataclass(frozen=True, slots=True)
class DeduplicateSettings:
    minimum_ratio: float = setting(0.3, ratio(zero=True), "Act only if this share of the file-read tokens is saved.")


@dataclass(frozen=True, slots=True)
class SummarizeSettings:
    max_tokens: int = setting(
        2_000, whole(50, 100_000), "A summary's length; at most 10 % of the budget.", unit="tokens"
    )
    deadline_seconds: float = setting(
        180.0, number(1, 3600), "How long a summary may take, all its questions together.", unit="seconds"
    )
    role: str = setting("user", choice("user", "system"), "The role that a summary is sent in.")
    header: str = setting("## Conversation Summary (Earlier Context)", one_line(), "The line a summary begins with.")
    form: str = setting(
        "sections", choice("sections", "bullets"), "What a model is asked for: nine sections, or a short list."
    )
    ledger_tokens: int = setting(
        1_000, whole(0, 100_000), "The ledger of facts kept by code; at most 5 % of the budget.", unit="tokens"
    )
    user_turns_tokens: int = setting(
        3_000, whole(0, 100_000), "The person's own words kept verbatim; at most 10 % of the budget.", unit="tokens"
    )


@dataclass(frozen=True, slots=True)
class TruncateSettings:
    fraction: float = setting(0.5, ratio(), "The share of the older turns that goes first.")


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    max_bytes: int = setting(51_200, whole(200), "A tool output's size when it enters.", unit="bytes")
    max_lines: int = setting(2_000, whole(10), "A tool output's lines when it enters.")
    direction: str = setting(
        "both", choice("both", "head", "tail"), "Which end of a long output stays: both keeps 25 % head, 75 % tail."
    )
    history_chars: int = setting(
        20_000, whole(200), "A result of an earlier turn keeps its beginning and end above this.", unit="characters"
    )
    file_ratio: float = setting(0.6, ratio(), "The share of the free window that attached files may take.")


@dataclass(frozen=True, slots=True)
class ContextSettings:
    auto: str = setting(
        "on",
        choice("on", "off", "preview", aliases={True: "on", False: "off", "true": "on", "false": "off"}),
        "Compaction by itself: on, off, or preview (report what it would do, change nothing).",
    )
    stages: tuple[str, ...] = setting(
        STAGES,
        stage_names((*STAGES, *MORE_STAGES), {"clear_results": "prune", "sliding_window": "truncate"}),
        "The compaction's stages: the list is the order and the switch.",
    )
    info_threshold: float = setting(0.60, ratio(), "Above this usage a grey line says so after a turn.")
    idle_threshold: float = setting(0.75, ratio(), "From this usage on, compaction is prepared while you type.")
    compact_threshold: float = setting(0.80, ratio(), "From this usage on, compaction happens before a request.")
    compact_tokens: int = setting(
        0, whole(), "The same as an absolute number; 0: none. Whichever is first.", unit="tokens"
    )
    target_ratio: float = setting(0.50, ratio(), "Compaction aims at this share of the budget.")
    max_tokens: int = setting(0, whole(), "The largest budget for a request, below the window. 0: none.", unit="tokens")
    max_messages: int = setting(0, whole(), "Messages kept verbatim by a compaction. 0: no limit.")
    max_turns: int = setting(
        0, whole(), "More complete turns than this: the oldest half goes to a summary. 0: no limit.", unit="turns"
    )
    preserve_turns: int = setting(5, whole(0, 1000), "The newest turns that a summary leaves alone, if they fit.")
    keep_recent_ratio: float = setting(0.3, ratio(), "The share of the target for the newest whole turns.")
    provider_side: bool = setting(
        False, boolean(), "Leave compaction to the provider, where it can be asked for that: Claude at Anthropic."
    )
    count_as: str = setting("", text(), "Count tokens as for this provider's models. Empty: the model's own provider.")
    section: tuple[Section, ...] = setting((), tables(Section), "Parts of the system prompt, by priority.")
    inject: tuple[Injection, ...] = setting((), tables(Injection), "Reminders that come with your message when due.")
    prune: PruneSettings = table(PruneSettings, "Stage 1: old tool results give way to a placeholder")
    deduplicate: DeduplicateSettings = table(DeduplicateSettings, "Stage 2: superseded reads of the same file")
    summarize: SummarizeSettings = table(SummarizeSettings, "Stage 3: the older part becomes one summary")
    truncate: TruncateSettings = table(TruncateSettings, "Stage 4: the oldest turns leave")
    admission: AdmissionSettings = table(AdmissionSettings, "What may enter the context in the first place")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    max_steps: int = setting(15, whole(1, 1000), "Requests in one turn before it ends by itself.")
    permission: str = setting(
        "ask",
        choice("ask", "accept-edits", "plan", "auto"),
        "What tools may do: ask before they change or run anything, accept edits, plan (read only), auto (everything).",
        trusted=True,
    )
    system_prompt: str = setting("", text(), "Replaces nca's own system prompt.")


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    allow: tuple[PermissionRule, ...] = setting(
        (), tables(PermissionRule), "Calls that run without asking, where the mode would ask.", trusted=True
    )
    deny: tuple[PermissionRule, ...] = setting(
        (), tables(PermissionRule), "Calls that never run, whatever the mode and the other rules say.", trusted=True
    )


@dataclass(frozen=True, slots=True)
class ToolSettings:
    timeout_seconds: float = setting(
        120.0, number(1, 86400), "How long a command may run.", unit="seconds", trusted=True
    )
    max_timeout_seconds: float = setting(
        600.0, number(1, 86400), "The longest time that the model may ask for.", unit="seconds", trusted=True
    )
    sandbox: str = setting(
        "off",
        choice("off", "bwrap"),
        "Run commands with bubblewrap: only the project is writable, no network. Where that fails, nothing runs.",
        trusted=True,
    )
    environment: tuple[str, ...] = setting(
        (),
        texts(),
        "Variables that commands get beside the usual ones (PATH, HOME, LANG, …). Never a provider's key.",
        trusted=True,
    )
    private_hosts: tuple[str, ...] = setting(
        (),
        texts(),
        "Hosts that fetch_url may reach on this machine and in private networks, such as localhost.",
        trusted=True,
    )


@dataclass(frozen=True, slots=True)
class McpSettings:
    wait_seconds: float = setting(
        15.0, number(0, 600), "How long a message waits for servers that are still starting.", unit="seconds"
    )
    servers: tuple[McpServer, ...] = setting(
        (), named_servers(), "Servers whose tools the model gets. They start with the first message.", acts=True
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    file_path: str = setting(
        ".nca/memory.json",
        file_path(),
        "Where notes are kept; the day's memory of trimmed turns is in a folder of the same name beside it.",
    )
    max_notes: int = setting(128, whole(1, 100_000), "Notes kept; the oldest go first.", unit="notes")
    auto_compact_on_finish: bool = setting(
        False, boolean(), "At the end of a session compact it and keep the summary as a note."
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    persist: bool = setting(True, boolean(), "Keep sessions on disk.")
    retention_days: int = setting(
        30, whole(0, 36500), "Sessions older than this are removed; 0: never.", unit="days", trusted=True
    )
    max_sessions: int = setting(
        50, whole(1, 1_000_000), "More sessions than this: the oldest are removed.", trusted=True
    )
    max_cost: float = setting(
        0.0,
        number(0, 100_000),
        "What a session may cost before nothing more is sent. 0: no limit.",
        unit="USD",
        trusted=True,
    )
    restore: str = setting("full", choice("full", "text"), "How a resumed session starts: as it was, or text only.")


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    theme: str = setting("auto", choice("auto", "dark", "light"), "Colours that suit the background.")
    keys: str = setting("emacs", choice("emacs", "vi"), "The editing keys of the prompt.")
    show_reasoning: bool = setting(False, boolean(), "Show what the model thinks, in grey; else one line counts it.")
    plain: bool = setting(
        False, boolean(), "Plain lines without escape codes, for screen readers; counts at the start."
    )
    notify_seconds: float = setting(
        20.0,
        number(0, 86_400),
        "An answer or a question that comes after so long rings the bell; 0 never.",
        unit="seconds",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    profile: str = setting(
        "none",
        choice("none", *PROFILES),
        "The numbers, stages and texts of another program, in place of the defaults.",
    )
    model: ModelSettings = table(ModelSettings, "The model")
    context: ContextSettings = table(ContextSettings, "The context window and its compaction")
    agent: AgentSettings = table(AgentSettings, "The agent")
    permissions: PermissionSettings = table(PermissionSettings, "Rules for single tools, beside `agent.permission`")
    tools: ToolSettings = table(ToolSettings, "Commands that the model or you run")
    mcp: McpSettings = table(McpSettings, "Servers that speak MCP (Model Context Protocol)")
    memory: MemorySettings = table(MemorySettings, "Notes that outlive a session")
    session: SessionSettings = table(SessionSettings, "Sessions on disk")
    terminal: TerminalSettings = table(TerminalSettings, "The terminal")


class Key(NamedTuple):
    """One setting's description; `name` is dotted (context.prune.protect_tokens)."""

    name: str
    kind: Kind
    default: Any
    unit: str
    about: str
    trusted: bool
    acts: bool = False


def walk(node: type = Settings, prefix: str = "") -> Iterator[Key]:
    """All settings in the order of the schema."""
    for item in fields(node):
        name = f"{prefix}{item.name}"
        if "kind" in item.metadata:
            meta = item.metadata
            yield Key(name, meta["kind"], item.default, meta["unit"], meta["about"], meta["trusted"], meta["acts"])
        else:
            default_factory: Any = item.default_factory
            if isinstance(default_factory, type):
                yield from walk(default_factory, f"{name}.")


def about_section(section: str) -> str:
    """What a table of settings is about: `context.prune`."""
    node: Any = Settings
    about = ""
    for name in section.split("."):
        item = next(item for item in fields(node) if item.name == name)
        node, about = item.default_factory, str(item.metadata["about"])
    return about


KEYS: dict[str, Key] = {key.name: key for key in walk()}

NAMED = frozenset(tuple(key.name.split(".")) for key in KEYS.values() if key.kind.is_named)
"""Where a file holds tables by name: the whole of them is one value."""
