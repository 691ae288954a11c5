"""Serve one client on standard input and output, until it ends or a signal ends nca."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

from acp import run_agent

from nca.acp.agent import NcaAgent, Opener
from nca.acp.stdio import Stdio
from nca.terminal.render.sanitize import one_line
from nca.terminal.signals import EXIT_CODES

_LINE_CHARS = 600


async def serve(opener: Opener, streams: tuple[int, int]) -> int:
    """The exit code. `streams`: see `private_streams`."""
    _log_in_lines()
    stdio = Stdio(*streams)
    agent = NcaAgent(opener, stdio)
    stdio.on_end = agent.cancel_all
    ended_by: list[int] = []

    def end(number: int) -> Callable[[], None]:
        def ending() -> None:
            ended_by.append(number)
            stdio.end()

        return ending

    loop = asyncio.get_running_loop()
    for number in EXIT_CODES:
        loop.add_signal_handler(number, end(number))
    try:
        await run_agent(agent, stdio, use_unstable_protocol=True)  # type: ignore[arg-type]
    finally:
        for number in EXIT_CODES:
            loop.remove_signal_handler(number)
        await agent.close()
        await stdio.close()
    return EXIT_CODES[ended_by[0]] if ended_by else 0


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        reason = f": {record.exc_info[1]}" if record.exc_info and record.exc_info[1] is not None else ""
        return f"nca acp: {one_line(record.getMessage() + reason, _LINE_CHARS)}"


def _log_in_lines() -> None:
    """The SDK logs what goes wrong; a client shows standard error to the person."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR)
