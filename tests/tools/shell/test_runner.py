"""Real commands that misbehave: the prompt returns, memory stays small, and nothing is left running."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.shell.output_capture import BEGINNING_BYTES, MOST_FILE_BYTES
from nca.tools.shell.runner import MOST_COMMAND_BYTES, CommandResult, CommandRunner
from nca.tools.tool import ToolError

PATIENT = ToolSettings(timeout_seconds=60)
SHORT = ToolSettings(timeout_seconds=1)


@pytest.fixture
def runner(tmp_path: Path) -> CommandRunner:
    return a_runner(tmp_path)


def a_runner(tmp_path: Path, settings: ToolSettings = PATIENT, *, stays_inside: bool = True) -> CommandRunner:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True, exist_ok=True)
    return CommandRunner(
        root,
        settings=lambda: settings,
        limits=Limits,
        outputs=lambda: tmp_path / "outputs" / "session",
        stays_inside=stays_inside,
    )


async def within(seconds: float, command: Callable[[], object]) -> CommandResult:
    """What hangs fails here, long before the test's own limit."""
    async with asyncio.timeout(seconds):
        return await command()  # type: ignore[misc, no-any-return]


def running(mark: str) -> list[str]:
    """The processes whose command line holds the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                state = (folder / "stat").read_text().rpartition(") ")[2][:1]
            except OSError:
                continue
            if mark in line and state != "Z":
                found.append(line)
    return found


async def test_output_of_both_kinds_and_the_exit_code(runner: CommandRunner) -> None:
    result = await runner.run("echo one; echo two >&2; exit 3")
    assert result.report() == "one\ntwo\n[exit code 3]"
    assert result.is_error
    assert result.summary() == "exit code 3 · 2 lines"
    assert (await runner.run("true")).report() == "[no output]"
    assert (await runner.run("kill -9 $$")).report() == "[no output]\n[ended by SIGKILL]"
    assert "[exit code 127]" in (await runner.run("no-such-program")).report()


@pytest.mark.parametrize(
    "command",
    ["echo 'open", "if then", "echo hi #", "cat <<EOF\nhi\nEOF", "exit 0;", "(exit 4)", "f() { return 2; }; f"],
)
async def test_whatever_bash_makes_of_it(runner: CommandRunner, command: str) -> None:
    result = await runner.run(command)
    plain = subprocess.run(["bash", "-c", command], capture_output=True, cwd=runner.root)
    assert result.ended is not None
    assert result.ended.exit_code == plain.returncode or result.is_error == bool(plain.returncode)
    assert result.output.text.count("hi\n") == plain.stdout.count(b"hi\n")


async def test_the_working_directory_is_kept(runner: CommandRunner) -> None:
    result = await runner.run("cd sub && mkdir -p 'a b\nc' && cd a*")
    assert "[The next command runs in" in result.report()
    assert (await runner.run("pwd -P; false")).output.text == f"{runner.root}/sub/a b\nc\n"
    assert "next command" not in (await runner.run("pwd")).report()
    await runner.run("cd ..; exit 5")
    assert runner.directory == runner.root / "sub"
    await runner.run("(cd /); cd() { :; }; set -eu; builtin cd ..; false; cd sub")
    assert runner.directory == runner.root
    await runner.run("printf '/tmp\\n'; echo /tmp; pwd() { echo /tmp; }")
    assert runner.directory == runner.root


async def test_nothing_but_a_directory_is_believed(runner: CommandRunner) -> None:
    """The descriptor is the command's to write to; what it says is only a place that there is, inside."""
    for said in ("nowhere", "/nowhere", "", "/etc/passwd", "../..", "/tmp", "x" * 9_000):
        await runner.run(
            f"trap - EXIT; for n in 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo '{said}' >/dev/fd/$n; done 2>/dev/null"
        )
        assert runner.directory == runner.root


async def test_outside_of_the_project_the_next_command_begins_inside(runner: CommandRunner, tmp_path: Path) -> None:
    await runner.run("cd sub")
    result = await runner.run("cd /; pwd")
    assert result.output.text == "/\n"
    assert "[/ is outside of the project; the next command runs in sub again]" in result.report()
    (runner.root / "link").symlink_to(tmp_path)
    await runner.run("cd ../link")
    assert runner.directory == runner.root / "sub"
    person = a_runner(tmp_path, stays_inside=False)
    await person.run("cd /")
    assert (await person.run("pwd")).output.text == "/\n"


async def test_a_directory_that_is_gone(runner: CommandRunner) -> None:
    await runner.run("mkdir gone; cd gone")
    await runner.run("cd ..; rmdir gone; cd sub; mkdir x; cd x")
    (runner.root / "sub" / "x").rmdir()
    assert (await runner.run("pwd")).output.text == f"{runner.root}\n"


