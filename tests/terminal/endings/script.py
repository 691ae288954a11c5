"""The provider's and the server's side of a turn of some three seconds with everything in it that a signal can meet.

Connecting, reasoning, an answer that streams, a question to the person, a command with a child of its own, a summary, a
second answer. Beside it runs an MCP server with a child of its own.
"""

from __future__ import annotations

import re
import time

from nca.testing.http_exchange import Exchange
from nca.testing.scripted import Answer, is_summary_request, text_of

MODEL = "any"
WINDOW_TOKENS = 21_000
"""The talk fills two thirds of it; the command's output makes a summary due."""
QUESTION = "What is in the box?"
AGAIN = "And after that?"
LAST_ANSWER = "Nothing after that."
COMMAND = "sleep 71 & sleep 0.1; seq 1 1500"
LAST_LINE = "\n1500"
WORD = re.compile(r"\bw(\d{3})\b")
_CONNECT_SECONDS = 0.15
_WORD_SECONDS = 0.007
_WORDS = 30

MCP_SERVER = """\
import json, os, signal, subprocess, sys, time
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "72"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "box", "version": "1"},
        },
        "tools/list": {"tools": []},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] in answers:
        answer["result"] = answers[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
while sys.argv[1] == "stubborn":
    time.sleep(1)
"""
"""`stubborn`: it ends for nobody."""


def words(first: int) -> str:
    """Words that can be found again one by one, on the screen and in the store."""
    return " ".join(f"w{number:03}" for number in range(first, first + _WORDS)) + ".\n"


def answer(exchange: Exchange) -> None:
    """The provider's side of the turn."""
    time.sleep(_CONNECT_SECONDS)
    last = exchange.request["messages"][-1]
    exchange.token_seconds = _WORD_SECONDS
    if is_summary_request(exchange.request):
        exchange.answer = Answer(text="### 1. Goal and intent\nTo know what is in the box.\n### 9. Next step\nGo on.")
    elif AGAIN in text_of(last):
        exchange.token_seconds = 0
        exchange.answer = Answer(text=LAST_ANSWER)
    elif last["role"] == "tool":
        exchange.answer = Answer(text=words(500))
    else:
        exchange.begin()
        for word in ("Let ", "me ", "see. ") * 6:
            exchange.delta({"reasoning_content": word})
            time.sleep(_WORD_SECONDS)
        exchange.text(words(100))
        exchange.calls(("shell", {"command": COMMAND}))
        return
    exchange.reply()
