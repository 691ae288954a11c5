"""Run commands of nca on a store of hostile texts and report what they wrote to a terminal. Not a test.

Standard input is a JSON list of argument lists; standard output a JSON list of [arguments, what was written].
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

from nca.config.paths import data_dir
from nca.messages import AttachmentPart, Message, TextPart, ToolCall, clean_text
from nca.sessions.store import Store
from tests.terminal.payloads import PAYLOADS


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def fill(path: Path) -> list[str]:
    """One session for each payload; their ids."""
    ids: list[str] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store.open(path) as store:
        for payload in map(clean_text, PAYLOADS):
            call = ToolCall(f"c{payload}", f"t{payload}", json.dumps({"path": payload}))
            named = f"n{payload}" if len(ids) % 2 else ""
            with store.create(directory=f"/d{payload}", model=f"m{payload}", name=named) as session:
                ids.append(session.info.id)
                session.log.append(
                    [
                        Message("user", (TextPart(f"find a{payload}b"), AttachmentPart(f"a{payload}", payload, 10))),
                        Message("assistant", f"say {payload}", (call,), reasoning=payload),
                        Message("tool", f"out {payload}", tool_call_id=call.id, name=call.name, is_error=True),
                    ]
                )
    return ids


def main() -> None:
    from nca.cli.app import run

    ids = fill(data_dir(os.environ) / "sessions.db")
    commands = [["sessions", "show", one] for one in ids] + json.load(sys.stdin)
    commands += [["sessions", "export", ids[-1], "--format", kind] for kind in ("json", "markdown")]
    found = []
    for command in commands:
        written = io.BytesIO()
        terminal = Terminal(written, encoding="utf-8", errors="surrogateescape", write_through=True)
        sys.stdin = io.StringIO("")
        with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(terminal):
            try:
                run(list(command))
            except SystemExit as end:
                terminal.write(str(end.code))
        found.append([command, written.getvalue().decode("utf-8", "surrogateescape")])
    print(json.dumps(found), file=sys.__stdout__)


if __name__ == "__main__":
    main()
