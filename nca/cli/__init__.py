"""The `nca` command. These words are here, where they cost no import, because `app` and `commands` both need them."""

VERSION_FLAGS = ("--version", "-V")
HELP_FLAGS = ("--help", "-h")
COMMANDS = frozenset(
    (
        *("loop", "run", "acp", "serve", "compact", "bench", "doctor", "completion"),
        *("sessions", "config", "models", "keys", "mcp", "hooks", "store"),
    )
)
"""A test compares them with `nca.cli.commands`."""
COMPLETE_VARIABLE = "_NCA_COMPLETE"
"""The scripts of `nca completion` call nca with this variable to ask what could follow."""
