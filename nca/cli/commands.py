"""All commands, put together. Only what Typer needs to know is imported here."""

from __future__ import annotations

import typer

from nca.cli import bench, compact, config, doctor, loop, models, run, sessions


def build() -> typer.Typer:
    app = typer.Typer(
        name="nca",
        help="A chat agent for the terminal whose context never overflows and never loses anything.",
        epilog="Options without a command are the chat's: `nca -m MODEL`, `nca -c`. `nca --version` tells the version.",
        no_args_is_help=False,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command("loop", help="Open the chat (the same as `nca` alone).")(loop.loop)
    app.command("run", help="One turn without a terminal.")(run.run)
    app.command("compact", help="The engine as a filter over a transcript.")(compact.compact)
    app.command("bench", help="What nca would have kept, cost and saved of a conversation.")(bench.bench)
    app.command("doctor", help="What is installed, found and usable.")(doctor.doctor)
    app.add_typer(sessions.app, name="sessions", help="What was said before.")
    app.add_typer(config.app, name="config", help="Settings: show, get, set.")
    app.add_typer(models.app, name="models", help="Models: what was found, and the embedded ones.")
    return app
