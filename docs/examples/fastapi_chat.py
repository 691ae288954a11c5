"""FastAPI with any number of workers: a conversation and its view are in databases, so each request may go to any."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from openai import AsyncOpenAI

import nca

FOLDER, USERS = Path(os.environ["CHAT_FOLDER"]), json.loads(os.environ["CHAT_USERS"])  # {token: user}; use your own
MODEL, WINDOW = os.environ.get("CHAT_MODEL", "gpt-5"), int(os.environ.get("CHAT_WINDOW", "0"))
RECALL = nca.ContextView.recall_tool
app, client, store = FastAPI(), AsyncOpenAI(), nca.Store.open(FOLDER / "views.db")


def database() -> closing[sqlite3.Connection]:
    chats = sqlite3.connect(FOLDER / "chats.db")
    chats.execute("CREATE TABLE IF NOT EXISTS messages (chat TEXT, seq INTEGER, body TEXT, PRIMARY KEY (chat, seq))")
    return closing(chats)


def load(key: str) -> list[dict[str, Any]]:
    with database() as chats:
        return [
            json.loads(row[0]) for row in chats.execute("SELECT body FROM messages WHERE chat = ? ORDER BY seq", (key,))
        ]


def save(key: str, log: list[dict[str, Any]], begin: int) -> None:
    """Raises IntegrityError if another request has saved its messages meanwhile."""
    with database() as chats, chats:
        rows = [(key, seq, json.dumps(log[seq])) for seq in range(begin, len(log))]
        chats.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)


def user_of(given: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    if given.credentials not in USERS:
        raise HTTPException(401, "The token is not known.")
    return str(USERS[given.credentials])


@app.post("/chats/{chat}")
async def answer(
    chat: str, text: Annotated[str, Body(embed=True)], user: Annotated[str, Depends(user_of)]
) -> dict[str, str]:
    key = f"{user}/{chat}"
    before = await run_in_threadpool(load, key)
    log = [*before, {"role": "user", "content": text}]
    view = nca.ContextView(model=MODEL, context_window=WINDOW, tools=[RECALL], store=store, key=key)
    while log[-1]["role"] != "assistant" or "tool_calls" in log[-1]:
        fitted = await view.afit(log)
        response: Any = await client.chat.completions.create(model=MODEL, messages=fitted.messages, tools=[RECALL])
        log.append(response.choices[0].message.model_dump(exclude_none=True))
        for call in log[-1].get("tool_calls", ()):
            found = await view.arecall(**json.loads(call["function"]["arguments"]))
            log.append({"role": "tool", "tool_call_id": call["id"], "content": found})
    await run_in_threadpool(save, key, log, len(before))
    return {"text": log[-1].get("content", "")}


@app.exception_handler(nca.ContextDoesNotFit)
@app.exception_handler(nca.ViewInUse)
@app.exception_handler(sqlite3.IntegrityError)
async def refused(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, nca.ContextDoesNotFit):
        return JSONResponse({"detail": str(error)}, 422)
    return JSONResponse({"detail": "Another request goes on with this chat."}, 409)
