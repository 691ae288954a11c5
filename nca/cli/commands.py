"""All commands, as Typer parses them, `nca loop` among them. Their modules import only what that needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from enum import StrEnum
from functools import cache, partial
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_group

from nca import cli
from nca.cli import bench, compact, config, doctor, flags, hooks, keys, mcp, models, run, serve, sessions, store
from nca.cli.loop_arguments import LoopArguments
from nca.cli.printing import echo

_WORDS = {
    name: word
    for word, names in {
        "FILE": "config out store tokens",
        "FORMAT": "format_name",
        "ID": "session in_session",
        "MODE": "permission",
        "MODEL": "summarizer",
        "N": "limit max_steps max_body_mb port workers",
        "RULE": "allow",
        "SECONDS": "timeout",
        "SHARE": "target",
        "TEXT": "focus",
        "TOKENS": "context_window",
        "USAGE": "compact_threshold",
        "USD": "max_cost",
        "cut|refuse": "fit",
        "ndjson": "stream",
    }.items()
    for name in names.split()
}
"""The word for an option's value in the help, if it is not the last word of the option's name."""


def _group(version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False) -> None:
    """For the help: `nca.cli.app` prints the version before anything is imported."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Whose script to print.")]) -> None:
    """Print the completion script for a shell.

    bash: eval "$(nca completion bash)" in ~/.bashrc. zsh: eval "$(nca completion zsh)" in ~/.zshrc, after compinit.

    fish: nca completion fish > ~/.config/fish/completions/nca.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # where Typer itself takes it from

    echo(get_completion_script(prog_name="nca", complete_var=cli.COMPLETE_VARIABLE, shell=shell.value))


_TABLE_COLUMNS = 64
"""In a narrower terminal Typer's table cuts the names of flags; there the help of a command is plain lines."""


@cache
def build(wanted: str | None = None) -> TyperGroup:
    """All commands; built once in a process, because that takes far longer than parsing.

    wanted  the command that is called: of the others only names and descriptions are needed. None: all are whole
    """
    app = typer.Typer(
        name="nca",
        help="A chat agent for the terminal. It keeps its context within the window, and nothing is lost.",
        epilog='Without a command, nca opens the chat: `nca -m MODEL`, `nca -c`, `nca "TEXT"`.',
        no_args_is_help=False,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_group)
    for name, command in _COMMANDS.items():
        is_whole = wanted in (None, name)
        if isinstance(command, typer.Typer):
            app.add_typer(command if is_whole else typer.Typer(help=command.info.help), name=name)
        else:
            app.command(name)(command if is_whole else _described(command))
    group = get_group(app)
    _name_values(group)
    return group


def _described(command: Callable[..., Any]) -> Callable[[], None]:
    """A command with only its description."""

    def described() -> None:
        raise AssertionError("another command was called")

    described.__doc__ = command.__doc__
    return described


def _name_values(command: Any) -> None:
    """Give options a word for their value, and nothing the name of a Python type; draw its help as below."""
    below = getattr(command, "commands", {})
    command.format_help = partial(_help, command, command.format_help)
    # Rich breaks a line where the source does, in all paragraphs but the first.
    command.help = command.help and "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
    for one in below.values():
        _name_values(one)
    asked = typer.Context(command, help_option_names=list(cli.HELP_FLAGS))
    for parameter in (*command.params, command.get_help_option(asked)):
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _nothing
        elif parameter.metavar is None:
            word = _WORDS.get(parameter.name, parameter.name.rpartition("_")[2].upper())
            parameter.metavar = "" if parameter.is_flag else word
        if parameter.param_type_name == "option":
            parameter.process_value = partial(_not_empty, parameter, parameter.process_value)


def _not_empty(option: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Refuse an empty value, as an unset variable of a script leaves it: it would silently be the default."""
    is_given = context.get_parameter_source(option.name).name == "COMMANDLINE"
    if is_given and "" in (value if isinstance(value, list | tuple) else (value,)):
        raise typer.BadParameter("the value is empty", ctx=context, param=option)
    return process(context, value)


def _help(command: Any, draw: Callable[[Any, Any], None], context: Any, formatter: Any) -> None:
    """The help in the colours of the chat. Typer's own yellow, cyan and green cannot be read on white."""
    if not getattr(command, "commands", {}) and shutil.get_terminal_size().columns < _TABLE_COLUMNS:
        command.rich_markup_mode = None
        draw(context, formatter)
        return
    from typer import rich_utils

    from nca.terminal.render.theme import PALETTES, background

    palette = PALETTES[background("auto")]
    rich_utils.STYLE_OPTION = rich_utils.STYLE_COMMANDS_TABLE_FIRST_COLUMN = f"bold {palette.accent}"
    rich_utils.STYLE_SWITCH = rich_utils.STYLE_NEGATIVE_SWITCH = f"bold {palette.added}"
    rich_utils.STYLE_NEGATIVE_OPTION = f"bold {palette.accent}"
    rich_utils.STYLE_TYPES = f"bold {palette.notice}"
    rich_utils.STYLE_USAGE = palette.notice
    rich_utils.STYLE_REQUIRED_SHORT = rich_utils.STYLE_REQUIRED_LONG = palette.failure
    rich_utils.STYLE_OPTION_ENVVAR = "dim"
    draw(context, formatter)


def _nothing(ctx: object) -> str:
    return ""


def loop(**given: Any) -> int:
    """Open the chat. This is the default command."""
    from nca.cli.chat import open_chat

    return open_chat(LoopArguments(**given))


_HINTS = get_type_hints(LoopArguments, {"flags": flags}, include_extras=True)
loop.__signature__ = Signature(  # type: ignore[attr-defined]  # Typer reads it
    [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_HINTS[name])
        for name, default in LoopArguments._field_defaults.items()
    ]
)

_COMMANDS: dict[str, Callable[..., Any] | typer.Typer] = {
    "loop": loop,
    "run": run.run,
    "acp": serve.acp,
    "serve": serve.serve,
    "compact": compact.compact,
    "bench": bench.bench,
    "doctor": doctor.doctor,
    "completion": completion,
    "sessions": sessions.app,
    "config": config.app,
    "models": models.app,
    "keys": keys.app,
    "mcp": mcp.app,
    "hooks": hooks.app,
    "store": store.app,
}
"""In the order of the help."""
