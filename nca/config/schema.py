"""Every setting: its type, default and unit. `nca.config.value_types` parses the values; meanings.toml explains them.

The one source for the TOML files, the environment, `/config`, its completion, the example and docs/configuration.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from nca.config import value_types as types
from nca.config.extensions import STAGES, stage_names
from nca.config.harmless import Harmless, harmless_settings
from nca.config.hooks import Hook, hook_tables
from nca.config.servers import McpServer, named_servers
from nca.config.tables import (
    TOOLS,
    Injection,
    PermissionRule,
    Section,
    exact_rules,
    status_format,
    strict_rules,
    tables,
)
from nca.config.value_types import Table, ValueType, setting, table

INFO_THRESHOLD = 0.60
AUTO: Literal["auto"] = "auto"
"""The window decides, or whether the conversation is a chat."""
Fit = Literal["auto", "cut", "refuse"]
"""What happens to a newest message that alone is larger than the window."""
PROFILES = ("nca", "neurolink", "cowagent", "neuron", "nexora")
"""Programs whose settings can be used: the files in `profiles`."""


class ModelSettings(Table):
    name: str = setting("", types.model_names(types.text()))
    context_window: int = setting(0, types.whole(), unit="tokens")
    max_output_tokens: int = setting(0, types.whole())
    max_reserve_tokens: int = setting(32_000, types.whole(1))
    output_ratio: float = setting(0.0, types.ratio(zero=True))
    images: str = setting("auto", types.choice("auto", "yes", "no", aliases={True: "yes", False: "no"}))
    summarizer: str = setting("", types.model_names(types.text()))
    api_base: str = setting("", types.web_address(), user_only=True)
    temperature: float | str = setting("provider", types.or_word("provider", types.number(0, 2)))
    reasoning: str = setting(
        "auto", types.choice("auto", "off", "low", "medium", "high", aliases={False: "off", "none": "off"})
    )
    first_token_seconds: float = setting(120.0, types.number(1, 3600))
    idle_seconds: float = setting(60.0, types.number(1, 3600))
    total_seconds: float = setting(1800.0, types.number(1, 86400))
    max_retries: int = setting(5, types.whole(0, 20))
    fallbacks: tuple[str, ...] = setting((), types.model_names(types.texts()))

    @property
    def own_temperature(self) -> float | None:
        """The temperature to ask for; None: the provider's default."""
        return None if isinstance(self.temperature, str) else self.temperature


class PruneSettings(Table):
    protect_tokens: int = setting(40_000, types.whole())
    keep_results: int = setting(2, types.whole(0, 1000))
    minimum_savings_tokens: int = setting(20_000, types.whole())
    protected_tools: tuple[str, ...] = setting(("skill",), types.texts())
    placeholder: str = setting("[cleared: recall expand={seq}]", types.one_line())


class DeduplicateSettings(Table):
    minimum_ratio: float = setting(0.3, types.ratio(zero=True))


class SummarizeSettings(Table):
    max_tokens: int = setting(0, types.whole(0, 100_000))
    deadline_seconds: float = setting(180.0, types.number(1, 3600))
    role: str = setting("user", types.choice("user", "system"))
    header: str = setting("## Conversation Summary (Earlier Context)", types.one_line())
    form: str = setting("sections", types.choice("sections", "bullets"))
    ledger_tokens: int = setting(0, types.whole(0, 100_000))
    user_turns_tokens: int = setting(0, types.whole(0, 100_000))


class TruncateSettings(Table):
    fraction: float = setting(0.5, types.ratio())


class AdmissionSettings(Table):
    max_bytes: int = setting(51_200, types.whole(200))
    max_lines: int = setting(2_000, types.whole(10))
    direction: str = setting("both", types.choice("both", "head", "tail"))
    history_chars: int = setting(20_000, types.whole(200))
    shorten_each_turn: bool = setting(False, types.boolean())
    file_ratio: float = setting(0.6, types.ratio())


class ContextSettings(Table):
    auto: str = setting("on", types.choice("on", "off", "preview", aliases={True: "on", False: "off"}))
    stages: tuple[str, ...] = setting(STAGES, stage_names())
    info_threshold: float = setting(INFO_THRESHOLD, types.ratio())
    idle_threshold: float = setting(0.0, types.ratio(zero=True))
    compact_threshold: float | str = setting(AUTO, types.or_word(AUTO, types.ratio()))
    compact_tokens: int = setting(0, types.whole())
    target_ratio: float | str = setting(AUTO, types.or_word(AUTO, types.ratio()))
    fit: Fit = setting(AUTO, types.choice(*get_args(Fit)))
    max_tokens: int = setting(0, types.whole())
    max_messages: int = setting(0, types.whole())
    max_turns: int = setting(0, types.whole(), unit="turns")
    preserve_turns: int = setting(0, types.whole(0, 1000))
    keep_recent_ratio: float = setting(1.0, types.ratio())
    provider_side: bool = setting(False, types.boolean())
    count_as: str = setting("", types.text())
    section: tuple[Section, ...] = setting((), tables(Section))
    inject: tuple[Injection, ...] = setting((), tables(Injection))
    prune: PruneSettings = table(PruneSettings, "Stage 1: replace old tool results by a placeholder")
    deduplicate: DeduplicateSettings = table(DeduplicateSettings, "Stage 2: remove superseded reads of the same file")
    summarize: SummarizeSettings = table(SummarizeSettings, "Stage 3: replace the older messages by a summary")
    truncate: TruncateSettings = table(TruncateSettings, "Stage 4: drop the oldest turns")
    admission: AdmissionSettings = table(AdmissionSettings, "Limits on what enters the context")

    def decided(self, *, is_chat: bool) -> ContextSettings:
        """With another `fit` than `auto`: where nobody reads what was cut, it is refused."""
        return self if self.fit != AUTO else replace(self, fit="cut" if is_chat else "refuse")


