"""All slash commands, in the order of /help."""

from __future__ import annotations

from nca.terminal.commands.clear import ClearCommand
from nca.terminal.commands.command import Command
from nca.terminal.commands.compact import CompactCommand
from nca.terminal.commands.config import ConfigCommand
from nca.terminal.commands.context import ContextCommand
from nca.terminal.commands.copy import CopyCommand
from nca.terminal.commands.cost import CostCommand
from nca.terminal.commands.editor import EditorCommand
from nca.terminal.commands.exit import ExitCommand
from nca.terminal.commands.export import ExportCommand
from nca.terminal.commands.help import HelpCommand
from nca.terminal.commands.mcp import McpCommand
from nca.terminal.commands.memory import MemoryCommand
from nca.terminal.commands.model import ModelCommand
from nca.terminal.commands.new import NewCommand
from nca.terminal.commands.permissions import PermissionsCommand
from nca.terminal.commands.rename import RenameCommand
from nca.terminal.commands.resume import ResumeCommand
from nca.terminal.commands.sessions import SessionsCommand
from nca.terminal.commands.show import ShowCommand
from nca.terminal.commands.tools import ToolsCommand

COMMANDS: tuple[Command, ...] = (
    ContextCommand(),
    CompactCommand(),
    ConfigCommand(),
    ModelCommand(),
    PermissionsCommand(),
    ToolsCommand(),
    McpCommand(),
    SessionsCommand(),
    NewCommand(),
    ResumeCommand(),
    RenameCommand(),
    ExportCommand(),
    MemoryCommand(),
    ShowCommand(),
    CopyCommand(),
    CostCommand(),
    EditorCommand(),
    ClearCommand(),
    ExitCommand(),
)
COMMANDS = (HelpCommand(COMMANDS), *COMMANDS)
