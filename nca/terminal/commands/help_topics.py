"""The texts of /help beside the list of commands: typing, keys, ideas, examples."""

from __future__ import annotations

import re
from collections.abc import Sequence

TYPING = (
    ("Alt-Enter", "A new line; or Ctrl-J"),
    ("@path", "Add a file or an image"),
    ("!command", "Run it, share its output"),
    ("Type on", "While it works: it joins"),
    ("Esc", "Stop; Ctrl-C twice: leave"),
    ("Paste", "Folded, and sent whole"),
)
"""What a new person should find by themselves."""

SHORT = {
    "model": ("Choose the model",),
    "effort": ("How much it reasons",),
    "context": ("What fills the window", "undo · pin N · collapse N", "search TEXT · diff · all", "compact --preview"),
    "memory": ("Notes for later sessions",),
    "show": ("A tool's whole output",),
    "copy": ("Copy an answer",),
    "editor": ("$EDITOR (or Ctrl-X Ctrl-E)",),
    "rewind": ("Back to before a message",),
    "undo": ("Take back the last turn",),
    "redo": ("Bring it back",),
    "changes": ("What it changed in files",),
    "btw": ("Ask beside the work",),
    "exit": ("Leave; then nca --continue",),
    "sessions": ("Find an earlier session",),
    "resume": ("Continue one of them",),
    "export": ("Write it to a file",),
    "permissions": ("accept-edits · plan · auto",),
    "jobs": ("Commands that run on",),
    "mcp": ("MCP servers",),
    "config": ("Every setting",),
    "cost": ("Tokens and money",),
}
"""Where a command's own first clause is too long for half a row, or says too little; a line each."""

_FIRST_CLAUSE = re.compile(r"[^;:,.(]+")


def in_short(name: str, about: str) -> Sequence[str]:
    """What a command does, in lines for half a row: what is written for it, or its first clause."""
    clause = _FIRST_CLAUSE.match(about)
    return SHORT.get(name, (clause[0].strip() if clause else "",))


KEYS = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Tab", "complete a command, setting, model, session or @path"),
    ("→, Ctrl-E", "take the grey suggestion from your history"),
    ("Up, Down", "earlier messages that begin with what you typed"),
    ("Ctrl-R", "search earlier messages"),
    ("Ctrl-X Ctrl-E", "write in your editor ($EDITOR); /editor too"),
    ("Ctrl-V", "attach the image on the clipboard"),
    ("Paste", "a long one folds to [pasted N lines] and is sent in full"),
    ("Alt-A", "attach the files that a pasted text names with @, or none of them again"),
    ("Typing while it works", "Enter sends it at the next step; commands wait"),
    ("Esc, Ctrl-C", "stop the answer and keep what arrived"),
    ("Ctrl-C", "at the prompt: clear the line; twice: leave"),
    ("Esc Esc", "at an empty prompt: /rewind, back to before one of your messages"),
    ("Ctrl-D", "leave; nca -c (--continue) continues"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("//text", "send /text as it is"),
    ("/config terminal.keys vi", "vi keys instead of emacs keys"),
)

IDEAS = (
    (
        "The log and the view",
        "Every message is kept in the log, for good. What the model sees is a view of it. Compaction, collapse and"
        " clear change only the view: /context search finds everything, and the model can recall it.",
    ),
    (
        "Undo",
        "/undo takes back the last turn, with the files that it changed; /redo goes forward, /rewind to any message."
        " Every compaction can be undone: /context undo, redo, history. /context expand restores single parts,"
        " and /context pin protects them. /context compact --preview shows first what would go.",
    ),
    (
        "The gauge",
        "One number everywhere: the tokens of the next request, out of the budget (the window less the room for the"
        " answer). A notice at 60% and 80%; preparation at 75%, compaction at 80%; in a"
        " small window at 90% and 95%. Nothing that does not fit is sent.",
    ),
)

TOPICS = {"keys": "all keys", "ideas": "the log and the view, undo, the gauge"}

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "context": (
        ("/context all", "everything that is in the window"),
        ("/context collapse 17", "message 17 in short; /context expand 17 brings it back"),
        ("/context pin last", "what you said last stays, whatever is compacted"),
        ("/context compact from 40", "message 40 and all after it to a summary"),
        ("/context search parser bug", "also what was compacted away"),
    ),
    "rewind": (
        ("/rewind", "choose a message; chat and files, or one of them"),
        ("/rewind 12 files", "the files as they were before message 12"),
        ("/undo", "the last turn, chat and files; /redo goes forward"),
    ),
    "changes": (("/changes src/app.py", "the whole diff of one file"),),
    "btw": (("/btw what did we decide about names?", "an answer that adds nothing to the context"),),
    "compact": (
        ("/compact the parser bug", "a summary that keeps what matters for it"),
        ("/compact before 40", "only what was said before message 40"),
    ),
    "config": (
        ("/config compact", "every setting about compaction"),
        ("/config context.compact_threshold 70%", "for this chat; --save keeps it"),
        ("/config context.compact_threshold default", "back to nca's default"),
    ),
    "model": (("/model openai/gpt-4.1", "the next answers come from it"),),
    "permissions": (
        ("/permissions plan", "it only reads"),
        ("/permissions accept-edits", "edits without asking"),
    ),
    "jobs": (("/jobs stop 1", "end a command that runs in the background"),),
    "tools": (("/tools shell", "its permission, tokens and calls"),),
    "memory": (("/memory the tests run with make test", "every later session here knows it"),),
    "sessions": (("/sessions search parser", "the sessions that mention it"),),
    "export": (("/export talk.html", "with a picture of the context"),),
    "cost": (("/config session.max_cost 2", "nothing more is sent after two dollars"),),
}