class AgentSettings(Table):
    max_steps: int = setting(200, types.whole(1, 1000))
    permission: str = setting("ask", types.choice("ask", "accept-edits", "plan", "auto"), user_only=True)
    system_prompt: str = setting("", types.text())
    models: tuple[str, ...] = setting((), types.variables(valid="a list of AGENT=MODEL"))
    use_claude_home: bool = setting(False, types.boolean(), user_only=True, at_start=True)


class PermissionSettings(Table):
    allow: tuple[PermissionRule, ...] = setting((), exact_rules(), user_only=True)
    ask: tuple[PermissionRule, ...] = setting((), strict_rules(), user_only=True)
    deny: tuple[PermissionRule, ...] = setting((), strict_rules(), user_only=True)


class ToolSettings(Table):
    off: tuple[str, ...] = setting((), types.texts(aliases=TOOLS))
    timeout_seconds: float = setting(120.0, types.number(1, 86400), user_only=True)
    max_timeout_seconds: float = setting(600.0, types.number(1, 86400), user_only=True)
    sandbox: str = setting("off", types.choice("off", "bwrap"), user_only=True)
    environment: tuple[str, ...] = setting((), types.texts(), user_only=True)
    variables: tuple[str, ...] = setting((), types.variables())
    readable: tuple[str, ...] = setting((), types.added(types.texts()))
    private_hosts: tuple[str, ...] = setting((), types.texts(), user_only=True)

    def is_off(self, name: str) -> bool:
        """Whether the model does not get this tool: `off` has its name, or one with `*` that fits."""
        return any(fnmatchcase(name, one) for one in self.off)


class RewindSettings(Table):
    max_file_bytes: int = setting(5_242_880, types.whole(), user_only=True)
    max_files: int = setting(50_000, types.whole(), unit="files", user_only=True)
    max_project_bytes: int = setting(500_000_000, types.whole(), user_only=True)
    max_scan_seconds: float = setting(2.0, types.number(0.1, 600), user_only=True)


class McpSettings(Table):
    wait_seconds: float = setting(15.0, types.number(0, 600))
    servers: tuple[McpServer, ...] = setting((), named_servers())


class MemorySettings(Table):
    file_path: str = setting(".nca/memory.json", types.file_path())
    max_notes: int = setting(128, types.whole(1, 100_000), unit="notes")
    auto_compact_on_finish: bool = setting(False, types.boolean())


class SessionSettings(Table):
    persist: bool = setting(True, types.boolean(), at_start=True)
    store: str = setting("", types.postgres_url(), user_only=True, at_start=True)
    retention_days: int = setting(0, types.whole(0, 36500), unit="days", user_only=True, at_start=True)
    max_sessions: int = setting(0, types.whole(0, 1_000_000), user_only=True, at_start=True)
    max_cost: float = setting(0.0, types.number(0, 100_000), unit="USD", user_only=True)
    restore: str = setting("full", types.choice("full", "text"))


class TerminalSettings(Table):
    theme: str = setting("auto", types.choice("auto", "dark", "light"))
    keys: str = setting("emacs", types.choice("emacs", "vi"))
    show_reasoning: bool = setting(False, types.boolean())
    plain: bool = setting(False, types.boolean(), at_start=True)
    notify_seconds: float = setting(20.0, types.number(0, 86_400))
    status: str = setting("", status_format())
    status_command: str = setting("", types.text())


class Settings(Table):
    profile: str = setting("none", types.choice("none", *PROFILES))
    hooks: tuple[Hook, ...] = setting((), hook_tables())
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
    """One setting's description; `name` is dotted (context.prune.protect_tokens). table: the class that it is in."""

    name: str
    default: Any
    table: str
    value_type: ValueType
    unit: str
    user_only: bool
    at_start: bool

    @property
    def about(self) -> str:
        """What it means, in one or two sentences."""
        meaning = _meanings()[self.table][self.name.rpartition(".")[2]]
        return f"{meaning} Takes effect at the next start." if self.at_start else meaning

    @property
    def harmless(self) -> Harmless | None:
        """Which of its values a project may set before it is trusted; None: none."""
        return None if self.user_only else harmless_settings().get(self.name)

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
            yield Key(name, item.default, node.__name__, **{**item.metadata, "unit": unit})
        else:
            default_factory: Any = item.default_factory
            if isinstance(default_factory, type):
                yield from walk(default_factory, f"{name}.")


@cache
def _meanings() -> dict[str, dict[str, str]]:
    """The meaning of each setting, by its class. Read when it is first shown: no start needs it."""
    import tomllib

    return tomllib.loads(Path(__file__).with_name("meanings.toml").read_text(encoding="utf-8"))


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
