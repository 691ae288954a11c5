"""Claude Code's names of tools and arguments, there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nca.agent.hook_process import claude_input, claude_name, own_arguments

HERE = Path("/project")
TOOLS = st.sampled_from(("shell", "read_file", "write_file", "edit_file", "grep", "glob", "task", "skill", "mcp__a__b"))
ARGUMENTS = st.dictionaries(
    st.sampled_from(("path", "command", "timeout_seconds", "old_text", "new_text", "question", "name", "max_results")),
    st.text() | st.integers() | st.floats() | st.none() | st.sampled_from(("~/a", "~nobody-here/a", "../a", "/a")),
)


@given(TOOLS, ARGUMENTS)
def test_what_a_hook_gives_back_unchanged_is_as_the_model_wrote_it(tool: str, arguments: dict[str, Any]) -> None:
    shown = claude_input(tool, arguments, HERE)
    back = own_arguments(tool, shown, arguments, HERE)
    assert back.keys() == arguments.keys()
    assert all(
        back[name] is arguments[name] or back[name] == arguments[name] for name in back if back[name] == back[name]
    )


def test_what_a_hook_changes_gets_ncas_names() -> None:
    arguments = {"path": "a.py", "old_text": "one", "new_text": "two"}
    shown = claude_input("edit_file", arguments, HERE)
    assert shown == {"file_path": "/project/a.py", "old_string": "one", "new_string": "two"}
    changed = own_arguments("edit_file", {**shown, "new_string": "three"}, arguments, HERE)
    assert changed == {"path": "a.py", "old_text": "one", "new_text": "three"}
    command = {"command": "ls", "timeout_seconds": 7}
    assert own_arguments("shell", {"command": "ls", "timeout": 90_000}, command, HERE)["timeout_seconds"] == 90
    assert claude_name("mcp__git__push") == "mcp__git__push"
