"""Diffs, plans and ids as the protocol has them."""

from __future__ import annotations

import re
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest
from acp.schema import FileEditToolCallContent, ToolCallProgress
from hypothesis import given
from hypothesis import strategies as st

from nca.acp.content import path_of
from nca.acp.session import servers_of
from nca.acp.tool_calls import CallIds, Outlet, asked_content, diff_content, edit_content, fenced, locations_of, plan_of
from nca.events import ApprovalAsked
from nca.file_history.changes import unified


def powerset(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, count) for count in range(len(names) + 1)))


TEXTS = st.lists(st.sampled_from(["a", "b", "@@ -1 +1 @@", "-x", "+y", " z", "\\ No newline at end of file", ""])).map(
    "\n".join
)


@given(TEXTS, TEXTS)
def test_a_diff_changes_the_old_text_into_the_new(before: str, after: str) -> None:
    diff = unified(before, after, "file")
    shown = diff_content(diff, "/file") if diff else []
    places = [int(first) for first in re.findall(r"(?m)^@@ -(\d+)", diff)]
    text = before.splitlines(keepends=True)
    for first, one in reversed(list(zip(places, shown, strict=True))):
        assert isinstance(one, FileEditToolCallContent)
        old = (one.old_text or "").splitlines(keepends=True)
        # A hunk that removes nothing names the line before it.
        start = first - 1 if old else first
        assert text[start : start + len(old)] == old
        text[start : start + len(old)] = [one.new_text]
    assert "".join(text) == after


def test_a_new_file_has_no_old_text_and_a_cut_diff_ends_where_it_is_cut() -> None:
    [new] = diff_content(unified(None, "one\ntwo", "n"), "/n")
    assert isinstance(new, FileEditToolCallContent)
    assert (new.old_text, new.new_text) == (None, "one\ntwo")
    [cut] = diff_content("--- a/n\n+++ b/n\n@@ -1,9 +1,9 @@\n-one\n+two\n… 7 more lines", "/n")
    assert isinstance(cut, FileEditToolCallContent)
    assert (cut.old_text, cut.new_text) == ("one\n", "two\n")


@given(st.text(alphabet="`a\n"))
def test_no_text_ends_its_block_of_code(text: str) -> None:
    first, *inside, last = fenced(text).split("\n")
    assert first == last
    assert first not in inside


def test_ids_of_calls_are_used_once() -> None:
    ids = CallIds()
    assert [ids.begin("call_1"), ids.begin("call_1"), ids.of("call_1"), ids.begin("x")] == [
        *("call_1", "call_1#2", "call_1#2", "x")
    ]


def test_arguments_that_are_no_use_give_no_place_no_change_and_no_plan() -> None:
    here = Path("/here")
    for path in (None, 5, "", "a\0b"):
        assert locations_of({"path": path}, here) == []
    [place] = locations_of({"path": "a.py", "offset": 12}, here)
    assert (place.path, place.line) == ("/here/a.py", 12)
    assert edit_content("edit_file", {"path": "a.py", "new_text": None}, here) == []
    assert edit_content("shell", {"path": "a.py", "new_text": "x"}, here) == []
    assert plan_of({}) is None
    assert plan_of({"open": "not a list", "done": 5}) == []


def test_addresses_of_files() -> None:
    assert path_of("file:///a%20b/c.py#L1:2") == Path("/a b/c.py")
    assert path_of("file://localhost/a") == Path("/a")
    for other in ("https://x/a", "file://elsewhere/a", "file:", "zed:///a", "file:///a%00b", "http://[", ""):
        assert path_of(other) is None


def test_names_of_servers_are_made_to_fit() -> None:
    from acp.schema import McpServerStdio

    names = ["my server", "my server", "ümlaut/…", "x" * 50, ""]
    found = servers_of([McpServerStdio(name=name, command="run", args=[], env=[]) for name in names])
    assert [one.name for one in found] == ["my-server", "my-server-2", "mlaut", "x" * 32, "server"]


def test_updates_wait_in_their_order_and_have_the_protocol_s_names_and_nothing_that_is_empty() -> None:
    sent: list[dict[str, Any]] = []
    outlet = Outlet(sent.append)
    first, second, third = (
        ToolCallProgress(session_update="tool_call_update", tool_call_id=id, status="completed") for id in "123"
    )
    outlet.send(first)
    outlet.send(second)
    assert sent == []
    outlet.session_id = "s"
    outlet.open()
    outlet.send(third)
    shown = [{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"} for id in "123"]
    assert [one.pop("params") for one in sent] == [{"sessionId": "s", "update": update} for update in shown]
    assert sent == [{"jsonrpc": "2.0", "method": "session/update"}] * 3


@pytest.mark.parametrize("given", powerset(("path", "command", "diff", "warning", "directory")))
def test_all_that_a_call_would_do_is_shown_before_it_is_allowed(given: tuple[str, ...]) -> None:
    texts: dict[str, Any] = {name: f"the {name} of it" for name in ("path", "command", "warning", "directory")}
    texts["diff"] = unified("one", "the diff of it", "file")
    asked = ApprovalAsked("c", "tool", "execute", "the summary", **{name: texts[name] for name in given})
    shown = "".join(one.model_dump_json() for one in asked_content(asked))
    for name in given:
        # Of a command the diff says nothing, and the path is the place of the call.
        is_said_by = "command" if name == "diff" and "command" in given else name
        assert name == "path" or f"the {is_said_by} of it" in shown, name
    assert shown or "path" in given
