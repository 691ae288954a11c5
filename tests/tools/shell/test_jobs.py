"""Commands in the background: they run beside the others, are read in pieces, and end with the conversation."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.file_history import Recorder
from nca.tools.shell.jobs import MOST_KEPT, MOST_RUNNING, RECENT_BYTES, Job, Jobs
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import JobTool, Shell
from nca.tools.tool import ToolError, ToolOutcome
from tests.tools.shell.test_runner import running

PATIENCE_SECONDS = 60.0


class Setup:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.ended: list[str] = []
        self.jobs = Jobs(lambda job: self.ended.append(f"{job.number} {job.state}"))
        self.runner = CommandRunner(
            root,
            settings=lambda: ToolSettings(timeout_seconds=1),
            limits=Limits,
            outputs=lambda: root / "outputs",
            env={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-secret-0123456789abcdef"},
        )
        self.shell, self.tool = Shell(self.runner, jobs=self.jobs), JobTool(self.jobs)

    async def start(self, command: str) -> ToolOutcome:
        return await self.shell.run({"command": command, "background": True})

    async def until(self, number: int, word: str) -> None:
        """Wait until it has said this, without taking its output."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while word not in self.jobs.find(number).recent:
                await asyncio.sleep(0.02)

    async def end(self, number: int) -> ToolOutcome:
        return await self.tool.call(number, wait_seconds=int(PATIENCE_SECONDS))


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


async def test_it_runs_beside_others_and_each_piece_of_output_comes_once(setup: Setup) -> None:
    (setup.root / "sub").mkdir()
    os.mkfifo(setup.root / "gate")
    outcome = await setup.start("cd sub; echo one; cat ../gate; printf 'thr'; echo ee; exit 3")
    assert re.fullmatch(r"(one|\[no new output\])\n\[job 1 is running, for \d s now\]", outcome.text)
    assert not outcome.is_error
    await setup.until(1, "one")
    assert (outcome.text + (await setup.tool.call(1)).text).count("one") == 1
    assert (await setup.shell.run({"command": "pwd"})).text == str(setup.root)
    assert (await setup.tool.call(1)).text.startswith("[no new output]\n[job 1 is running")
    (setup.root / "gate").write_text("two\n")
    outcome = await setup.end(1)
    ended = (
        r"two\nthree\n\[job 1 has ended after \d+ s: exit code 3; it ran: cd sub; echo one; [^\n]*\]\n\[exit code 3\]"
    )
    assert re.fullmatch(ended, outcome.text)
    assert (outcome.is_error, outcome.summary) == (True, "job 1: exit code 3")
    assert (await setup.tool.call(1)).text.startswith("[no new output]\n[job 1 has ended")
    assert setup.ended == ["1 exit code 3"]


async def test_one_that_fails_at_once_says_so(setup: Setup) -> None:
    await setup.start("exit 7")
    assert "[exit code 7]" in (await setup.end(1)).text
    with pytest.raises(ToolError, match="there is no command"):
        await setup.start(" ")
    with pytest.raises(ToolError, match=r"there is no job 2; the jobs are: 1 \(exit code 7\)"):
        await setup.tool.call(2)


async def test_its_name_is_one_short_line(setup: Setup) -> None:
    await setup.start(f'exit 7 # "two\n  {"words " * 100}')
    name = setup.jobs.find(1).name
    assert name.startswith('$ exit 7 # "two words words ')
    assert 150 < len(name) <= 202
    assert f"it ran: {name[2:]}]" in (await setup.end(1)).text


async def test_stopping_ends_all_of_it_and_lets_it_clean_up(setup: Setup) -> None:
    await setup.start("trap 'echo cleaned; exit' TERM; echo ready; sleep 9871 & wait")
    await setup.until(1, "ready")
    assert running("sleep 9871")
    outcome = await setup.tool.call(1, stop=True)
    assert "cleaned\n[job 1 has ended" in outcome.text
    assert setup.jobs.all[0].state == "stopped"
    assert not running("sleep 9871")
    assert "job 1 has ended" in (await setup.tool.call(1, stop=True)).text


async def test_they_end_with_the_conversation(setup: Setup) -> None:
    for _ in range(2):
        await setup.start("trap '' TERM; echo ready; sleep 9872 & sleep 9872")
    await setup.until(1, "ready")
    await setup.until(2, "ready")
    await setup.jobs.close()
    assert not running("sleep 9872")
    assert setup.ended == []


