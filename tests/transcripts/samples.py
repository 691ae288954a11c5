"""A session with everything in it, for the exports."""

from __future__ import annotations

import msgspec

from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import AttachmentPart, MediaPart, Message, TextPart, ToolCall, Usage
from nca.sessions import CompactionRecord, Store
from nca.sessions.transfer import SessionCopy
from tests.sessions.samples import pin

HOSTILE = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!-- --> ]]> "
    "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\0 javascript:alert(3) {title} %s </title></style>"
)
"""Text that must stay text wherever it is shown."""

SUMMARY = Summary("s1", ((1, 2),), f"summed up {HOSTILE}", prose="p", made_by=HOSTILE)
VIEW = View((SUMMARY, Stub(3, f"stub {HOSTILE}", "prune"), Marker("t1", ((4, 4),), HOSTILE), Verbatim(5, 6)), 7)
RECORD = CompactionRecord(
    trigger=HOSTILE,
    stages=("prune", HOSTILE),
    tokens_before=900,
    tokens_after=300,
    kept_facts=3,
    total_facts=4,
    kept={"rules": (1, 1), "words": (2, 3)},
    cost=0.5,
)


def messages(text: str = HOSTILE) -> list[Message]:
    return [
        Message("user", (TextPart(text, {"cache_control": {"type": "x"}}), AttachmentPart(text, text, 9, True))),
        Message("assistant", None, (ToolCall("c1", text, text),), reasoning=text),
        Message("tool", text * 100, tool_call_id="c1", name=text, is_error=True),
        Message("assistant", text, is_interrupted=True),
        Message("user", (TextPart(text), TextPart("reminder", source="nca"), MediaPart("image", {"type": text}))),
        Message("assistant", "", extra={"role": "assistant", "odd": [text, {"x": 1.5}]}),
        Message("user", "plain", source="nca"),
        Message("tool", None, tool_call_id="nobody asked"),
        Message("user", "the end"),
    ]


def full(text: str = HOSTILE) -> SessionCopy:
    """Nine messages, three compactions of which one is undone, pins, calls."""
    with Store.open(None) as store:
        session = store.create(directory=text, model=text, name=text)
        session.log.append(messages(text))
        session.views.commit(VIEW, RECORD)
        session.views.commit(View((Summary("s2", ((1, 6),), "later"),), 7), msgspec.structs.replace(RECORD, cost=None))
        session.views.undo()
        pin(session, 5)
        session.usage.record(8, text, Usage(700, 20, 10, 5, 3, cost=0.5), 0)
        session.usage.record(9, text, Usage(300, 20), 1)
        return store.copy_of(session.info.id)
