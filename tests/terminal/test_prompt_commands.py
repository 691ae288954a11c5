"""`/NAME words` for skills and custom commands, in a chat."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from nca.agent.conversation import Conversation
from nca.terminal.completion import PromptCompleter
from nca.terminal.input.file_finder import FileFinder
from nca.terminal.input.line_kind import line_of, message_of
from nca.words import Words, text_of, words
from tests.terminal.stage import ScriptedReader, a_stage


class Typist(ScriptedReader):
    """Types these lines, then leaves."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = list(lines)

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        if not self.lines:
            raise EOFError
        return words(self.lines.pop(0))


async def test_a_custom_command_is_sent_with_its_words(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Look at a change\n---\nReview $1. See @notes.md.")
    (folder / "mod.md").write_text("Modify.")
    (folder / "model.md").write_text("Never called: nca has a command of this name.")
    (tmp_path / "notes.md").write_text("Mind the gap.")
    with a_stage(tmp_path, ["Fine.", "Done."]) as stage:
        await stage.with_reader(Typist("/review PR-7", "/mod", "/nothing")).app.run()
        requests = stage.conversation.model.requests  # type: ignore[attr-defined]
        said = stage.take()
    first = requests[0].messages[-1]["content"]
    assert first.startswith("Follow .claude/commands/review.md: PR-7")
    assert '<file path=".claude/commands/review.md">\nReview PR-7. See @notes.md.\n</file>' in first
    assert "Mind the gap." in first
    assert "Modify." in requests[1].messages[-1]["content"]
    assert len(requests) == 2
    assert "There is no command /nothing" in said


async def test_the_argument_of_ones_own_may_have_several_lines(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("Review $ARGUMENTS.")
    with a_stage(tmp_path, ["Fine.", "No command."]) as stage:
        await stage.with_reader(Typist("/review these:\none\ntwo", "/revue these:\none")).app.run()
        first, second = (one.messages[-1]["content"] for one in stage.conversation.model.requests)  # type: ignore[attr-defined]
    assert first.startswith("Follow .claude/commands/review.md: these:\none\ntwo")
    assert "Review these:\none\ntwo." in first
    assert second == "/revue these:\none"


async def test_a_line_that_begins_with_a_path_is_a_message(tmp_path: Path) -> None:
    path = "/tmp/x/main.py explain"
    with a_stage(tmp_path, ["Fine."]) as stage:
        await stage.with_reader(Typist(path, "/mcp:files:a/b")).app.run()
        (request,) = stage.conversation.model.requests  # type: ignore[attr-defined]
        assert "files" in stage.take(), "the prompt of a server"
    assert request.messages[-1]["content"] == path
    for line in (path, "//etc", "/etc", "/model a/b"):
        assert text_of(message_of(line_of(words(line)))) == line
    assert line_of(words(path)) == words(path), "what comes back is what was typed"


async def test_ones_own_can_be_shortened_where_no_other_begins_so(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "commands"
    folder.mkdir(parents=True)
    for name in ("revise", "connect", "modify", "rename"):
        (folder / f"{name}.md").write_text(f"Do {name}.")
    with a_stage(tmp_path, ["Fine.", "Done."]) as stage:
        await stage.with_reader(Typist("/revis the text", "/conne", "/con", "/mod", "/renam it", "/revisse")).app.run()
        requests = stage.conversation.model.requests  # type: ignore[attr-defined]
        said = stage.take()
    assert "commands/revise.md: the text" in requests[0].messages[-1]["content"]
    assert "commands/connect.md" in requests[1].messages[-1]["content"]
    assert len(requests) == 2
    assert "Did you mean /context, /config or /connect?" in said
    assert "There is no command /mod; nothing was sent.\nDid you mean /model or /modify?" in said
    assert "This session is now “it”." in said, "nca's own comes before one of that name"
    assert "Did you mean /revise?" in said


async def test_what_was_not_sent_does_not_go_with_the_next_message(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "look.md").write_text("Look at @shot.png.")
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with a_stage(tmp_path, ["Fine."]) as stage:
        await stage.with_reader(Typist("/look", "Hello")).app.run()
        (request,) = stage.conversation.model.requests  # type: ignore[attr-defined]
        assert "is an image" in stage.take()
    assert request.messages[-1]["content"] == "Hello"


async def test_they_are_suggested(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Look at a change\nargument-hint: [pr]\n---\nReview $1.")
    with a_stage(tmp_path) as stage:
        app = stage.with_reader(Typist("/nothing")).app
        await app.run()
        completer = PromptCompleter(app, FileFinder(tmp_path))
        found = list(completer.get_completions(Document("/rev"), CompleteEvent()))
    assert [(one.text, one.display_meta_text) for one in found] == [("review ", "[pr] · Look at a change")]
