"""`nca completion`: the script with which a shell completes nca's commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nca.cli.app import COMPLETE_VARIABLE


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Whose script to print.")]) -> None:
    """Print the completion script for a shell.

    bash: eval "$(nca completion bash)" in ~/.bashrc. zsh: eval "$(nca completion zsh)" in ~/.zshrc, behind compinit.
    fish: nca completion fish > ~/.config/fish/completions/nca.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # where Typer itself takes it from

    print(get_completion_script(prog_name="nca", complete_var=COMPLETE_VARIABLE, shell=shell.value))
