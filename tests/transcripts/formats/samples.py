"""Small sessions as other agents write them, one of each format. Their shapes are those of the agents' own sources.

Each has a question, an answer with a call, a result that is an error, and a last answer, ended by the word ENOUGH.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
ASKED, LAST = "Why does test_parser fail?", "The parser forgets the last token. ENOUGH"


def write_lines(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def database(path: Path, *tables: str, **rows: list[dict[str, Any]]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for table in tables:
            connection.execute(table)
        for table, values in rows.items():
            for row in values:
                marks = ", ".join("?" for _ in row)
                names = ", ".join(f'"{name}"' for name in row)
                cells = [json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()]
                connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', cells)
        connection.commit()
    return path


def pi(folder: Path) -> Path:
    usage = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 3, "cost": {"total": 0.02}}

    def entry(number: int, kind: str = "message", parent: int | None = None, **more: Any) -> dict[str, Any]:
        before = f"e{number - 1 if parent is None else parent}" if number > 1 else None
        return {"type": kind, "id": f"e{number}", "parentId": before, "timestamp": "2026-01-05T10:00:00.000Z", **more}

    def answer(*blocks: Any, **more: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": blocks, "model": "opus", "usage": usage, "stopReason": "stop", **more}

    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "pytest"}}
    failed = {"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "isError": True}
    failed["content"] = [{"type": "text", "text": "1 failed"}, picture]
    command = {"role": "bashExecution", "command": "git diff", "output": "+x\n", "exitCode": 3, "cancelled": False}
    return write_lines(
        folder / "session.jsonl",
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/repo"},
        entry(1, message={"role": "user", "content": [{"type": "text", "text": ASKED}, picture]}),
        entry(2, message=answer({"type": "thinking", "thinking": "Look first."}, call)),
        entry(3, message=failed),
        entry(4, message=answer({"type": "text", "text": "A way that was left."})),
        entry(5, parent=3, message=command),
        entry(6, "compaction", summary="They look for a fault.", firstKeptEntryId="e5", tokensBefore=1234),
        entry(7, "label", targetId="e2", label="here"),
        entry(8, message=answer({"type": "text", "text": LAST})),
        entry(9, "session_info", name="Parser"),
        entry(10, "of_a_later_version", anything=[1]),
    )


def copilot(folder: Path) -> Path:
    usage = {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 3}

    def event(number: int, kind: str, *, agent: str = "", **data: Any) -> dict[str, Any]:
        row = {"type": kind, "data": data, "id": f"e{number}", "timestamp": "2026-01-05T10:00:00.000Z"}
        return row | ({"agentId": agent} if agent else {})

    def answer(number: int, call: str = "", *, agent: str = "", **data: Any) -> dict[str, Any]:
        requests = [{"toolCallId": call, "name": "bash", "arguments": {"command": "pytest"}}] if call else []
        shown = {"content": "", "toolRequests": requests, "model": "opus", "apiCallId": f"a{number}", **data}
        return event(number, "assistant.message", agent=agent, **shown)

    (folder / "s1").mkdir(parents=True)
    (folder / "s1" / "workspace.yaml").write_text("id: s1\ncwd: /repo\nname: Parser\nuser_named: true\n")
    done: dict[str, Any] = {
        "toolCallId": "t1",
        "success": True,
        "result": {"content": "1 failed"},
        "shellExecution": {"exitCode": 1},
    }
    ran: dict[str, Any] = {"toolCallId": "u1", "isUserRequested": True, "success": False, "error": {"message": "+x"}}
    asset = {"assetId": "sha256:1", "type": "image", "mimeType": "image/png", "data": PIXEL}
    shown = {"type": "file", "path": "/repo/p.png", "assetId": "sha256:1", "mimeType": "image/png"}
    file = {"type": "file", "path": "/repo/a.py", "displayName": "@a.py"}
    return write_lines(
        folder / "s1" / "events.jsonl",
        event(1, "session.start", sessionId="s1", selectedModel="opus", context={"cwd": "/repo"}),
        event(2, "session.binary_asset", **asset),
        event(
            3, "user.message", content=ASKED, transformedContent=f"<now>10</now>\n\n{ASKED}", attachments=[shown, file]
        ),
        event(4, "system.message", content="You are Copilot."),
        event(5, "session.usage_record", usage={**usage, "apiCallId": "a6"}),
        answer(6, "t1", reasoningText="Look first."),
        event(7, "tool.execution_start", toolCallId="t1", toolName="bash", arguments={"command": "pytest"}),
        event(8, "user.message", agent="g1", content="Run the tests.", source="agent-s1"),
        event(9, "system.message", agent="g1", content="You are a helper."),
        event(10, "tool.execution_complete", **done),
        event(11, "session.compaction_start", trigger="threshold"),
        event(12, "model.message", message={"role": "assistant", "content": "They look for a fault."}),
        event(13, "tool.user_requested", toolCallId="u1", toolName="local_shell", arguments={"command": "git diff"}),
        event(14, "tool.execution_complete", **ran, shellExecution={"exitCode": 3}),
        event(
            15,
            "session.compaction_complete",
            success=True,
            summaryContent="They look for a fault.",
            preCompactionTokens=1234,
        ),
        event(16, "of_a_later_version", anything=[1]),
        answer(17, content=LAST),
        event(18, "session.shutdown", shutdownType="routine"),
    )


def gemini(folder: Path) -> Path:
    def message(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": f"m{number}", "timestamp": "2026-01-05T10:00:00.000Z", "type": kind, "content": content, **more}

    call = {"id": "t1", "name": "run_shell_command", "args": {"command": "pytest"}, "status": "executing"}
    response = {"functionResponse": {"id": "t1", "name": "run_shell_command", "response": {"error": "1 failed"}}}
    tokens = {"input": 100, "output": 5, "cached": 90, "thoughts": 7, "tool": 0, "total": 112}
    asked = message(1, "user", [{"text": ASKED}, {"inlineData": {"data": PIXEL, "mimeType": "image/png"}}])
    thoughts = [{"subject": "Look", "description": "first.", "timestamp": ""}]
    answer = message(3, "gemini", "I run it.", model="gemini-3-pro", thoughts=thoughts)
    done = {**call, "status": "error", "result": [response]}
    copy = message(8, "gemini", "I run it.", toolCalls=[done])
    summary = message(7, "user", [{"text": "<state_snapshot>They look for a fault.</state_snapshot>"}])
    thanks = message(9, "gemini", [{"text": "Got it. Thanks for the additional context!"}])
    return write_lines(
        folder / "session-2026-01-05T10-00-s1.jsonl",
        {"sessionId": "s1", "projectHash": "abc", "startTime": "2026-01-05T10:00:00.000Z", "kind": "main"},
        message(0, "user", [{"text": "/model pro"}]),
        asked,
        message(2, "info", "Update available"),
        answer,
        {**answer, "toolCalls": [call], "tokens": tokens},
        {**answer, "toolCalls": [done], "tokens": tokens},
        message(4, "user", [response]),
        message(5, "user", [{"text": "A way that was left."}]),
        {"$rewindTo": "m5"},
        {"$set": {"summary": "Parser", "lastUpdated": "2026-01-05T10:01:00.000Z"}},
        {"$set": {"messages": [summary, thanks, copy, message(10, "user", [response])]}},
        message(6, "gemini", LAST, model="gemini-3-pro", tokens=tokens),
        {"$of_a_later_version": {}},
    )


def qwen(folder: Path) -> Path:
    def record(number: int, kind: str, parts: Any = None, parent: int | None = None, **more: Any) -> dict[str, Any]:
        before = f"u{number - 1 if parent is None else parent}" if number > 1 else None
        row: dict[str, Any] = {
            "uuid": f"u{number}",
            "parentUuid": before,
            "sessionId": "s1",
            "type": kind,
            "cwd": "/repo",
        }
        if parts is not None:
            row["message"] = {"role": "model" if kind == "assistant" else "user", "parts": parts}
        return row | {"timestamp": "2026-01-05T10:00:00.000Z", "version": "0.9"} | more

    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "cachedContentTokenCount": 90}
    call = {"functionCall": {"id": "t1", "name": "run_shell_command", "args": {"command": "pytest"}}}
    response = {"functionResponse": {"id": "t1", "name": "run_shell_command", "response": {"output": "1 failed"}}}
    kept = {"role": "user", "parts": [response]}
    summary = {"role": "user", "parts": [{"text": "They look for a fault."}]}
    thanks = {"role": "model", "parts": [{"text": "Got it. Thanks for the additional context!"}]}
    made = {"role": "model", "parts": [{"text": "Look first.", "thought": True}, call]}
    info = {"originalTokenCount": 1234, "newTokenCount": 99, "compressionStatus": 1}
    compressed = {"compressedHistory": [summary, thanks, made, kept], "info": info}
    return write_lines(
        folder / "0f1e.jsonl",
        record(1, "user", [{"text": ASKED}, {"inlineData": {"data": PIXEL, "mimeType": "image/png"}}]),
        record(2, "assistant", made["parts"], model="qwen3-coder", usageMetadata=usage),
        record(3, "tool_result", [response], toolCallResult={"status": "error"}),
        record(4, "user", [{"text": "A way that was left."}]),
        record(5, "system", parent=3, subtype="rewind", systemPayload={"truncatedCount": 1}),
        record(6, "system", subtype="chat_compression", systemPayload=compressed),
        record(7, "assistant", [{"text": LAST}], model="qwen3-coder", usageMetadata=usage),
        record(8, "system", subtype="custom_title", systemPayload={"customTitle": "Parser"}),
        record(9, "system", subtype="of_a_later_version", systemPayload={"anything": 1}),
    )


def _opencode() -> tuple[dict[str, Any], list[tuple[str, dict[str, Any], list[dict[str, Any]]]]]:
    tokens = {"input": 10, "output": 5, "reasoning": 7, "cache": {"read": 90, "write": 3}}
    finish = {"type": "step-finish", "reason": "stop", "cost": 0.02, "tokens": tokens}
    by = {"role": "assistant", "modelID": "opus", "providerID": "anthropic", "time": {"created": 1_767_607_200_000}}
    asked = {"role": "user", "time": {"created": 1_767_607_200_000}}
    state = {"status": "completed", "input": {"command": "pytest"}, "output": "1 failed", "metadata": {"exit": 1}}
    picture = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{PIXEL}", "filename": "p.png"}
    tool = {"type": "tool", "callID": "t1", "tool": "bash", "state": {**state, "attachments": [picture]}}
    messages: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
        ("msg_1", asked, [{"type": "text", "text": ASKED}, picture]),
        (
            "msg_2",
            by,
            [
                *({"type": "step-start"}, {"type": "reasoning", "text": "Look first."}, tool, finish),
                *({"type": "step-start"}, {"type": "text", "text": "It fails."}, finish),
            ],
        ),
        ("msg_3", asked, [{"type": "text", "text": "Go on."}]),
        ("msg_4", asked, [{"type": "compaction", "auto": True, "tail_start_id": "msg_3"}]),
        (
            "msg_5",
            {**by, "parentID": "msg_4", "summary": True, "finish": "stop", "tokens": tokens},
            [{"type": "text", "text": "They look for a fault."}],
        ),
        ("msg_6", by, [{"type": "text", "text": LAST}, {"type": "of_a_later_version"}, finish]),
        ("msg_7", asked, [{"type": "text", "text": "A way that was left."}]),
    ]
    session = {"id": "ses_1", "title": "Parser", "directory": "/repo", "version": "1.2"}
    return session, messages


def opencode(folder: Path) -> Path:
    session, messages = _opencode()
    row = {**session, "project_id": "p", "time_updated": 1_767_607_300_000, "revert": {"messageID": "msg_7"}}
    parts = [
        {"id": f"prt_{message}_{number}", "message_id": message, "session_id": "ses_1", "data": part}
        for message, _, held in messages
        for number, part in enumerate(held)
    ]
    return database(
        folder / "opencode.db",
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT, directory TEXT,"
        " version TEXT, revert TEXT, time_updated INTEGER)",
        "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)",
        "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)",
        session=[row],
        message=[
            {"id": message, "session_id": "ses_1", "time_created": place, "data": data}
            for place, (message, data, _) in enumerate(messages)
        ],
        part=parts,
    )


def opencode_files(folder: Path) -> Path:
    """As versions before the database kept it."""
    session, messages = _opencode()
    for message, data, parts in messages:
        write_json(folder / "storage" / "message" / "ses_1" / f"{message}.json", {**data, "id": message})
        for number, part in enumerate(parts):
            write_json(folder / "storage" / "part" / message / f"prt_{number}.json", part)
    row = {**session, "projectID": "p", "time": {"updated": 1_767_607_300_000}, "revert": {"messageID": "msg_7"}}
    return write_json(folder / "storage" / "session" / "p" / "ses_1.json", row)


def opencode_export(folder: Path) -> Path:
    """As `opencode export` writes it."""
    session, messages = _opencode()
    info = {**session, "projectID": "p", "time": {"updated": 1_767_607_300_000}, "revert": {"messageID": "msg_7"}}
    rows: list[Any] = [{"info": data | {"id": message}, "parts": parts} for message, data, parts in messages]
    return write_json(folder / "session.json", {"info": info, "messages": rows})


def llm(folder: Path) -> Path:
    asked: dict[str, Any] = {
        "id": "r1",
        "model": "gpt-5",
        "conversation_id": "c1",
        "datetime_utc": "2026-01-05T10:00:00",
        "prompt": ASKED,
    }
    asked |= {
        "system": "Be brief.",
        "response": "",
        "reasoning": "Look first.",
        "input_tokens": 100,
        "output_tokens": 5,
    }
    asked["token_details"] = {"prompt_tokens_details": {"cached_tokens": 90}}
    again: dict[str, Any] = {
        "id": "r2",
        "model": "gpt-5",
        "conversation_id": "c1",
        "datetime_utc": "2026-01-05T10:01:00",
        "prompt": "",
    }
    again |= {"system": "Be brief.", "response": LAST, "input_tokens": 120, "output_tokens": 9}
    return database(
        folder / "logs.db",
        "CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT)",
        "CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,"
        " conversation_id TEXT, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT,"
        " resolved_model TEXT, reasoning TEXT)",
        "CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT,"
        " tool_call_id TEXT)",
        "CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT,"
        " tool_call_id TEXT, exception TEXT)",
        "CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB)",
        'CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER)',
        "CREATE TABLE fragments (id INTEGER PRIMARY KEY, content TEXT)",
        'CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER)',
        conversations=[{"id": "c1", "name": "Parser", "model": "gpt-5"}],
        responses=[asked, again],
        tool_calls=[{"response_id": "r1", "name": "run", "arguments": {"command": "pytest"}, "tool_call_id": "t1"}],
        tool_results=[{"response_id": "r2", "name": "run", "exception": "1 failed", "tool_call_id": "t1"}],
        attachments=[{"id": "a1", "type": "image/png", "content": b"\x89PNG"}],
        prompt_attachments=[{"response_id": "r1", "attachment_id": "a1", "order": 0}],
        fragments=[{"id": 1, "content": "def parse(): ..."}],
        prompt_fragments=[{"response_id": "r1", "fragment_id": 1, "order": 0}],
    )


def llm_threads(folder: Path) -> Path:
    """As newer versions keep it."""
    chain = [("h1", None, "system"), ("h2", "h1", "user"), ("h3", "h2", "assistant"), ("h4", "h3", "tool")]
    chain += [("h5", "h4", "assistant"), ("h6", "h4", "assistant")]

    def part(message: str, kind: str, text: str | None = None, position: int = 0, **payload: Any) -> dict[str, Any]:
        row = {"message_hash": message, "position": position, "type": kind, "text": text}
        return row | {"payload": payload or None}

    def turn(name: str, tip: str, minute: int) -> dict[str, Any]:
        row = {"id": name, "thread_id": "th1", "tip_message_hash": tip, "model": "gpt-5", "input_tokens": 100}
        return row | {"output_tokens": 5, "datetime_utc": f"2026-01-05T10:0{minute}:00"}

    return database(
        folder / "logs.db",
        "CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT)",
        "CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT)",
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, text TEXT,"
        " payload TEXT)",
        "CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, tip_message_hash TEXT, model TEXT,"
        " resolved_model TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, datetime_utc TEXT)",
        "CREATE TABLE fragments (id INTEGER PRIMARY KEY, content TEXT)",
        "CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB)",
        threads=[{"id": "th1", "name": "Parser", "tip_message_hash": "h6"}],
        messages=[{"hash": one, "parent_hash": parent, "role": role} for one, parent, role in chain],
        parts=[
            part("h1", "text", "Be brief."),
            part("h2", "text", text_ref=[{"literal": "Why does "}, {"fragment": 1}]),
            part("h2", "attachment", position=1, attachment={"id": "a1"}),
            part("h3", "reasoning", "Look first."),
            part("h3", "tool_call", position=1, name="run", arguments={"command": "pytest"}, tool_call_id="t1"),
            part("h4", "tool_result", name="run", output="", exception="1 failed", tool_call_id="t1"),
            part("h5", "text", "A way that was left."),
            part("h6", "text", LAST),
        ],
        turns=[turn("u1", "h3", 1), turn("u2", "h5", 2), turn("u3", "h6", 3)],
        fragments=[{"id": 1, "content": "test_parser fail?"}],
        attachments=[{"id": "a1", "type": "image/png", "content": b"\x89PNG"}],
    )


def aider(folder: Path) -> Path:
    path = folder / ".aider.chat.history.md"
    path.write_text(
        "\n# aider chat started at 2026-01-05 10:00:00\n\n> Main model: opus with diff edit format  \n"
        f"\n#### /add parser.py  \n> Added parser.py to the chat  \n\n#### {ASKED}  \n#### It is new.  \n\n"
        "I look.\n\n#### Where\nIn `parse`.\n\n"
        "> Tokens: 2.3k sent, 90 cache hit, 123 received. Cost: $0.02 message, $0.03 session.  \n"
        f"> Applied edit to parser.py  \n\n#### Go on.  \n\n{LAST}\n\n"
    )
    return path


def openhands(folder: Path) -> Path:
    def text(said: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": said}]

    def stats(prompt: int) -> dict[str, Any]:
        usage = {"prompt_tokens": prompt, "completion_tokens": 5, "cache_read_tokens": 2}
        metrics = {"model_name": "opus", "accumulated_cost": 0.01, "accumulated_token_usage": usage}
        return {
            "kind": "ConversationStateUpdateEvent",
            "key": "stats",
            "value": {"usage_to_metrics": {"default": metrics}},
        }

    def action(call: str) -> dict[str, Any]:
        made = {"id": call, "name": "terminal", "arguments": '{"command": "pytest"}', "origin": "completion"}
        row = {"kind": "ActionEvent", "thought": text("I run it."), "reasoning_content": "Look first."}
        return row | {"tool_name": "terminal", "tool_call_id": call, "tool_call": made, "llm_response_id": "r1"}

    def result(call: str, *, is_error: bool) -> dict[str, Any]:
        seen = {"content": [*text("1 failed"), {"type": "image", "image_urls": [f"data:image/png;base64,{PIXEL}"]}]}
        row = {"kind": "ObservationEvent", "tool_name": "terminal", "tool_call_id": call}
        return row | {"observation": {**seen, "is_error": is_error, "exit_code": 0}}

    def message(role: str, said: str) -> dict[str, Any]:
        return {"kind": "MessageEvent", "llm_message": {"role": role, "content": text(said)}}

    events = [
        {"kind": "SystemPromptEvent", "system_prompt": text("Be brief.")[0], "tools": []},
        message("user", ASKED),
        stats(100),
        action("t1"),
        action("t2"),
        result("t1", is_error=True),
        result("t2", is_error=False),
        {"kind": "Condensation", "forgotten_event_ids": ["id000001", "id000003", "id000004", "id000005", "id000006"]}
        | {"summary": "They look for a fault.", "summary_offset": 1, "llm_response_id": "r2"},
        {"kind": "OfALaterVersionEvent"},
        stats(160),
        message("assistant", LAST),
    ]
    base = {"source": "agent", "timestamp": "2026-01-05T10:00:00.000000"}
    for number, event in enumerate(events):
        name = f"id{number:06}"
        write_json(folder / "c1" / "events" / f"event-{number:05}-{name}.json", {"id": name, **base, **event})
    state = {"id": "c1", "agent": {"llm": {"model": "opus"}}, "workspace": {"working_dir": "/repo"}}
    write_json(folder / "c1" / "base_state.json", state)
    return folder / "c1"


def openhands_lines(folder: Path) -> Path:
    events = sorted((openhands(folder) / "events").iterdir())
    return write_lines(folder / "events.jsonl", *(json.loads(event.read_text()) for event in events))


def swe_agent(folder: Path) -> Path:
    call = {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "pytest"}'}}
    history = [
        {"role": "system", "content": "Be brief.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": [{"type": "text", "text": ASKED}], "agent": "main"},
        {"role": "assistant", "content": "I run it.", "thought": "", "action": "pytest", "tool_calls": [call]},
        {"role": "tool", "content": "1 failed", "tool_call_ids": ["t1"], "message_type": "observation"},
        {"role": "assistant", "content": LAST},
    ]
    whole = {"trajectory": [{"action": "pytest", "observation": "1 failed"}], "history": history, "info": {}}
    return write_json(folder / "a.traj", whole)


def mini_swe_agent(folder: Path) -> Path:
    call = {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "pytest"}'}}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90}}
    extra = {"cost": 0.02, "response": {"model": "opus", "usage": usage}, "timestamp": 1767607200.0}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call],
            "reasoning_content": "Look first.",
            "extra": extra,
        },
        {"role": "tool", "content": "1 failed", "tool_call_id": "t1", "extra": {"returncode": 1}},
        {"role": "assistant", "content": LAST, "extra": extra},
        {"role": "exit", "content": "Submitted", "extra": {"exit_status": "Submitted"}},
    ]
    config = {"model": {"model_name": "opus"}, "environment": {"cwd": "/repo"}}
    info = {"config": config, "mini_version": "2.0"}
    return write_json(
        folder / "b.traj.json", {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    )


def sharegpt(folder: Path) -> Path:
    said = [
        {"from": "human", "value": ASKED},
        {"from": "function_call", "value": '{"name": "run", "arguments": {"command": "pytest"}}'},
        {"from": "observation", "value": "1 failed"},
        {"from": "gpt", "value": LAST},
    ]
    return write_json(folder / "s.json", [{"id": "one", "conversations": said, "system": "Be brief."}])


def chatgpt(folder: Path) -> Path:
    def node(name: str, parent: str | None, *children: str, role: str = "", **content: Any) -> dict[str, Any]:
        to = content.pop("to", "all")
        message = {"id": name, "author": {"role": role, "name": None}, "recipient": to, "content": content}
        message |= {"create_time": 1767607200.5, "metadata": {"model_slug": "gpt-5"}}
        return {"id": name, "parent": parent, "children": list(children), "message": message if role else None}

    nodes = [
        node("root", None, "a"),
        node("a", "root", "b", role="user", content_type="text", parts=[ASKED, {"asset_pointer": "file://1"}]),
        node("b", "a", "c", "x", role="assistant", content_type="code", text="run()", to="python"),
        node("c", "b", "d", role="tool", content_type="execution_output", text="1 failed"),
        node("d", "c", "e", role="assistant", content_type="thoughts", thoughts=[{"summary": "", "content": "So."}]),
        node("x", "b", role="assistant", content_type="text", parts=["A way that was left."]),
        node("e", "d", role="assistant", content_type="text", parts=[LAST]),
    ]
    row = {"title": "Parser", "create_time": 1767607200.0, "current_node": "e", "conversation_id": "c1"}
    return write_json(folder / "conversations.json", [{**row, "mapping": {one["id"]: one for one in nodes}}])


def _crush_tables(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    return database(
        folder / "crush.db",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, summary_message_id TEXT,"
        " created_at INTEGER, updated_at INTEGER)",
        "CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT,"
        " created_at INTEGER, is_summary_message INTEGER)",
        **rows,
    )


def crush(folder: Path) -> Path:
    def message(number: int, role: str, *parts: tuple[str, dict[str, Any]], summary: bool = False) -> dict[str, Any]:
        row = {"id": f"m{number}", "session_id": "s1", "role": role, "created_at": 1_767_607_200 + number // 9}
        held = [{"type": kind, "data": data} for kind, data in parts]
        return row | {"parts": held, "model": "opus", "is_summary_message": int(summary)}

    call = {"id": "t1", "name": "bash", "input": '{"command": "pytest"}', "finished": True}
    result = {"tool_call_id": "t1", "name": "bash", "content": "1 failed", "is_error": True}
    picture = {"Path": "p.png", "MIMEType": "image/png", "Data": PIXEL}
    session = {"id": "s1", "title": "Parser", "summary_message_id": "m4", "created_at": 1, "updated_at": 1_767_607_300}
    return _crush_tables(
        folder,
        sessions=[session, {"id": "s2", "parent_session_id": "s1", "title": "task", "created_at": 2, "updated_at": 3}],
        messages=[
            message(1, "user", ("text", {"text": ASKED}), ("binary", picture)),
            message(2, "assistant", ("reasoning", {"thinking": "Look first."}), ("tool_call", call), ("finish", {})),
            message(3, "tool", ("tool_result", result), ("of_a_later_version", {})),
            message(4, "assistant", ("text", {"text": "They look for a fault."}), summary=True),
            message(5, "user", ("shell_command", {"command": "git diff", "output": "+x", "exit_code": 3})),
            message(6, "assistant", ("text", {"text": LAST}), ("finish", {"reason": "end_turn"})),
        ],
    )


def goose(folder: Path) -> Path:
    def message(number: int, role: str, *blocks: dict[str, Any], sees: str = "both") -> dict[str, Any]:
        seen: dict[str, Any] = {"userVisible": sees in ("both", "user"), "agentVisible": sees in ("both", "agent")}
        row = {"message_id": f"m{number}", "session_id": "20260105_1", "role": role, "content_json": list(blocks)}
        used = {"inputTokens": 103, "outputTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 3, "cost": 0.02}
        made = {"usage": used, "inference": {"provider": "anthropic", "requestedModel": "opus"}}
        seen |= made if role == "assistant" else {}
        return row | {"metadata_json": seen, "created_timestamp": 1_767_607_200}

    call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "pytest"}}}
    result = {"status": "success", "value": {"content": [{"type": "text", "text": "1 failed"}], "isError": True}}
    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    told = "Your context was compacted. The previous message contains a summary of the conversation so far."
    session = {"id": "20260105_1", "name": "Parser", "working_dir": "/repo", "created_at": "2026-01-05 10:00:00"}
    return database(
        folder / "sessions.db",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TEXT, updated_at TEXT)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,"
        " metadata_json TEXT, created_timestamp INTEGER)",
        sessions=[{**session, "updated_at": "2026-01-05 10:01:00"}],
        messages=[
            message(1, "user", {"type": "text", "text": ASKED}, picture, sees="user"),
            message(
                2,
                "assistant",
                {"type": "thinking", "thinking": "Look first.", "signature": "s"},
                {"type": "toolRequest", "id": "t1", "toolCall": call},
                sees="user",
            ),
            message(3, "user", {"type": "toolResponse", "id": "t1", "toolResult": result}, sees="user"),
            message(4, "user", {"type": "text", "text": "They look for a fault."}, sees="agent"),
            message(5, "assistant", {"type": "text", "text": told}, sees="agent"),
            message(6, "user", {"type": "text", "text": "/compact"}, sees="user"),
            message(7, "user", {"type": "text", "text": "Go on."}),
            message(8, "assistant", {"type": "text", "text": LAST}, {"type": "ofALaterVersion"}),
        ],
    )


def cline(folder: Path) -> Path:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    call = {"type": "tool_use", "id": "t1", "name": "execute_command", "input": {"command": "pytest"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "1 failed", "is_error": True}
    item = {"id": "1767607200000", "ts": 1_767_607_200_000, "task": "Parser", "cwdOnTaskInitialization": "/repo"}
    write_json(
        folder / "state" / "taskHistory.json", [{**item, "conversationHistoryDeletedRange": [2, 3]}, {"id": "other"}]
    )
    by = {"modelInfo": {"modelId": "opus"}, "ts": 1_767_607_200_000}
    return write_json(
        folder / "tasks" / "1767607200000" / "api_conversation_history.json",
        [
            {"role": "user", "content": [{"type": "text", "text": ASKED}, picture]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Look first."}, call], **by},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "It fails.", **by},
            {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
            {"role": "assistant", "content": [{"type": "text", "text": LAST}], **by},
        ],
    )


def gptme(folder: Path) -> Path:
    at = {"timestamp": "2026-01-05T10:00:00.000000"}
    spent = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 90, "cache_creation_tokens": 3}
    by = {"metadata": {"model": "opus", "usage": spent, "cost": 0.02}}
    return write_lines(
        folder / "2026-01-05-parser" / "conversation.jsonl",
        {"role": "system", "content": "Be brief.", "pinned": True, "hide": True, **at},
        {"role": "user", "content": ASKED, "files": ["parser.py"], **at},
        {"role": "assistant", "content": "I run it.\n```shell\npytest\n```", **at, **by},
        {"role": "system", "content": "1 failed", **at},
        {"role": "assistant", "content": LAST, **at},
    )


def kimi_code(folder: Path) -> Path:
    def message(text: str, kind: str, *more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}, *more]
        return {
            "type": "context.append_message",
            "message": {"role": "user", "content": content, "origin": {"kind": kind}},
        }

    def event(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "context.append_loop_event", "event": {"type": kind, **more}}

    def said(text: str) -> dict[str, Any]:
        return event("content.part", part={"type": "text", "text": text})

    used = {"inputOther": 10, "output": 5, "inputCacheRead": 90, "inputCacheCreation": 3}
    rows = (
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1_767_607_200_000},
        {"type": "profile.bind", "systemPrompt": "You are Kimi Code CLI."},
        message(ASKED, "user", {"type": "image_url", "imageUrl": {"url": f"data:image/png;base64,{PIXEL}"}}),
        message("<system-reminder>It is Monday.</system-reminder>", "injection"),
        event("step.begin", step=1),
        {"type": "llm.request", "kind": "loop", "model": "kimi-k2"},
        {"type": "usage.record", "model": "m", "usage": used},
        event("content.part", part={"type": "think", "think": "Look first."}),
        event("tool.call", toolCallId="t1", name="Bash", args={"command": "pytest"}),
        event("tool.result", toolCallId="t1", result={"output": "1 failed", "isError": True}),
        event("step.end", finishReason="tool_use", usage=used),
        {"type": "full_compaction.begin", "source": "manual"},
        {
            "type": "context.apply_compaction",
            "summary": "They look for a fault.",
            "tokensBefore": 1234,
            "tokensAfter": 99,
        },
        message("Go another way.", "user"),
        event("step.begin", step=1),
        said("A way that was left."),
        event("step.end", finishReason="end_turn"),
        {"type": "context.undo", "count": 1},
        message("<bash-input>\ngit diff\n</bash-input>", "shell_command"),
        event("step.begin", step=1),
        said(LAST),
        event("step.end", finishReason="end_turn"),
        {"type": "of_a_later_version", "anything": [1]},
    )
    write_json(folder / "s1" / "state.json", {"id": "s1", "cwd": "/repo", "title": "Parser"})
    path = folder / "s1" / "agents" / "main" / "wire.jsonl"
    return write_lines(path, *({**row, "time": 1_767_607_200_000} for row in rows))


def kimi(folder: Path) -> Path:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    call = {"type": "function", "id": "t1", "function": {"name": "Shell", "arguments": '{"command": "pytest"}'}}
    share = folder / "kimi"
    write_json(share / "kimi.json", {"work_dirs": [{"path": "/elsewhere"}, {"path": "/repo"}]})
    digest = hashlib.md5(b"/repo", usedforsecurity=False).hexdigest()
    return write_lines(
        share / "sessions" / digest / "s1" / "context.jsonl",
        {"role": "_system_prompt", "content": "Be brief."},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": [{"type": "text", "text": ASKED}, picture]},
        {"role": "assistant", "content": [{"type": "think", "think": "Look first."}], "tool_calls": [call]},
        {"role": "_usage", "token_count": 103},
        {"role": "tool", "content": [{"type": "text", "text": "1 failed"}], "tool_call_id": "t1"},
        {"role": "assistant", "content": LAST},
    )


def vibe(folder: Path) -> Path:
    call = {"id": "t1", "index": 0, "function": {"name": "bash", "arguments": '{"command": "pytest"}'}}
    meta = {"session_id": "s2", "parent_session_id": "s1", "title": "Parser", "end_time": "2026-01-05T10:00:00Z"}
    meta |= {"environment": {"working_directory": "/repo"}, "config": {"active_model": "devstral"}}  # type: ignore[dict-item]
    path = folder / "session_1" / "messages.jsonl"
    write_json(path.with_name("meta.json"), {**meta, "system_prompt": {"role": "system", "content": "Be brief."}})
    return write_lines(
        path,
        {"role": "user", "content": ASKED, "message_id": "a"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Look first.",
            "tool_calls": [call],
            "message_id": "b",
        },
        {"role": "tool", "content": "1 failed", "name": "bash", "tool_call_id": "t1"},
        {"role": "assistant", "content": LAST, "message_id": "c"},
    )


SAMPLES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "pi": ("pi", pi),
    "copilot": ("copilot", copilot),
    "gemini": ("gemini", gemini),
    "qwen": ("qwen", qwen),
    "opencode": ("opencode", opencode),
    "opencode-files": ("opencode", opencode_files),
    "opencode-export": ("opencode", opencode_export),
    "llm": ("llm", llm),
    "llm-threads": ("llm", llm_threads),
    "aider": ("aider", aider),
    "openhands": ("openhands", openhands),
    "openhands-lines": ("openhands", openhands_lines),
    "swe-agent": ("swe-agent", swe_agent),
    "mini-swe-agent": ("swe-agent", mini_swe_agent),
    "sharegpt": ("sharegpt", sharegpt),
    "chatgpt": ("chatgpt", chatgpt),
    "crush": ("crush", crush),
    "goose": ("goose", goose),
    "cline": ("cline", cline),
    "gptme": ("gptme", gptme),
    "kimi": ("kimi", kimi),
    "kimi-code": ("kimi-code", kimi_code),
    "vibe": ("vibe", vibe),
}
"""The format's name and what writes the sample into a folder."""
