"""What a chat has told a person once it does not tell again, whichever session it opens."""

from __future__ import annotations

from pathlib import Path

from nca.terminal.told_once import ToldOnce
from tests.terminal.stage import ScriptedReader, a_stage


class Met(ScriptedReader):
    """A person at a terminal, after a chat of theirs was killed."""

    are_drafts_taken = True


async def test_each_line_comes_once(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"disableAllHooks": true, "outputStyle": "Explanatory"}')
    with a_stage(tmp_path) as stage:
        told = ToldOnce(stage.app.output, Met())
        await told.tell(stage.conversation)
        first = stage.take()
        assert "A chat that was killed had unsent text: Up in an empty prompt brings it back." in first
        assert "Not used here of .claude" in first
        await told.tell(stage.conversation)
        assert stage.take() == ""
