"""The `nca` command. These words are here, where they cost no import, because `app` and `commands` both need them."""

VERSION_FLAGS = ("--version", "-V")
HELP_FLAGS = ("--help", "-h")
COMPLETE_VARIABLE = "_NCA_COMPLETE"
"""The scripts of `nca completion` call nca with this variable to ask what could follow."""
