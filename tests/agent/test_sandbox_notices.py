"""The sandbox is offered once, where it works, and `auto` says when commands run without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nca.agent.approvals import Approvals, Nobody, SavedRules
from nca.agent.sandbox_notices import OFFER, WITHOUT
from nca.config.loaded import defaults
from nca.config.schema import ToolSettings
from nca.config.tables import PermissionRule
from nca.context.admission import Limits
from nca.events import Event, Notice
from nca.messages import ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell
from nca.tools.toolbox import Toolbox
from tests.agent.parts import window_of

WORKS, BROKEN = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"


class Machine:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs, self.root = path / "bin", path / "root"
        for folder in (self.programs, self.root, path / "nca"):
            folder.mkdir()
        monkeypatch.setenv("NCA_HOME", str(path / "nca"))
        monkeypatch.setenv("PATH", str(self.programs))

    def has(self, script: str) -> None:
        (self.programs / "bwrap").write_text(script)
        (self.programs / "bwrap").chmod(0o755)

    async def chat(self, *commands: str, **settings: Any) -> list[str]:
        """The notices of a chat in which the model wants to run these."""
        values = {name.replace("__", "."): value for name, value in settings.items()}
        said: list[Event] = []
        tools = Toolbox([Shell(CommandRunner(self.root, settings=ToolSettings, limits=Limits, env={}))])
        with Store.open(None) as store, store.create(directory="", model="") as session:
            loaded = defaults().with_values(values, "the test")
            window = window_of(store, session, loaded, ModelFacts("scripted/model", "scripted", 8_000))
            approvals = Approvals(window.state, self.root, SavedRules(window), said.append, Nobody())
            for command in commands:
                await approvals.check(ToolCall("1", "shell", f'{{"command": "{command}"}}'), tools)
        return [event.message for event in said if isinstance(event, Notice)]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


async def test_it_is_offered_once_for_good(machine: Machine) -> None:
    machine.has(WORKS)
    assert await machine.chat("pwd", permissions__deny=[PermissionRule("*", "x")]) == [], "reading needs no sandbox"
    assert await machine.chat("make", "make test") == [OFFER]
    assert await machine.chat("make") == []


@pytest.mark.parametrize("script", ["", BROKEN])
async def test_it_is_not_offered_where_it_does_not_work(machine: Machine, script: str) -> None:
    if script:
        machine.has(script)
    assert await machine.chat("make") == []
    assert await machine.chat("make", "make", agent__permission="auto") == [WITHOUT]


async def test_who_has_decided_is_not_asked(machine: Machine) -> None:
    machine.has(WORKS)
    assert await machine.chat("make", tools__sandbox="off") == []
    assert await machine.chat("make", tools__sandbox="bwrap", agent__permission="auto") == []


async def test_auto_says_that_there_is_none_and_how_to_have_one(machine: Machine) -> None:
    machine.has(WORKS)
    said = await machine.chat("make", "make", agent__permission="auto")
    assert len(said) == 1
    assert said[0].startswith(WITHOUT)
    assert "/config tools.sandbox bwrap turns it on" in said[0]
