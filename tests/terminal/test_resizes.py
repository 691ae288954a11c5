"""A window that is resized while an answer streams: two hundred sizes, from one cell to very large."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

from nca.sessions.store import Store
from tests.terminal.tty import chat

ROWS, COLUMNS = (1, 2, 5, 24, 50, 200), (1, 3, 5, 24, 80, 500)
SIZES, STEP_SECONDS = 200, 0.01
WORDS = [f"w{number:04}" for number in range(1_500)]
_CODE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\s")


def test_two_hundred_sizes_while_an_answer_streams(tmp_path: Path) -> None:
    rng = random.Random(7)
    with chat(
        " ".join(WORDS), "Still here.", home=str(tmp_path), window_tokens=200_000, piece_seconds=STEP_SECONDS / 2
    ) as tty:
        tty.sees("›")
        tty.line("go")
        for _ in range(SIZES):
            tty.process.setwinsize(rng.choice(ROWS), rng.choice(COLUMNS))
            time.sleep(STEP_SECONDS)
        tty.resize(100, 30)
        tty.sees("w1499")
        tty.settle()
        tty.line("and now?")
        tty.sees("Still here.")
        tty.send("\x04")
        assert tty.ends() == 0
    assert not [word for word in (b"Traceback", b"Exception", b"Unhandled") if word in tty.raw]
    drawn = _CODE.sub(b"", tty.raw).decode("utf-8", "replace")
    assert [word for word in WORDS if word not in drawn] == []
    with Store.open(tmp_path / "store.db") as store:
        entries = store.copy_of(store.list(limit=1)[0].id).entries
    assert entries[1].message.text == " ".join(WORDS)
