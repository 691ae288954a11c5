"""Which files the tools of several programs change, and what the change was about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nca.context.record.call_facts import call_facts, changes_of
from nca.messages import ToolCall

PATCH = """*** Begin Patch
*** Update File: a.py
*** Move to: b.py
@@
-x
+def g():
*** Add File: c.py
+text
*** End Patch"""


@pytest.mark.parametrize(
    ("name", "arguments", "changed"),
    [
        ("Edit", {"file_path": "/w/a.py", "old_string": "x", "new_string": "def f():"}, ("/w/a.py", "edited", "f")),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "x = load()"}, ("a.ipynb", "edited", "x = load()")),
        ("edit", {"filePath": "a.ts", "oldString": "", "newString": "const x = 1"}, ("a.ts", "edited", "x")),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"new_string": "class A:"}, {"new_string": "class B:"}]},
            ("a.py", "edited", "B"),
        ),
        ("write_to_file", {"path": "a.md", "content": "# Title"}, ("a.md", "written", "# Title")),
        (
            "replace_in_file",
            {"path": "a.py", "diff": "------- SEARCH\nold = 1\n=======\nnew = 2\n+++++++ REPLACE"},
            ("a.py", "edited", "new = 2"),
        ),
        (
            "replace",
            {"file_path": "a.py", "old_string": "x", "new_string": "value = 2"},
            ("a.py", "edited", "value = 2"),
        ),
        (
            "developer__text_editor",
            {"command": "write", "path": "a.py", "file_text": "import json"},
            ("a.py", "edited", "import json"),
        ),
        ("delete_file", {"target_file": "a.py"}, ("a.py", "deleted", "")),
    ],
)
def test_a_tool_for_one_file(name: str, arguments: dict[str, Any], changed: tuple[str, str, str]) -> None:
    (change,) = changes_of(ToolCall("c1", name, json.dumps(arguments)))
    assert (change.path, change.verb, change.hint) == changed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"patchText": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
    ],
)
def test_a_patch_names_all_its_files(name: str, arguments: dict[str, Any]) -> None:
    changes = changes_of(ToolCall("c1", name, json.dumps(arguments)))
    assert [(one.path, one.verb, one.hint) for one in changes] == [
        ("a.py", "moved to b.py", "g"),
        ("c.py", "written", "text"),
    ]


def test_a_patch_of_diff_says_what_came_and_what_went() -> None:
    edited, gone = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+line two\n", "--- a/y.py\n+++ /dev/null\n@@\n-y\n"
    patch = f"{edited}{gone}--- /dev/null\n+++ b/z.py\n+zed\n"
    changes = changes_of(ToolCall("c1", "patch", json.dumps({"patch": patch})))
    assert [(one.path, one.verb) for one in changes] == [("x.py", "edited"), ("y.py", "deleted"), ("z.py", "written")]


def test_the_failure_of_a_patch_ends_with_the_next_patch_of_its_file() -> None:
    keys = {call_facts(ToolCall("c1", "apply_patch", json.dumps({"input": PATCH + end}))).key for end in ("", "\n")}
    assert keys == {"change a.py"}


def test_a_tool_that_only_looks_changes_nothing() -> None:
    for name, arguments in (("Read", {"file_path": "a.py"}), ("grep", {"pattern": "x"}), ("patch_status", {"id": "x"})):
        assert changes_of(ToolCall("c1", name, json.dumps(arguments))) == ()
