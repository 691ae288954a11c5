"""What the prompt suggests for commands and their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.output import DummyOutput

from nca.terminal.commands.command import all_commands
from nca.terminal.completion import PromptCompleter
from nca.terminal.input.file_finder import FileFinder
from nca.terminal.input.line_kind import may_complete
from tests.terminal.stage import a_stage
from tests.terminal.test_commands import LONG, SUMMARY, replies


async def suggested(text: str, directory: Path, behind: str = "") -> list[tuple[str, str, str]]:
    """The text, what is shown and the description of each; the same at once and while typing."""
    with a_stage(directory, models=("openai/gpt-4.1", "anthropic/claude")) as stage:
        completer = PromptCompleter(stage.app, FileFinder(directory))
        document, event = Document(text + behind, len(text)), CompleteEvent()
        found = [one async for one in completer.get_completions_async(document, event)]
        assert found == list(completer.get_completions(document, event))
        return [(one.text, one.display_text, one.display_meta_text) for one in found]


async def test_commands_by_beginning_then_alias_then_letters(tmp_path: Path) -> None:
    names = [shown for _, shown, _ in await suggested("/", tmp_path)]
    assert names == [f"/{command.name}" for command in all_commands()]
    assert all(about for *_, about in await suggested("/", tmp_path))
    assert (await suggested("/SE", tmp_path))[0][1] == "/sessions"
    assert "/config (settings)" in [shown for _, shown, _ in await suggested("/se", tmp_path)]
    assert [shown for _, shown, _ in await suggested("/cfg", tmp_path)] == ["/config"]
    assert await suggested("/zzz", tmp_path) == []


async def test_a_blank_follows_where_an_argument_may(tmp_path: Path) -> None:
    assert (await suggested("/conf", tmp_path))[0][0] == "config "
    assert (await suggested("/clea", tmp_path))[0][0] == "clear"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("/context pi", "pin"),
        ("/config context.auto pre", "preview"),
        ("/config terminal.keys v", "vi"),
        ("/config compact_thr", "context.compact_threshold"),
        ("/config th", "terminal.theme"),
        ("/config context.pr", "context.preserve_turns"),
        ("/config model.name open", "openai/gpt-4.1"),
        ("/model clau", "anthropic/claude"),
        ("/permissions acc", "accept-edits"),
        ("/help conf", "config"),
    ],
)
async def test_arguments(text: str, first: str, tmp_path: Path) -> None:
    assert (await suggested(text, tmp_path))[0][0] == first


async def test_files_get_a_blank_and_folders_do_not(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a b.py").touch()
    (tmp_path / "srt.txt").touch()
    assert [text for text, *_ in await suggested("look @sr", tmp_path)] == ["src/", "srt.txt ", '"src/a b.py" ']
    assert [text for text, *_ in await suggested("look @srt", tmp_path, " now")] == ["srt.txt"]
    assert [shown for _, shown, _ in await suggested('@"src/', tmp_path)] == ["src/a b.py"]


@pytest.mark.parametrize("text", ["//sr", "/unknown sr", "a/b", "mail@sr", "/help\n/con", "words"])
async def test_nothing_is_suggested_elsewhere(text: str, tmp_path: Path) -> None:
    (tmp_path / "src.txt").touch()
    assert await suggested(text, tmp_path) == []


def test_menus_open_only_for_commands_and_mentions() -> None:
    assert may_complete("/con")
    assert may_complete("look @")
    assert not may_complete("words")
    assert not may_complete("two\n/lines")


async def test_names_that_begin_so_stand_first_then_aliases_then_names_with_the_letters(tmp_path: Path) -> None:
    commands = {command.name: command for command in all_commands()}

    def rank(name: str, typed: str) -> int:
        if name.startswith(typed):
            return 0
        return 1 if any(alias.startswith(typed) for alias in commands[name].aliases) else 2

    with a_stage(tmp_path) as stage:
        completer = PromptCompleter(stage.app, FileFinder(tmp_path))
        for typed in sorted({word[:count] for name in commands for count in (1, 2) for word in (name, name[1:])}):
            found = completer.get_completions(Document(f"/{typed}"), CompleteEvent())
            names = [one.text.strip() for one in found]
            assert [rank(name, typed) for name in names] == sorted(rank(name, typed) for name in names), typed
            assert {name for name in commands if name.startswith(typed)} <= set(names)


async def test_tab_offers_what_context_and_compact_would_take_now(tmp_path: Path) -> None:
    """Each word that is offered is taken, and what would be refused is not offered."""
    with a_stage(tmp_path, [*replies(6), SUMMARY], window_tokens=40_000, context__target_ratio=0.1) as stage:
        context = stage.conversation.context

        def offered(typed: str) -> list[str]:
            return [text for text, _ in stage.app.suggestions(*typed.split(" ", 1))]

        assert not {"undo", "redo", "expand", "unpin", "accept", "drop", "compact from"} & set(offered("context "))
        assert offered("compact ") == ["--preview"]
        for number in range(6):
            await stage.conversation.send(f"Question {number}: {LONG}")
        await stage.command("/compact --preview")
        assert {"accept", "drop"} <= set(offered("context ")) & set(offered("compact "))
        await stage.command("/context accept")
        assert {"undo", "expand", "diff", "compact from"} <= set(offered("context "))
        assert not {"redo", "unpin", "accept"} & set(offered("context "))
        for line in ("compact ", "context compact "):
            assert offered(line) == ["from", "before", "--preview"]
            assert offered(f"{line}--preview ") == ["from", "before"]
            assert offered(f"{line}from 12 ") == ["--preview"]
            assert offered(f"{line}the parser ") == []
            assert offered(f"{line}the parser --") == ["--preview"]
            assert "12" in offered(f"{line}before ")
        assert offered("context search -") == ["--all"]
        assert offered("context unpin ") == []
        whole = [item.id for item in context.items() if item.is_whole]
        assert offered("context expand ") == [item.id for item in context.items() if item.id not in whole]
        await stage.command("/context pin 12")
        assert offered("context unpin ") == ["12"]
        assert "12" not in offered("context pin ")
        assert offered("context unpin 12 ") == []
        await stage.command("/context undo")
        assert "redo" in offered("context ")
        assert offered("memory ") == ["add"]
        await stage.command("/memory the tests run with make test")
        assert offered("memory ") == ["add", "remove"]


async def test_a_row_of_the_menu_is_cut_with_the_sign_that_everything_is_cut_with(tmp_path: Path) -> None:
    """The menu cut with three dots what did not fit."""
    long = "a_name_of_which_there_is_more_than_fits_in_the_window_" * 2
    (tmp_path / f"{long}.py").touch()
    window = DummyOutput().get_size().columns
    ((_, name, _),) = await suggested("@a_na", tmp_path)
    assert name == f"{long}.py"[: window - 6] + "…"
    found = await suggested("/config model.", tmp_path)
    widest = max(len(name) for _, name, _ in found)
    assert any(about.endswith("…") for *_, about in found)
    # Of each row also a blank before and behind each column, and the bar at the edge.
    assert max(len(about) for *_, about in found) == window - widest - 5
