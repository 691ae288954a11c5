"""What /help says beside the list of commands: typing, keys, the three ideas, examples."""

from __future__ import annotations

TYPING = (
    ("Enter", "sends; Alt-Enter, Ctrl-J or \\ at the end: a new line"),
    ("@path", "brings a file, folder or image in (Tab completes)"),
    ("!command", "runs it and shares what it says; !!command does not share"),
    ("Type on", "while it works: what you say is taken up at the next step"),
    ("Ctrl-C", "stops the answer; twice at the prompt leaves"),
    ("Paste", "long ones fold and are sent whole; Ctrl-X Ctrl-E: your editor"),
    ("/context", "undo · pin N · collapse N · search TEXT · compact --preview"),
    ("/permissions", "ask · accept-edits · plan (reads only) · auto"),
    ("nca -c", "goes on with the last session (--continue)"),
)
"""On the first screen: what a new person should find by themselves."""

SHORT = {
    "memory": "Notes for later sessions",
    "sessions": "Find an earlier session",
    "resume": "Go on with one of them",
    "export": "Write it to a file",
    "permissions": "What tools may do",
    "mcp": "Servers with more tools",
    "config": "Every setting",
    "cost": "Tokens and money",
    "show": "A tool's whole output",
    "copy": "The answer to the clipboard",
}
"""Where a command's own first clause is too long for half a row."""

KEYS = (
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Tab", "complete a command, setting, model, session or @path"),
    ("→, Ctrl-E", "take the grey suggestion from your history"),
    ("Up, Down", "what was sent before; begun words narrow it"),
    ("Ctrl-R", "search what was sent before"),
    ("Ctrl-X Ctrl-E", "write in your editor ($EDITOR); /editor too"),
    ("Paste", "a long one folds to [pasted N lines] and is sent whole"),
    ("Typing while it works", "Enter hands it over at the next step; commands wait"),
    ("Ctrl-C", "stop the answer and keep what came; at the prompt: empty the line, twice: leave"),
    ("Ctrl-D", "leave; nca -c (--continue) goes on"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("//text", "send /text as it is"),
    ("/config terminal.keys vi", "vi keys instead of emacs keys"),
)

IDEAS = (
    (
        "The log and the view",
        "All that is said is kept in the log, for good. What the model sees is a view of it. Compaction, collapse and"
        " clear change the view only: /context search finds everything, the model can recall it too.",
    ),
    (
        "Undo",
        "Every change of the view can be taken back: /context undo, redo, history. Single parts come back with"
        " /context expand; what must stay, /context pin keeps. /context compact --preview shows first what would go.",
    ),
    (
        "The gauge",
        "One number everywhere: the tokens of the next request, of the budget (the window less the room for the"
        " answer). A line at 60 %, preparation at 75 %, compaction at 80 %. Nothing that does not fit is sent.",
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
    "compact": (
        ("/compact the parser bug", "a summary that keeps what matters for it"),
        ("/compact before 40", "only what was said before message 40"),
    ),
    "config": (
        ("/config compact", "every setting about compaction"),
        ("/config context.compact_threshold 70%", "for this chat; --save keeps it"),
        ("/config context.compact_threshold default", "as it was before anybody changed it"),
    ),
    "model": (("/model openai/gpt-4.1", "the next answers are from there"),),
    "permissions": (("/permissions plan", "it only reads"), ("/permissions accept-edits", "it changes files unasked")),
    "tools": (("/tools shell", "what it may do, weighs, and did"),),
    "memory": (("/memory the tests run with make test", "every later session here knows it"),),
    "sessions": (("/sessions search parser", "those in which it was spoken of"),),
    "export": (("/export talk.html", "with the context as a picture"),),
    "cost": (("/config session.max_cost 2", "nothing more is sent after two dollars"),),
}