async def test_nobody_answers(runner: CommandRunner) -> None:
    result = await within(30, lambda: runner.run('read line; echo "<$line>"; cat; test -t 0 || echo no terminal; tty'))
    assert "<>\nno terminal\nnot a tty" in result.output.text
    assert "gone" in (await runner.run("echo x > /dev/tty || echo gone")).output.text


async def test_out_of_time(tmp_path: Path) -> None:
    runner = a_runner(tmp_path, SHORT)
    result = await within(30, lambda: runner.run("echo before; sleep 987651"))
    assert result.report() == "before\n[stopped: it ran longer than 1 s]"
    assert result.is_error
    result = await within(30, lambda: runner.run("trap '' TERM INT HUP; sleep 987651; sleep 987651"))
    assert result.ended is not None
    assert result.ended.is_timeout
    assert not running("987651")


async def test_how_long_a_command_may_ask_for(tmp_path: Path) -> None:
    runner = a_runner(tmp_path, ToolSettings(timeout_seconds=1, max_timeout_seconds=2))
    assert (await runner.run("sleep 1.2; echo done", timeout_seconds=2)).output.text == "done\n"
    assert (await runner.run("sleep 30", timeout_seconds=500)).timeout_seconds == 2


@pytest.mark.parametrize(
    "command",
    [
        "sleep 987652 & echo begun",
        "(trap '' TERM; sleep 987652) & echo begun",
        "nohup sleep 987652 & echo begun",
        "(sleep 987652 & sleep 987652 &) ; echo begun",
        "sleep 987652 >&2 2>/dev/null <&- & disown; echo begun",
        "while :; do echo begun; sleep 0.01; done & sleep 0.1",
        "yes begun & sleep 0.1",
    ],
)
async def test_what_holds_the_pipe_does_not_hold_the_prompt(runner: CommandRunner, command: str) -> None:
    result = await within(30, lambda: runner.run(command))
    assert "begun" in result.output.text
    assert "[background processes were stopped]" in result.report()
    assert not running("987652")


async def test_a_session_of_its_own_is_let_go_and_said(runner: CommandRunner) -> None:
    result = await within(30, lambda: runner.run("setsid sleep 5 & echo begun"))
    assert "[a process that it started runs on in another session]" in result.report()


