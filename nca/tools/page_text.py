"""Convert a fetched page to Markdown, and decode other text.

A page of 2 MB may take most of a minute, so pages are converted in a process of their own, which can be stopped.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import signal
import sys

from nca.tools.programs import python_command, started
from nca.tools.tool import ToolError

DEADLINE_SECONDS = 20.0

_LEFT_OUT = "script, style, nav, img, picture, svg, form, button, iframe, noscript, template, aside, footer"
"""Elements around a page's text, or without text."""
_EMBEDDED = re.compile(r"\]\((?:data|javascript):[^)\s]*\)")
_CHARSET = re.compile(rb"(?i)<meta[^>]{0,200}charset=[\"']?([a-z0-9_-]{1,40})")
_BLANK_LINES = re.compile(r"\n{3,}")
_PAGES = ("text/html", "application/xhtml+xml")
_SUFFIXES = ("+json", "+xml", "+yaml")
_TEXTS = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/toml")


def is_text(media_type: str) -> bool:
    """Whether a body of this type is read. A missing type counts as text; the body is checked later."""
    return not media_type or media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(_SUFFIXES)


async def text_of(
    raw: bytes, media_type: str, charset: str, deadline_seconds: float = DEADLINE_SECONDS
) -> tuple[str, str]:
    """The title, or "", and the text: a page as Markdown, other text unchanged. Raises ToolError after the deadline."""
    if media_type not in _PAGES and (media_type or raw.lstrip()[:1] != b"<"):
        return "", _decoded(raw, charset)
    head = json.dumps({"charset": charset, "deadline_seconds": deadline_seconds}).encode()
    command = python_command(__name__, "justhtml")
    try:
        async with asyncio.timeout(deadline_seconds), started(command, head + b"\n" + raw) as process:
            assert process.stdout is not None
            title, text = json.loads(await process.stdout.read())
    except TimeoutError:
        raise ToolError(f"the page could not be turned into text within {deadline_seconds:g} seconds") from None
    except ValueError as error:
        raise ToolError("the page could not be turned into text") from error
    return title, text


def main() -> None:
    """Convert the page on stdin, behind a line with its charset and the deadline, to a title and a text on stdout."""
    asked = json.loads(sys.stdin.buffer.readline())
    # If nca was killed, nobody else stops this process. The alarm's default action ends it.
    signal.setitimer(signal.ITIMER_REAL, asked["deadline_seconds"])
    sys.stdout.write(json.dumps(_converted(sys.stdin.buffer.read(), asked["charset"])))


def _converted(raw: bytes, charset: str) -> tuple[str, str]:
    from justhtml import Drop, JustHTML

    try:
        # Not sanitized: no browser shows it, and sanitizing would drop the title.
        document = JustHTML(_decoded(raw, charset or _declared(raw)), sanitize=False, transforms=[Drop(_LEFT_OUT)])
        title, body = document.query_one("title"), document.query_one("body")
        text = _EMBEDDED.sub("]", (body or document).to_markdown())
    except RecursionError:
        return "", _decoded(raw, charset)
    return " ".join(title.to_text().split()) if title else "", _BLANK_LINES.sub("\n\n", text).strip()


def _declared(raw: bytes) -> str:
    """The charset that a page declares in its head."""
    match = _CHARSET.search(raw[:4096])
    return match[1].decode("ascii") if match else ""


def _decoded(raw: bytes, charset: str) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    try:
        return raw.decode(charset or "utf-8-sig", "replace")
    except (LookupError, ValueError):
        # Not a known charset, or not one for text.
        return raw.decode("utf-8-sig", "replace")
