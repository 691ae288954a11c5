"""The settings that a project's file may set before the person trusts the project: the keys of harmless.toml only.

Somebody else may have written that file. So a key is here only if no value of it could send data anywhere, write a
file, run something, lose or hide the session, change the prompt, switch off a tool or a notice, cost money or loosen
anything. Every other key waits for trust (nca.config.projects), including those that nobody has thought about.

These wait although they look harmless:

- `model.*`: a window or a temperature that does not fit, retries and reasoning cost money or make requests fail.
- `context.auto`, `.stages`, `.provider_side`, `.count_as`: they decide whether the context overflows, and a stage may
  be the code of an installed package.
- `context.max_messages`, `.max_turns`, `.idle_threshold`, `context.admission.shorten_each_turn`: small numbers compact
  at every turn, which costs requests.
- `context.summarize.role`, `.header`, `context.prune.placeholder`, `context.section`, `.inject`, `agent.system_prompt`:
  the model reads them. `context.summarize.ledger_tokens`, `.user_turns_tokens`, `.form` and
  `context.admission.direction` decide what it no longer reads; `context.prune.protected_tools` what stays for ever.
- `memory.*` writes files and drops notes, `session.persist` and `.restore` lose what was said, `tools.off` takes tools
  away, `profile` sets several of these at once.
- `terminal.plain` changes how approvals are asked, `terminal.notify_seconds` can silence the bell,
  `terminal.status` can hide the mode, `terminal.status_command` runs a program.
- `mcp.wait_seconds` can make every message wait for minutes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple


class Harmless(NamedTuple):
    """Why a key is harmless; a number only from `least` to `most` (None: no bound), in the unit of the key."""

    why: str
    least: float | None = None
    most: float | None = None

    def covers(self, value: object) -> bool:
        if self.least is None and self.most is None:
            return True
        if isinstance(value, str):  # a word in a number's place leaves it to nca
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    @property
    def bounds(self) -> str:
        """The bounds in words; "" without any."""
        if self.least is not None and self.most is not None:
            return f"from {self.least:,} to {self.most:,}"
        if self.least is not None:
            return f"from {self.least:,} on"
        return f"up to {self.most:,}" if self.most is not None else ""


@cache
def harmless_settings() -> dict[str, Harmless]:
    """The rows of harmless.toml. Read when a project's file is: no other start needs it."""
    import tomllib

    text = Path(__file__).with_name("harmless.toml").read_text(encoding="utf-8")
    return {key: Harmless(**row) for key, row in tomllib.loads(text).items()}
