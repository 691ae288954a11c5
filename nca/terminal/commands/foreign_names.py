"""Command names from other programs, and what to type in nca instead."""

from __future__ import annotations

_REWIND = "/rewind goes back to before a message, /undo takes back the last turn; both chat and files."
_MODE = "/permissions shows the mode; /permissions plan, accept-edits, auto or ask changes it."
_USAGE = "/context shows what fills the window, /cost the tokens and cost, /model the model."
_FILE = "@path in a message adds a file, a folder's listing or an image."
_SHELL = "!command runs it and shares its output, as in !git diff."
_NEW = "/new starts a new session; /context clear empties the context of this one."
_KEPT = "Every session is saved automatically; /sessions finds it, /export writes it to a file."
_INSTRUCTIONS = "AGENTS.md in the project is read at the start; /memory TEXT saves a note."

FOREIGN_NAMES = {
    **dict.fromkeys(("revert", "restore", "back", "checkpoint"), _REWIND),
    **dict.fromkeys(("plan", "ask", "auto", "mode", "approvals", "yolo"), _MODE),
    **dict.fromkeys(("status", "tokens", "stats"), _USAGE),
    **dict.fromkeys(("add", "read", "file", "files"), _FILE),
    **dict.fromkeys(("run", "bash", "shell", "commit", "git", "test"), _SHELL),
    **dict.fromkeys(("diff", "review"), "/changes shows what this session changed; !git diff what git knows."),
    **dict.fromkeys(("reset", "restart"), _NEW),
    **dict.fromkeys(("save", "load", "chat"), _KEPT),
    **dict.fromkeys(("init", "rules", "agents"), _INSTRUCTIONS),
    **{word: f"Use /context {word}." for word in ("pin", "unpin", "expand", "collapse")},
    **dict.fromkeys(
        ("search", "find", "grep"), "/context search TEXT searches this session, /sessions search TEXT all."
    ),
    "history": "/context history lists the compactions, /sessions earlier sessions; Ctrl-R searches what you sent.",
    "continue": "/resume continues an earlier session.",
    "vim": "/config terminal.keys vi turns on vi keys.",
    "theme": "/config terminal.theme dark or light.",
}
"""Names in Claude Code, aider and others, and words that a person would try."""
