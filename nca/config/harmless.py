"""The settings that a project's file may set before the person trusts the project: this table's keys only.

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


_MOMENT = "It moves the moment of a compaction. The budget holds all the same, and undo brings everything back."
_AMOUNT = "It decides how much a compaction keeps in view. All of it stays in the log, and recall shows it."
_ADMITTED = "It decides how much of a long text is shown at once. The rest can be read on."

HARMLESS: dict[str, Harmless] = {
    "context.info_threshold": Harmless("When a grey line appears. A higher share would hide it.", most=0.8),
    "context.compact_threshold": Harmless(f"{_MOMENT} A lower share would cost many summaries.", 0.5, 0.95),
    "context.compact_tokens": Harmless(f"{_MOMENT} A lower number would cost many summaries.", least=32_000),
    "context.target_ratio": Harmless(_AMOUNT, 0.1, 0.8),
    "context.max_tokens": Harmless("A smaller budget is stricter; below this little fits.", least=32_000),
    "context.preserve_turns": Harmless(_AMOUNT, 1, 50),
    "context.keep_recent_ratio": Harmless(_AMOUNT, least=0.25),
    "context.prune.protect_tokens": Harmless(f"{_AMOUNT} It is limited to a quarter of the budget."),
    "context.prune.keep_results": Harmless(_AMOUNT, 1, 50),
    "context.prune.minimum_savings_tokens": Harmless("Whether pruning is worth it. Lower would break caches.", 1_000),
    "context.deduplicate.minimum_ratio": Harmless("Whether older reads of an unchanged file are taken out."),
    "context.summarize.max_tokens": Harmless(f"{_AMOUNT} A tenth of the budget is the most.", least=1_000),
    "context.summarize.deadline_seconds": Harmless("A bounded wait; without a summary, a record is made.", 30, 600),
    "context.truncate.fraction": Harmless(_AMOUNT, 0.1, 0.5),
    "context.admission.max_bytes": Harmless(f"{_ADMITTED} A quarter of the budget is the most.", least=10_000),
    "context.admission.max_lines": Harmless(_ADMITTED, least=200),
    "context.admission.history_chars": Harmless(f"{_AMOUNT} Smaller would leave results without a middle.", 4_000),
    "context.admission.file_ratio": Harmless(_ADMITTED, 0.2, 0.8),
    "agent.max_steps": Harmless("Fewer requests in a turn than by default; the turn says that it stopped.", most=200),
    "terminal.theme": Harmless("Colours."),
    "terminal.keys": Harmless("Editing keys of the prompt."),
    "terminal.show_reasoning": Harmless("Shows more or less of what the model wrote to the person alone."),
}
