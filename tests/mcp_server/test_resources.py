"""Sessions as resources, page by page; prompts with what the sessions say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp_types import TextContent, TextResourceContents

from nca.mcp_server.answers import MAX_EXPANDED_TOKENS, MAX_TOKENS
from nca.sessions import Store
from nca.vocabulary import count
from tests.mcp_server.asking import served, store_of, talk

_NEXT = re.compile(r"continue with (nca://\S+?)\. From past sessions")


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert count(content.text) <= MAX_EXPANDED_TOKENS
    return content.text


async def prompted(client: Client, name: str, **arguments: str) -> str:
    [message] = (await client.get_prompt(name, arguments)).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_sessions_are_listed_and_read_page_by_page(tmp_path: Path) -> None:
    with Store.open(store_of(tmp_path)) as store:
        ids = [
            talk(store, f"/work/{number}", f"Question {number}", "Answer", name=f"No. {number}") for number in range(90)
        ]
        texts = [
            f"part {number}: " + "word " * (200 if number != 50 else 9_000) + f"end {number}" for number in range(60)
        ]
        long = talk(store, "/work/long", *texts)
    async with served(tmp_path, "serve", "--all") as client:
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found += page.resources
            cursor = page.next_cursor
            if cursor is None:
                break
        assert [one.uri for one in found] == [f"nca://sessions/{id}" for id in (long, *ids[::-1])]
        assert found[1].name == "No. 89"
        assert found[1].description
        assert found[1].description.startswith("nca, /work/89, 2 messages, ")
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [
            "nca://sessions/{session}",
            "nca://sessions/{session}/{messages}{?offset}",
        ]
        uri, whole = f"nca://sessions/{long}", ""
        while uri:
            text = await read(client, uri)
            whole += text.partition("\n\n")[2]
            more = _NEXT.search(text.splitlines()[0])
            uri = more[1] if more else ""
        assert re.findall(r"part (\d+):", whole) == [str(number) for number in range(60)]
        assert re.findall(r"end (\d+)", whole) == [str(number) for number in range(60)]
        assert whole.count("word") == 59 * 200 + 9_000
        one = await read(client, f"nca://sessions/{long}/3")
        assert "message 3 of 60." in one.splitlines()[0]
        for wrong, reason in (
            ("nca://sessions/ffff0000", "there is no session 'ffff0000'"),
            ("nca://elsewhere/1", "there is no resource 'nca://elsewhere/1'; a session is nca://sessions/ID"),
            (f"nca://sessions/{long}/61", "has 60 messages; there is no message 61"),
        ):
            with pytest.raises(MCPError, match=reason):
                await client.read_resource(wrong)
        with pytest.raises(MCPError, match="the cursor 'soon' is none of this list"):
            await client.list_resources(cursor="soon")


async def test_prompts_bring_what_the_sessions_say(tmp_path: Path) -> None:
    async with served(tmp_path, "serve", "--all") as client:
        assert "There is no session yet." in await prompted(client, "where_we_were")
        with Store.open(store_of(tmp_path)) as store:
            tax = talk(store, "/work/shop", "How do we round the tax?", "We decided to round each line of the invoice.")
            last = talk(store, "/work/shop", *(f"step {number}" for number in range(30)))
        listed = {one.name: one for one in (await client.list_prompts()).prompts}
        assert set(listed) == {"decided", "tried", "where_we_were"}
        assert [one.name for one in listed["decided"].arguments or ()] == ["topic"]
        text = await prompted(client, "decided", topic="rounding\x1b[31m the tax")
        assert text.startswith("What was decided about this: rounding the tax\n")
        assert f"[{tax}:2]" in text
        assert "round each line of the invoice" in text
        assert count(text) <= MAX_TOKENS + 300
        assert "Nothing was found." in await prompted(client, "tried", problem="zebras")
        text = await prompted(client, "where_we_were")
        assert f"[{last} " in text
        assert re.findall(r"step (\d+)\n", f"{text}\n")[-12:] == [str(number) for number in range(18, 30)]
        with pytest.raises(MCPError, match="the prompt decided needs topic"):
            await client.get_prompt("decided", {"topic": " "})
        with pytest.raises(MCPError, match="there is no prompt 'x'; the prompts are: decided, tried, where_we_were"):
            await client.get_prompt("x")
