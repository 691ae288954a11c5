"""A rewind that was killed in the middle is finished before a new chat in the folder shows its prompt."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from nca.config.paths import workspace_file
from tests.terminal.tty import ROOT
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import standing_code

FILES = 200
CHILD = """
import os, signal, sys
from pathlib import Path
from nca.config.schema import RewindSettings
from nca.file_history.history import FileHistory
from nca.file_history.restore import Watch
from nca.messages import Message
from nca.sessions.store import Store

store, root, most = Store.open(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
with store.create(directory=str(root), model="m") as session:
    session.log.append([Message("user", "Change them all.")])
    name = session.info.id
history = FileHistory(store, name, root, head=lambda: 1, limits=RewindSettings)
for path in sorted(root.iterdir()):
    with history.recorder.edit(path, b"new", "write_file"):
        path.write_bytes(b"new")

def progress(done, of):
    if done == most:
        os.kill(os.getpid(), signal.SIGKILL)

history.apply(history.plan(1), watch=Watch(progress))
"""


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_new_chat_shows_its_prompt_when_the_folder_is_whole(tmp_path: Path, share: float) -> None:
    work, store = (tmp_path / "work").resolve(), tmp_path / "home/data/sessions.db"
    work.mkdir()
    for number in range(FILES):
        (work / f"{number}.txt").write_text("old")
    steps = str(int(share * 2 * FILES))
    command = standing_code(CHILD, str(store), str(work), steps)
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    before = [path.read_text() for path in work.glob("*.txt")]
    assert before.count("old") == max(0, int(steps) - FILES)
    assert workspace_file(store, work, "rewind").exists()
    environment = {"NCA_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "OPENAI_API_KEY": "k"}
    chat = ["nca", "loop", "-m", "openai/any", "--context-window", "16000"]
    with ForkedTty(chat, environment=environment, cwd=work) as tty:
        tty.sees("›")
        assert {path.read_text() for path in work.glob("*.txt")} == {"old"}, tty.text()
        assert "Finishing a rewind that was cut off." in tty.text()
    assert not workspace_file(store, work, "rewind").exists()
    assert [path.name for path in work.iterdir() if path.suffix != ".txt"] == []
