"""Whatever a session and someone else do to files: a rewind restores the moment, but for what someone else touched.

Real files, real commands, a real database; the store is closed and opened again in between.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from nca.config.schema import RewindSettings
from nca.file_history.history import FileHistory
from nca.file_history.plan import Choice
from nca.sessions.store import Store
from tests.file_history.world import COMMANDS, FOLDERS, NAMES, World, can_write, line, make_tree, shell, snapshot, write

MEMORY = "/dev/shm"
_NAME = st.sampled_from(NAMES)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
        self.world = World(self.folder / "work")
        self.world.root.mkdir()
        make_tree(self.world.root)
        self.texts = 0
        self.rewinds: list[tuple[int, dict[str, tuple[int, bytes]]]] = []
        with self._store() as store:
            self.session_id = store.create(directory="", model="m").info.id
        self._open()

    def _store(self) -> Store:
        return Store.open(self.folder / "home/sessions.db")

    def _open(self) -> None:
        self.store = self._store()
        assert self.store.notes == ()
        self.history = FileHistory(
            self.store, self.session_id, self.world.root, head=lambda: self.world.head, limits=RewindSettings
        )

    def _text(self) -> str:
        self.texts += 1
        return str(self.texts)

    @rule(name=_NAME)
    def edit(self, name: str) -> None:
        self.world.begin()
        if can_write(self.world.root, name):
            content = f"edited {self._text()}\n".encode()
            with self.history.recorder.edit(self.world.root / name, content, "write_file"):
                write(self.world.root, name, content)
        self.rewinds.clear()

    @rule(template=st.sampled_from(COMMANDS), one=_NAME, other=_NAME, folder=st.sampled_from(FOLDERS))
    def command(self, template: str, one: str, other: str, folder: str) -> None:
        async def run() -> None:
            async with self.history.recorder.command("shell"):
                shell(self.world.root, line(template, self._text(), one, other, folder))

        self.world.begin()
        asyncio.run(run())
        self.rewinds.clear()

    @rule(kind=st.sampled_from(("write", "append", "delete", "move")), name=_NAME)
    def someone(self, kind: str, name: str) -> None:
        self.world.someone(kind, name, self._text())
        self.rewinds.clear()

    @precondition(lambda self: self.world.head)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        moment = data.draw(st.integers(1, self.world.head))
        before = snapshot(self.world.root)
        plan = self.history.plan(moment)
        takes = [one.path for one in plan.left] if data.draw(st.booleans()) else []
        outcome = self.history.apply(plan, Choice(take=frozenset(takes)))
        problems = self.world.wrong(moment, before)
        assert takes or not problems, problems
        assert plan.not_stored == ()
        self.rewinds.append((outcome.id, before))

    @precondition(lambda self: self.rewinds)
    @rule()
    def redo(self) -> None:
        rewind, before = self.rewinds.pop()
        self.history.apply(self.history.plan_back(rewind))
        assert snapshot(self.world.root) == before

    @rule()
    def restart(self) -> None:
        self._close()
        self._open()
        assert self.history.recorder.take_notices() == []

    def _close(self) -> None:
        self.history.recorder.close()
        self.store.close()

    def teardown(self) -> None:
        self._close()
        shutil.rmtree(self.folder)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=int(os.environ.get("NCA_FUZZ_EXAMPLES") or 25),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
