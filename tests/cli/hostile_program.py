"""Run commands of nca in many projects and report what was started, connected to and read. Not a test.

Standard input is a JSON list of directories, standard output a JSON list of [directory, command, exit code, events].
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

COMMANDS = (
    ["--help"],
    ["--version"],
    ["config", "show", "--json"],
    ["sessions", "list"],
    ["models", "list"],
    ["mcp", "list"],
    ["hooks", "status"],
    ["loop"],
)
_ACTS = {"subprocess.Popen", "pty.spawn"}
_ACTS |= {f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "system", "startfile")}
_ACTS |= {f"socket.{name}" for name in ("connect", "bind", "sendto", "getaddrinfo", "gethostbyname")}
seen: list[list[str]] = []


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _ACTS:
        seen.append([event, repr(arguments)[:200]])
    elif event == "open" and isinstance(arguments[0], str | bytes):
        path = os.fsdecode(arguments[0])
        if ".env" in path.rpartition("/")[2][:4] or "/.git/" in path or path.startswith(".git/"):
            seen.append([event, path])
    elif event == "exec":
        name = getattr(arguments[0], "co_filename", "")
        if "/project-" in name:
            seen.append([event, name])


def main() -> None:
    directories = json.load(sys.stdin)
    from nca.cli.app import run
    from nca.models.litellm_import import load

    sys.addaudithook(_listen)
    # The chat loads it while a person types; here in a project that has a .env.
    os.chdir(next(one for one in directories if os.path.isfile(os.path.join(one, ".env"))))  # noqa: PTH118
    load()
    # urllib3 tries by that whether there is IPv6; it listens to nothing.
    found: list[list[Any]] = [["", "litellm", 0, [one for one in seen if one[0] != "socket.bind"], "", ""]]
    for directory in directories:
        os.chdir(directory)
        for command in COMMANDS:
            seen.clear()
            sys.stdin = io.StringIO("")
            # A failure with --json is written as bytes.
            written = io.BytesIO()
            out, err = io.TextIOWrapper(written, encoding="utf-8", write_through=True), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    code: Any = run(list(command)) if command != ["--version"] else _version()
                except SystemExit as end:
                    code = end.code
            found.append([directory, " ".join(command), code, list(seen), written.getvalue().decode(), err.getvalue()])
        found.append([directory, "settings", 0, [], json.dumps(_settings()), ""])
    print(json.dumps(found), file=sys.__stdout__)


def _version() -> int:
    from nca.cli import app

    sys.argv = ["nca", "--version"]
    app.main()
    return 0


def _settings() -> dict[str, Any]:
    """What is in force for the chat and for `nca run`, without a terminal."""
    from nca.cli.startup import load_settings
    from nca.errors import NcaError

    try:
        loaded = load_settings({}, None)
    except NcaError as error:
        return {"error": str(error)}
    model, notes = loaded.for_model("openai/gpt-4.1").settings, list(loaded.notes)
    return {
        "api_base": model.model.api_base,
        "models": [model.model.name, model.model.summarizer, *model.model.fallbacks],
        "programs": len(model.mcp.servers) + len(model.hooks),
        "permission": model.agent.permission,
        "rules": [len(model.permissions.allow), len(model.permissions.deny)],
        "session": [model.session.max_sessions, model.session.retention_days, model.session.max_cost],
        "stages": list(model.context.stages),
        "notes": notes,
    }


if __name__ == "__main__":
    main()
