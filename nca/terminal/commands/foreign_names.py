"""Command names from other programs, and what to type in nca instead."""

from __future__ import annotations

_UNDO = "/context undo takes back the last change of the context; files: !git diff, !git checkout."
_MODE = "/permissions shows the mode; /permissions plan, accept-edits, auto or ask changes it."
_USAGE = "/context shows what fills the window; /cost tokens and money; /model which model answers."
_FILE = "@path in a message brings a file, a folder's listing or an image in."
_SHELL = "!command runs it and shares what it says, as in !git diff."
_NEW = "/new begins a new session; /context clear empties the context of this one."
_KEPT = "Every session is kept by itself; /sessions finds it, /export writes it to a file."
_INSTRUCTIONS = "AGENTS.md in the project is read at the start; /memory TEXT keeps a note."

FOREIGN_NAMES = {
    **dict.fromkeys(("undo", "rewind", "revert", "checkpoint"), _UNDO),
    **dict.fromkeys(("plan", "ask", "auto", "mode", "approvals", "yolo"), _MODE),
    **dict.fromkeys(("status", "tokens", "stats"), _USAGE),
    **dict.fromkeys(("add", "read", "file", "files"), _FILE),
    **dict.fromkeys(("run", "bash", "shell", "diff", "commit", "git", "test"), _SHELL),
    **dict.fromkeys(("reset", "restart"), _NEW),
    **dict.fromkeys(("save", "load", "chat"), _KEPT),
    **dict.fromkeys(("init", "rules", "agents"), _INSTRUCTIONS),
    **{word: f"/context {word} is what does that." for word in ("pin", "unpin", "expand", "collapse", "redo")},
    **dict.fromkeys(("search", "find", "grep"), "/context search TEXT finds what was said; /sessions earlier chats."),
    "history": "/context history has the compactions; /sessions earlier chats; Ctrl-R what was sent before.",
    "continue": "/resume goes on with an earlier session.",
    "vim": "/config terminal.keys vi: vi keys.",
    "theme": "/config terminal.theme dark or light.",
}
"""Names in Claude Code, aider and others, and words that a person would try."""
