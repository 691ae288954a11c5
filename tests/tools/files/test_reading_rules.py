"""Rules about reading files, whatever opens them; `test_edit.py` has what was read so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nca.config.schema import PermissionSettings
from nca.config.tables import PermissionRule
from nca.tools.files.edit import EditFile, WriteFile
from nca.tools.files.read import ReadFile
from nca.tools.files.reading_rules import MOST_FILES, FilesRead, Reading
from nca.tools.files.workspace import Workspace, open_own
from nca.tools.tool import ToolError, ToolOutcome

ALL, NONE = PermissionRule("read_file"), PermissionSettings()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("secret/key", "src/a.py", "src/kept/b.pem", "keys.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("text\n")
    return tmp_path


@pytest.mark.parametrize("rule", [PermissionRule("read_file", "keys.txt"), PermissionRule("*", paths="keys*")])
async def test_a_file_that_may_not_be_read_is_opened_by_no_tool_and_offered_to_nobody(
    rule: PermissionRule, root: Path
) -> None:
    rules = [PermissionSettings(deny=(rule,))]
    workspace, files_read = Workspace(root, reading=Reading(lambda: rules[-1], root)), FilesRead()
    calls: list[Callable[[], Awaitable[ToolOutcome]]] = [
        lambda: ReadFile(workspace, files_read).call("keys.txt"),
        lambda: EditFile(workspace, files_read).call("keys.txt", "text", "x"),
        lambda: WriteFile(workspace, files_read).call("keys.txt", "x"),
    ]
    for call in calls:
        with pytest.raises(ToolError, match=r"^keys\.txt may not be read: a rule of the person's denies it \("):
            await call()
    with pytest.raises(ToolError, match=r"^there is no file Keys\.txt$"):
        await ReadFile(workspace, files_read).call("Keys.txt")
    rules.append(NONE)  # the person took it back in the chat
    assert (await calls[0]()).text == "text\n"
    with open_own(root / "keys.txt", "keys.txt") as file:
        assert file.read() == b"text\n"


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        (NONE, ""),
        (PermissionSettings(deny=(PermissionRule("read_file", "secret"),)), "secret/key"),
        (PermissionSettings(ask=(PermissionRule("read_file", paths="*.pem"),)), "src/kept/b.pem"),
        # Whoever is asked about every call was asked about the search.
        (PermissionSettings(ask=(ALL,)), ""),
        (PermissionSettings(deny=(PermissionRule("edit_file", "keys.txt"),)), ""),
        (PermissionSettings(deny=(PermissionRule("*", "keys.txt", for_changes=True),)), ""),
    ],
)
def test_a_search_leaves_out_what_a_rule_denies_or_asks_about(
    rules: PermissionSettings, hidden: str, root: Path
) -> None:
    reading = Reading(lambda: rules, root)
    files = [path for path in root.rglob("*") if path.is_file()]
    assert [path for path in files if reading.is_hidden(path)] == ([root / hidden] if hidden else [])
    assert reading.is_hidden_below(root) is bool(hidden)
    assert not reading.is_hidden_below(root / "src" / "other")
    assert reading.is_hidden_below(root / "src", besides="kept") is False


def test_below_a_folder_of_too_many_files_any_may_be_hidden(root: Path) -> None:
    reading = Reading(lambda: PermissionSettings(deny=(PermissionRule("read_file", "secret"),)), root)
    for number in range(MOST_FILES - 1):
        (root / "src" / "kept" / f"{number}").touch()
    assert not reading.is_hidden_below(root / "src" / "kept")
    (root / "src" / "kept" / "one-more").touch()
    assert reading.is_hidden_below(root / "src" / "kept")
