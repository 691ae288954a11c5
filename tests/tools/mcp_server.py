"""An MCP server written with the official SDK: `python -m tests.tools.mcp_server [http PORT]`.

Where its environment variable NCA_TEST_SERVER is noisy, it writes what does not belong to the protocol.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp_types import (
    BlobResourceContents,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)
REAL_INPUT = os.fstat(0)
REAL_OUTPUT = os.dup(1)
"""The SDK takes descriptor 1 away from what a tool prints."""
server = MCPServer("test")


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Say it again."""
    return f"echo: {text}"


@server.tool()
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "at last"


@server.tool()
async def counts(context: Context[Any, Any]) -> str:
    """Say how far it is."""
    await context.report_progress(1)
    await context.report_progress(2, 3, "two\x1b[31m\nof three " + "x" * 500)
    return "counted"


@server.tool(structured_output=False)
def big(megabytes: int) -> str:
    """Say very much."""
    return "x" * (megabytes << 20)


@server.tool()
def dies() -> str:
    """End the program."""
    say("going down\x1b[31m now\n")
    os._exit(3)


@server.tool()
def dies_slowly(seconds: float = 0.5) -> str:
    """Stop reading, and end a moment later."""
    for descriptor in range(64):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), REAL_INPUT):
                os.close(descriptor)
    say("reads no more\n")
    time.sleep(seconds)
    os._exit(3)


@server.tool()
def endless_line() -> str:
    """Write a line that never ends, past the protocol."""
    while True:
        os.write(REAL_OUTPUT, b"y" * 65_536)


@server.tool()
def chatter() -> str:
    """Write messages that nobody asked for, without end."""
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
    while True:
        os.write(REAL_OUTPUT, line * 500)


@server.tool()
def facts() -> dict[str, Any]:
    """Something with a structure."""
    return {"answer": 42}


@server.tool(structured_output=False)
def picture() -> Any:
    """An image."""
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False)
def pictures() -> Any:
    """Images of every kind, also such that no model takes."""
    blob = base64.b64encode(PIXEL).decode()
    wide = PIXEL[:16] + (9_000).to_bytes(4, "big") + PIXEL[20:]
    held = BlobResourceContents(uri="memo://pixel", mime_type="image/png", blob=blob)
    return [
        Image(data=wide, format="png"),
        Image(data=b"no image at all", format="png"),
        ImageContent(type="image", data="§", mime_type="image/png"),
        EmbeddedResource(type="resource", resource=held),
        *(Image(data=PIXEL, format="png") for _ in range(8)),
    ]


@server.tool()
def fails() -> str:
    """An error of its own."""
    raise ValueError("this went wrong")


@server.tool()
def environment() -> str:
    """The names of all variables, and where it stands."""
    return " ".join(sorted(os.environ)) + " in " + str(Path.cwd())


@server.tool()
def child() -> str:
    """Start a program that outlives its parent."""
    return str(subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid)


@server.tool(name="a name.with/odd characters " + "and very long " * 5)
def odd() -> str:
    """Its name is refused by every provider."""
    return "odd"


class Trip(BaseModel):
    """What is asked of a person."""

    city: str
    nights: int = Field(default=2, ge=1, le=30)
    seaside: bool = False
    room: Literal["single", "double"] = "single"


def which_trip(greeting: str) -> Elicit[Trip]:
    return Elicit(f"{greeting}! Where to?", Trip)


def what_the_model_says() -> Sample:
    words = TextContent(type="text", text="What is the capital of Malta?")
    return Sample([SamplingMessage(role="user", content=words)], max_tokens=50, system_prompt="Be short.")


def which_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def books(greeting: str, trip: Annotated[ElicitationResult[Trip], Resolve(which_trip)]) -> str:
    """Book a trip, as the person wants it."""
    if not isinstance(trip, AcceptedElicitation):
        return trip.action
    found = trip.data
    return f"{found.city}, {found.nights} nights, seaside {found.seaside}, {found.room}"


@server.tool()
async def thinks(said: Annotated[CreateMessageResult, Resolve(what_the_model_says)]) -> str:
    """Ask the client's model."""
    return f"{said.model}, {said.stop_reason}: {said.content.text if said.content.type == 'text' else ''}"


@server.tool()
async def looks(roots: Annotated[ListRootsResult, Resolve(which_roots)]) -> str:
    """Name the client's folders."""
    return " ".join(str(root.uri) for root in roots.roots)


@server.prompt()
def review(file: str, question: str = "Is it right?") -> str:
    """Ask for a review."""
    return f"Please review {file}. {question}"


@server.resource("memo://today")
def memo() -> str:
    """What is to be done."""
    return "buy milk"


def main() -> None:
    if os.environ.get("NCA_TEST_SERVER") == "noisy":
        os.write(1, b"Welcome to this server!\n")
        say("\x1b]0;stolen title\x07" + "noise " * 10_000)
    say(f"pid {os.getpid()};\n")
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
