"""The talk in `screenshots`: a small project, and the provider's answers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from pictures_talk import SUMMARY

from nca.testing.scripted import Answer, text_of

MODEL, FAULT = "scripted", "wrong-key"
SLOW_SECONDS = 4.0
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.tool()
def look_up(word: str) -> str:
    '''Look a word up in the notes of the project, in all that was written down so far.'''
    return word


server.run()
"""
SETTINGS = f"""
[mcp.servers.notes]
command = "{sys.executable}"
args = ["notes_server.py"]

[mcp.servers.broken]
command = "no-such-program"
args = ["--verbose", "--of-a-length-that-no-narrow-window-has-room-for"]
"""
STATISTICS = '''\
"""Statistics of measured values."""

from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """The mean of some values, which are measured every hour at each of the stations and handed over once a day."""
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
'''
FILES = {
    "statistics.py": STATISTICS,
    "notes_server.py": SERVER,
    "readings.txt": "".join(f"2024-05-{day:02} station {day % 7} {day * 1.37:.2f}\n" for day in range(1, 32)) * 3,
}
MEAN = "    return sum(values) / len(values)\n"
FIXED = "    return sum(values) / len(values) if values else 0.0\n"
TABLE = """\
These are tried; **nothing is lost** at any of them:

| Columns | Where people meet them | Rows | What has to give way |
| ---: | --- | --- | --- |
| 40 | a phone, a quarter of a screen | 15 | the session's name, bars, `kept` |
| 80 | the usual window | 24 | nothing |
| 200 | a wide screen, 日本語 too | 50 | nothing at all |

1. First the head.
2. Then the rows, of which each may be longer than the window and is broken between its words:
   - a list in a list
"""
CODE = """\
# Mean and spread

Here is the code *as it stands*, with `spread` below `mean`:

```python
def mean(values: Sequence[float]) -> float:
    \"\"\"The mean of some values.\"\"\"
    total = sum(values)  # a comment that explains it, and is a little longer than a narrow window is wide
    return total / len(values) if len(values) > 0 else 0.0
```

> A quote says that a mean of nothing is nothing.

See <https://docs.python.org/3/library/statistics.html> for more.
"""
TALK: dict[str, Sequence[Answer]] = {
    "Which widths": (Answer(text=TABLE),),
    "Show me the code": (Answer(text=CODE),),
    "Read both": (
        Answer(
            tool_calls=[("read_file", {"path": "statistics.py"}), ("read_file", {"path": "readings.txt"})],
            reasoning="The person wants to know what is in both files, so I read them first. " * 4,
        ),
        Answer(tool_calls=[("read_file", {"path": "no/such/folder/with-a-long-name/statistics_of_may.py"})]),
        Answer(text="There are two functions and three months of readings.\n"),
    ),
    "Change the mean": (
        Answer(tool_calls=[("edit_file", {"path": "statistics.py", "old_text": MEAN, "new_text": FIXED})]),
        Answer(text="The mean is 0.0 if there are no values.\n"),
    ),
    "Serve": (
        Answer(
            tool_calls=[
                ("shell", {"command": f"{sys.executable} -m http.server 0 --bind 127.0.0.1", "background": True})
            ]
        ),
        Answer(text="The server runs.\n"),
    ),
    "Take your time": (Answer(text="Here it is.\n"),),
    "Does it answer": (Answer(text="Yes.\n"),),
}


def talk(request: dict[str, Any]) -> Answer:
    """The answer to the newest question of the chat, or a summary if one is asked for."""
    messages = request["messages"]
    last = text_of(messages[-1])
    if "<transcript>" in last:
        return Answer(text=SUMMARY)
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    question = text_of(messages[asked])
    if question.startswith("Take your time"):
        time.sleep(SLOW_SECONDS)
    answers = next(answers for begin, answers in TALK.items() if question.startswith(begin))
    step = sum(1 for message in messages[asked:] if message["role"] == "assistant")
    return answers[min(step, len(answers) - 1)]