async def test_a_stopped_wait_leaves_it_running(setup: Setup) -> None:
    await setup.start("sleep 9873")
    waiting = asyncio.create_task(setup.end(1))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert setup.jobs.find(1).is_running
    await setup.jobs.close()


async def test_its_output_is_bounded_and_without_keys(setup: Setup) -> None:
    os.mkfifo(setup.root / "gate")
    await setup.start(
        "cat gate; yes 'a line of output' | head -c 3000000; printf 'key sk-secret-0123'; sleep 0.2; echo 456789abcdef"
    )
    (setup.root / "gate").write_text("")
    text = (await setup.end(1)).text
    assert len(text) < 200_000
    saved = Path(re.findall(r"whole output is in (\S+)\]", text)[-1])
    assert "sk-secret" not in saved.read_text()
    assert saved.read_text().startswith("a line of output\n")
    await setup.jobs.close()
    assert {one.suffix for one in (setup.root / "outputs").iterdir()} == {".txt"}


async def test_a_line_that_does_not_end_is_told_as_far_as_it_has_come(setup: Setup) -> None:
    os.mkfifo(setup.root / "gate")
    told = (await setup.start("head -c 40000 /dev/zero | tr '\\0' x; cat gate")).text
    await setup.until(1, "x" * RECENT_BYTES)
    told += (await setup.tool.call(1)).text
    assert "job 1 is running" in told
    assert told.count("x") >= RECENT_BYTES // 2
    (setup.root / "gate").write_text("\n")
    told += (await setup.end(1)).text.partition("\n")[0]
    assert told.count("x") == 40_000


async def test_what_only_reads_runs_as_it_was_checked(setup: Setup) -> None:
    (setup.root / "f").write_text("hello\n")
    assert setup.shell.needs({"command": "tail -n 5 f", "background": True}) == "read"
    await setup.start("cat 'f'")
    assert setup.jobs.find(1).recent == "hello\n"
    approval = setup.shell.approval({"command": "make serve", "background": True})
    assert (approval.command, approval.warning) == ("make serve", "It runs in the background.")
    assert setup.shell.summarize({"command": "make serve", "background": True}) == "$ make serve (in the background)"


async def test_there_are_not_too_many(setup: Setup) -> None:
    runner, recorder = setup.runner, Recorder()
    jobs: list[Job] = []
    for _ in range(MOST_RUNNING):
        jobs.append(await setup.jobs.start(runner, "sleep 9874", argv=None, recorder=recorder))
    with pytest.raises(ToolError, match="8 jobs are running, which is the most; stop one"):
        await setup.start("true")
    await setup.jobs.close()
    assert not running("sleep 9874")
    for _ in range(MOST_KEPT + 1 - MOST_RUNNING):
        await setup.end((await setup.jobs.start(runner, "true", argv=None, recorder=recorder)).number)
    assert next(job.number for job in setup.jobs.all) == 2
    assert [job.number for job in setup.jobs.take_ended()] == [2, 3, 4, 5, 6, 7, 8]
    assert setup.jobs.take_ended() == []


async def test_who_waits_for_it_hears_what_it_prints(setup: Setup) -> None:
    os.mkfifo(setup.root / "gate")
    await setup.start("echo before; read -r _ <gate; echo meanwhile")
    await setup.until(1, "before")
    heard: list[str] = []
    job = setup.jobs.find(1)
    await job.wait(0.01, heard.append)
    (setup.root / "gate").write_text("on\n")
    await job.wait(PATIENCE_SECONDS, heard.append)
    assert "".join(heard) == "before\nbefore\nmeanwhile\n"


async def test_who_no_longer_waits_hears_nothing_more(setup: Setup) -> None:
    os.mkfifo(setup.root / "gate")
    await setup.start("echo one; cat gate; echo three; cat gate")
    await setup.until(1, "one")
    heard: list[list[str]] = [[], []]
    await setup.jobs.find(1).wait(0.01, heard[0].append)
    (setup.root / "gate").write_text("two\n")
    await setup.until(1, "three")
    await setup.jobs.find(1).wait(0.01, heard[1].append)
    assert ["".join(one) for one in heard] == ["one\n", "one\ntwo\nthree\n"]
    await setup.jobs.find(1).close()
