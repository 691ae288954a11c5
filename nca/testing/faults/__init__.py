"""Named ways to fail: the model's name in a request selects one.

Each says what it does and what must come of it, so that one test can run them all and a person can try one:

    python -m nca.testing.provider
    OPENAI_API_BASE=http://127.0.0.1:PORT/v1 OPENAI_API_KEY=any nca run Hello --model openai/rate-limited
"""

from __future__ import annotations

from nca.testing.faults import answers, bodies, calls, overflows, rates, statuses, streams, summaries, transport
from nca.testing.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

THEMES = {
    "statuses": statuses.FAULTS,
    "rates": rates.FAULTS,
    "transport": transport.FAULTS,
    "bodies": bodies.FAULTS,
    "streams": streams.FAULTS,
    "answers": answers.FAULTS,
    "calls": calls.FAULTS,
    "overflows": overflows.FAULTS,
    "summaries": summaries.FAULTS,
}

FAULTS: dict[str, Fault] = {name: fault for theme in THEMES.values() for name, fault in theme.items()}
"""By the model's name."""