@pytest.mark.parametrize(
    "command", ["sleep 987653", "yes", "trap '' TERM; sleep 987653", "sleep 987653 & sleep 987653"]
)
async def test_an_interrupt_ends_the_whole_group(runner: CommandRunner, tmp_path: Path, command: str) -> None:
    task = asyncio.create_task(runner.run(command + " # mark-987653"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(30, lambda: task)
    assert not running("987653")
    assert not list((tmp_path / "outputs").rglob("*.txt")), "nobody will read it"


async def test_a_second_interrupt_ends_it_too(runner: CommandRunner) -> None:
    task = asyncio.create_task(runner.run("trap '' TERM; sleep 987654"))
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(30, lambda: task)
    await asyncio.sleep(0.1)
    assert not running("987654")


async def test_bytes_of_every_kind(runner: CommandRunner) -> None:
    result = await runner.run(r"printf 'a\0b \xff\xfe \xed\xa0\x80 \x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 ok\r\n'")
    assert result.output.text == "ab �� ��� red  ok\n"
    result = await within(60, lambda: runner.run("head -c 300000 /dev/urandom"))
    assert result.output.total_bytes == 300_000
    result.report().encode()


async def test_the_whole_output_is_named_last(runner: CommandRunner) -> None:
    result = await runner.run("seq 1 50000; cd sub; exit 2")
    last = result.report().rsplit("\n", 1)[1]
    assert last == f"[The whole output is in {result.output.saved}]"
    assert result.output.saved is not None
    assert result.output.saved.read_text().split() == [str(number) for number in range(1, 50_001)]
    assert result.output.text.startswith("1\n2\n")
    assert "\n50000\n\n[Output truncated from" in result.output.text
    assert len(result.report().encode()) <= Limits().max_bytes
    assert result.report().count("\n") <= Limits().max_lines


async def test_output_is_told_as_it_comes(runner: CommandRunner) -> None:
    seen: list[str] = []
    await runner.run("printf '\\xc3'; sleep 0.1; printf '\\xa4\\n'; echo two", on_output=seen.append)
    assert "".join(seen) == "ä\ntwo\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "there is no command"),
        (" \n\t", "there is no command"),
        ("echo \0", "contains a character"),
        ("echo \ud800", "contains a character"),
        ("#" * (MOST_COMMAND_BYTES + 1), "is longer than"),
    ],
)
async def test_what_cannot_be_run(runner: CommandRunner, command: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        await runner.run(command)


async def test_a_long_command_runs(runner: CommandRunner) -> None:
    assert (await runner.run("echo " + "x" * (MOST_COMMAND_BYTES - 10))).output.total_bytes == MOST_COMMAND_BYTES - 9


async def test_without_a_shell_the_words_are_what_runs(runner: CommandRunner) -> None:
    result = await runner.run("echo", argv=("/bin/echo", "$HOME", "*", "; ls"))
    assert result.output.text == "$HOME * ; ls\n"
    with pytest.raises(ToolError, match="cannot be started: no such file"):
        await runner.run("echo", argv=("/no/such/program",))


async def test_what_runs_unasked_starts_no_program_of_the_project(tmp_path: Path) -> None:
    planted = tmp_path / "bin" / "planted"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    environment = {"PATH": f"{planted.parent}:{os.environ['PATH']}"}
    runner = CommandRunner(tmp_path, settings=lambda: PATIENT, limits=Limits, env=environment)
    assert (await runner.run("env planted")).output.text == "planted\n"
    unasked = await runner.run("env planted", argv=("/usr/bin/env", "planted"))
    assert unasked.ended is not None
    assert unasked.ended.exit_code == 127


async def test_many_at_once_leave_no_descriptors(runner: CommandRunner) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    await asyncio.gather(*(runner.run("echo hi") for _ in range(12)))
    for _ in range(5):
        await runner.run("sleep 0 & true")
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


MEMORY = """
import asyncio, resource, sys
from pathlib import Path
from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.shell.output_capture import BEGINNING_BYTES, MOST_FILE_BYTES
from nca.tools.shell.runner import CommandRunner

async def main() -> None:
    root, command, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    settings = ToolSettings(timeout_seconds=seconds)
    pieces = 0
    def count(text: str) -> None:
        nonlocal pieces
        pieces += 1
    runner = CommandRunner(root, settings=lambda: settings, limits=Limits, outputs=lambda: root / "out")
    await runner.run("seq 1 100000", on_output=count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asyncio.timeout(60):
        result = await runner.run(command, on_output=count)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    report = result.report()
    saved = result.output.saved
    print(f"{grown:.1f} {len(report)} {result.output.total_bytes} {saved.stat().st_size if saved else 0}")
    print(report[:20].encode())
    print(report[-400:].encode())

asyncio.run(main())
"""


def measured(tmp_path: Path, command: str, seconds: float = 60) -> tuple[float, int, int, int, str]:
    """Megabytes that memory grew by, the report's characters, the output's bytes, the file's, what is at the ends."""
    ended = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path), command, str(seconds)], check=True, capture_output=True, text=True
    )
    numbers, rest = ended.stdout.split("\n", 1)
    grown, report, total, saved = numbers.split()
    return float(grown), int(report), int(total), int(saved), rest


def test_a_single_line_of_64_megabytes(tmp_path: Path) -> None:
    command = "printf BEGIN; head -c 63999992 /dev/zero | tr '\\0' x; printf END"
    grown, report, total, saved, ends = measured(tmp_path, command)
    assert grown < 50
    assert total == saved == 64_000_000
    assert report <= 51_200
    assert "BEGINxxx" in ends
    assert "xxxEND" in ends
    assert "[The whole output is in" in ends


@pytest.mark.parametrize(
    "command", ["yes", "cat /dev/zero", "cat /dev/urandom", "yes '' | tr '\\n' '\\r'", "yes & yes"]
)
def test_output_without_an_end(tmp_path: Path, command: str) -> None:
    grown, report, total, saved, ends = measured(tmp_path, command, 0.5)
    assert grown < 50
    assert report <= 51_200 * 3, "replacement characters are three bytes, and count as one"
    most = BEGINNING_BYTES if total > MOST_FILE_BYTES else total
    # Noise may look like a key, and keys are taken out.
    assert saved <= most if total > MOST_FILE_BYTES or "random" in command else saved == total
    assert "[stopped: it ran longer than 0.5 s]" in ends


def test_limits_are_asked_anew(tmp_path: Path) -> None:
    settings = [PATIENT]
    runner = CommandRunner(tmp_path, settings=lambda: settings[0], limits=Limits)
    settings[0] = replace(PATIENT, timeout_seconds=1)
    ended = asyncio.run(runner.run("sleep 30")).ended
    assert ended is not None
    assert ended.is_timeout


@pytest.mark.parametrize("left", ["", "..", "../..", "/etc", "none", "a\0b", "\ud800", "x" * 5_000, "file"])
def test_what_an_earlier_nca_left_is_a_directory_of_the_project_or_nothing(tmp_path: Path, left: str) -> None:
    (tmp_path / "file").touch()
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits, left_in=lambda: left)
    assert runner.current_directory() == runner.root
