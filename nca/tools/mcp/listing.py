"""Read the lists of an MCP server (tools, prompts, resources), and listen for changes of the lists."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nca.tools.mcp.tool import Offer

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import Prompt, Resource, Tool

ListKind = Literal["tools", "prompts", "resources"]
ALL_KINDS: frozenset[ListKind] = frozenset({"tools", "prompts", "resources"})
MOST_LISTED = 200
_MOST_PAGES = 50
_LISTEN_PAUSE_SECONDS = 30.0
"""Pause between two subscriptions, for a server that drops them again and again."""
_CHANGED: dict[str, ListKind] = {f"notifications/{kind}/list_changed": kind for kind in ALL_KINDS}


@dataclass(frozen=True, slots=True)
class Listing:
    """The lists as last read, each with at most MOST_LISTED entries."""

    offers: tuple[Offer, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()


async def read_lists(client: Client, kinds: Collection[ListKind], before: Listing) -> Listing:
    """Read these lists again and replace them in `before`. Raises the SDK's error if the tools cannot be listed."""
    from mcp import MCPError

    listing, offered = before, client.server_capabilities
    if "tools" in kinds:
        listing = replace(listing, offers=await _offers(client))
    # If these lists cannot be read, the server is used without them.
    if "prompts" in kinds and offered.prompts:
        with contextlib.suppress(MCPError):
            listing = replace(listing, prompts=tuple(await _pages(client.list_prompts, "prompts")))
    if "resources" in kinds and offered.resources:
        with contextlib.suppress(MCPError):
            listing = replace(listing, resources=tuple(await _pages(client.list_resources, "resources")))
    return listing


def changed_list(message: object) -> ListKind | None:
    """The list that a notification says has changed; None for every other message."""
    return _CHANGED.get(getattr(message, "method", ""))


async def keep_listening(client: Client, on_listening: Callable[[], None]) -> None:
    """Subscribe to changes of the lists, as the protocol demands since 2026-07-28.

    The notifications reach the client's message handler, as in older protocols. `on_listening` is called whenever a
    subscription begins, because earlier changes are not reported. Returns if the server does not support it.
    """
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    offered = client.server_capabilities
    tells = {kind: bool(getattr(getattr(offered, kind), "list_changed", False)) for kind in ALL_KINDS}
    while any(tells.values()):
        with contextlib.suppress(SubscriptionLost):
            try:
                async with client.listen(
                    tools_list_changed=tells["tools"],
                    prompts_list_changed=tells["prompts"],
                    resources_list_changed=tells["resources"],
                ) as subscription:
                    on_listening()
                    async for _ in subscription:
                        pass
            except (ListenNotSupportedError, MCPError):
                return
        await asyncio.sleep(_LISTEN_PAUSE_SECONDS)


async def _offers(client: Client) -> tuple[Offer, ...]:
    return tuple(
        Offer(
            tool.name,
            tool.description or (tool.title or ""),
            tool.input_schema,
            is_read_only=bool(tool.annotations and tool.annotations.read_only_hint),
        )
        for tool in await _pages(client.list_tools, "tools")
        if not _is_task_only(tool)
    )


def _is_task_only(tool: Tool) -> bool:
    """Whether the tool refuses plain calls (protocol 2025-11-25). To offer it would cost tokens and an error."""
    return tool.execution is not None and tool.execution.task_support == "required"


async def _pages(ask: Any, field: str) -> list[Any]:
    """All pages of a list, within the bounds."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]
