"""All formats: which one a file has, by its content, or what it lies beside; the sessions in the agents' own stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import msgspec

from nca.errors import InvalidMessages, NcaError
from nca.transcripts.formats.records import Format, StoredSession
from nca.transcripts.formats.source import Source

MODULES: tuple[str, ...] = (
    "openhands",
    "pi",
    "copilot",
    "gemini",
    "qwen",
    "opencode",
    "llm",
    "aider",
    "swe_agent",
    "sharegpt",
    "chatgpt",
    "crush",
    "goose",
    "cline",
    "kimi_code",
    "kimi",
    "vibe",
    "claude_code",
    "codex",
    "gptme",
)
"""The modules of this package that hold a format, as `FORMAT`. A file is asked for in this order.

openhands is first: it alone reads folders. qwen is before claude_code, whose lines have the same envelope."""


class Stored(msgspec.Struct, frozen=True):
    """Sessions of other agents, newest first, and a line for each file that could not be read."""

    sessions: tuple[StoredSession, ...]
    notes: tuple[str, ...] = ()


@cache
def formats() -> tuple[Format, ...]:
    return tuple(import_module(f"{__package__}.{module}").FORMAT for module in MODULES)


def format_named(name: str) -> Format | None:
    return next((one for one in formats() if one.name == name), None)


def recognise(source: Source) -> Format | None:
    """The format of a file; None if it is of no other agent. Raises InvalidMessages if the file cannot be read."""
    asked = formats()[:1] if source.is_folder else formats()
    return next((one for one in asked if one.knows(source)), None)


def stored_sessions(
    env: Mapping[str, str], home: Path, directory: str | None = None, *, agents: Iterable[str] = ()
) -> Stored:
    """The sessions in the agents' stores, but those of subagents: each belongs to another session.

    directory  only those that worked there; of agents that are named, also those whose directory is not known
    agents     only those of these formats, by name; empty: of all
    """
    asked = set(agents)
    directories = {directory, ""} if asked else {directory}
    found: list[StoredSession] = []
    notes: list[str] = []
    for agent in formats():
        if asked and agent.name not in asked:
            continue
        for path in agent.files(env, home):
            try:
                sessions = (one for one in agent.sessions(Source.of_file(path)) if not one.parent)
                found += [one for one in sessions if directory is None or one.directory in directories]
            except NcaError as error:
                notes.append(f"{agent.title}: {error.message}")
    found.sort(key=lambda session: (-session.at, str(session.path), session.key))
    return Stored(tuple(found), tuple(notes))


_NEIGHBOURS: tuple[tuple[bytes, str, str], ...] = (
    (
        rb'\[ \{ "ts" : \d+ , "type" : "(?:say|ask)"',
        "what Cline or Roo Code shows, not what its model was sent",
        "api_conversation_history.json beside it",
    ),
    (
        rb'\{ "display" : ".*"project" :',
        "what was typed into Claude Code, without answers",
        "a session's file below ~/.claude/projects/",
    ),
    (
        rb'\{ "session_id" : "[^"]*" , "ts" : \d+ , "text" :',
        "what was typed into Codex CLI, without answers",
        "a session's file below ~/.codex/sessions/",
    ),
    (
        rb'\{ "id" : "(?:msg|prt)_',
        "one message or a part of one of opencode",
        "the session's file below storage/session/, or what `opencode export` writes",
    ),
    (
        rb'\{ "id" : "ses_',
        "what opencode knows of a session, without its messages",
        "this file where opencode has it, below storage/session/, or what `opencode export` writes",
    ),
    (
        rb"# \d{4}-\d\d-\d\d\x20\d\d:\d\d:\d\d\.\d+\r?\n\+",
        "what was typed into aider, without answers",
        ".aider.chat.history.md beside it",
    ),
    (rb"TO\x20LLM\x20\d{4}-\d\d-\d\dT", "aider's log of its requests, each whole", ".aider.chat.history.md beside it"),
    (
        rb"#V2\r?\n",
        "what was typed at the prompt of goose or of another program, without answers",
        "goose's ~/.local/share/goose/sessions/sessions.db",
    ),
    (
        rb'\{ "working_dir" : "[^"]*" , "description" :',
        "a session of an older goose, which nca does not read",
        "sessions.db beside it, into which a newer goose takes it",
    ),
    (
        rb'\[ \{ "sessionId" : "[^"]*" , "messageId" : \d+',
        "what was typed into Gemini CLI or Qwen Code, without answers",
        "a session's file in chats/ beside it",
    ),
    (
        rb'(?:\{ "history" : )?\[ \{ "role" : "(?:user|model)" , "parts" : \[ \{ "text" :',
        "what Gemini CLI or Qwen Code saved under a name, without times and models",
        "a session's file in chats/ beside it",
    ),
    (
        rb'\{ "type" : "metadata" , "protocol_version" :',
        "what Kimi CLI's user interface was sent, or a session of Kimi Code without messages",
        "Kimi CLI's context.jsonl beside it",
    ),
    (
        rb'\{ "session_id" : "[^"]*" ,(?: "parent_session_id" : [^,]*,)? "start_time" :',
        "what Mistral Vibe knows of a session, without its messages",
        "messages.jsonl beside it",
    ),
    (rb"<html>.*ChatGPT\x20Data\x20Export", "an export of ChatGPT to look at", "conversations.json beside it"),
    (rb"PK\x03\x04", "a ZIP file", "what is in it, unpacked (of an export of ChatGPT: conversations.json)"),
)
"""How such a file begins behind white space, what it is, and which one is meant.

A blank stands for any white space, or none: some write their JSON on one line, some with indents.
"""


def refuse_neighbour(source: Source) -> None:
    """Raises InvalidMessages, with the file to give instead, if this one lies beside an agent's session."""
    for begins, what, valid in _NEIGHBOURS:
        if re.match(rb"\s*" + begins.replace(b" ", rb"\s*"), source.head, re.DOTALL):
            raise InvalidMessages(f"{source.place}: is {what}; valid: {valid}.")
