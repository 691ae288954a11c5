"""The settings of the agent and of its tools: what they may do, what they take, and what is recorded of it."""

from __future__ import annotations

from nca.config.servers import McpServer, named_servers
from nca.config.tables import PermissionRule, exact_rules, tables
from nca.config.value_types import Table, added, boolean, choice, number, setting, text, texts, variables, whole


class AgentSettings(Table):
    max_steps: int = setting(200, whole(1, 1000), "Maximum number of requests in one turn.")
    permission: str = setting(
        "ask",
        choice("ask", "accept-edits", "plan", "auto"),
        "ask: tools ask before they change or run anything. accept-edits: they edit without asking. plan: they only "
        "read. auto: they never ask.",
        user_only=True,
    )
    system_prompt: str = setting("", text(), "Replaces nca's own system prompt.")
    models: tuple[str, ...] = setting(
        (),
        variables(valid="a list of AGENT=MODEL"),
        "Models of the task tool's agents, such as `reviewer=openai/gpt-4.1`.",
    )
    use_claude_home: bool = setting(
        False, boolean(), "Let your ~/.claude act here: hooks, rules, env, model, CLAUDE.md and so on.", user_only=True
    )


class PermissionSettings(Table):
    allow: tuple[PermissionRule, ...] = setting(
        (), exact_rules(), "Calls that run without asking, where the mode would ask.", user_only=True
    )
    ask: tuple[PermissionRule, ...] = setting(
        (), tables(PermissionRule), "Calls that you are asked about in every mode, whatever is allowed.", user_only=True
    )
    deny: tuple[PermissionRule, ...] = setting(
        (), tables(PermissionRule), "Calls that never run, whatever the mode and the other rules say.", user_only=True
    )


class ToolSettings(Table):
    off: tuple[str, ...] = setting((), texts(), "Tools that the model does not get, by name.")
    timeout_seconds: float = setting(120.0, number(1, 86400), "Default timeout of a command.", user_only=True)
    max_timeout_seconds: float = setting(
        600.0, number(1, 86400), "Longest timeout that the model may request.", user_only=True
    )
    sandbox: str = setting(
        "off",
        choice("off", "bwrap"),
        "Run commands in bubblewrap: only the project is writable, no network. If bubblewrap fails, nothing runs.",
        user_only=True,
    )
    environment: tuple[str, ...] = setting(
        (),
        texts(),
        "Your environment variables that commands get besides the usual ones (PATH, HOME, LANG, …). Provider keys are "
        "never passed on.",
        user_only=True,
    )
    variables: tuple[str, ...] = setting(
        (), variables(), "Variables to set for commands and hooks, such as `CI=1`. Never a provider's key."
    )
    readable: tuple[str, ...] = setting(
        (),
        added(texts()),
        "Folders outside of the project whose files the model may read. Takes effect at the next start.",
    )
    private_hosts: tuple[str, ...] = setting(
        (),
        texts(),
        "Hosts on this machine and in private networks that fetch_url may reach, such as localhost.",
        user_only=True,
    )


class RewindSettings(Table):
    max_file_bytes: int = setting(
        5_242_880, whole(), "Larger files are not stored, so a rewind cannot bring them back.", user_only=True
    )
    max_files: int = setting(
        50_000,
        whole(),
        "Maximum number of files to watch for changes by commands. Folders beyond it are not recorded. 0: none.",
        unit="files",
        user_only=True,
    )
    max_project_bytes: int = setting(
        500_000_000,
        whole(),
        "Maximum size of all these files, and of all that is stored for one project.",
        user_only=True,
    )
    max_scan_seconds: float = setting(
        2.0, number(0.1, 600), "Maximum processor time of one look for changed files.", user_only=True
    )


class McpSettings(Table):
    wait_seconds: float = setting(
        15.0, number(0, 600), "How long a message waits for MCP servers that are still starting."
    )
    servers: tuple[McpServer, ...] = setting(
        (), named_servers(), "MCP servers whose tools the model can use. They start with the first message."
    )
