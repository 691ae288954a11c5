"""`nca hooks`: the change is shown first, and what was handed over can be read."""

from __future__ import annotations

import json
from pathlib import Path

from nca.agent_hooks.server import Line, Log
from tests.testing.forks import forked


def test_hooks_are_shown_added_listed_and_taken_out(tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "model": "opus"\n}\n')
    refused = forked("hooks", "install", "claude", home=tmp_path)
    assert refused.returncode == 1
    assert '"PreCompact": [' in refused.stdout
    assert "Nothing was changed" in refused.stdout
    assert "hooks" not in settings.read_text()
    added = forked("hooks", "install", "claude", "--yes", home=tmp_path)
    assert added.returncode == 0
    assert "client.py" in settings.read_text()
    assert "already" in forked("hooks", "install", "claude", home=tmp_path).stdout
    status = forked("hooks", "status", home=tmp_path).stdout
    assert f"claude: in {settings}\n" in status
    assert "claude: not installed" not in status
    removed = forked("hooks", "uninstall", "claude", "--yes", home=tmp_path)
    assert removed.returncode == 0
    assert settings.read_text() == '{\n  // mine\n  "model": "opus"\n}\n'
    assert "claude: not installed" in forked("hooks", "status", home=tmp_path).stdout


def test_a_projects_hooks_are_a_file_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "harbour"
    project.mkdir()
    assert forked("hooks", "install", "claude", "--project", "--yes", home=tmp_path, cwd=project).returncode == 0
    written = json.loads((project / ".claude" / "settings.local.json").read_text())
    assert "PreCompact" in written["hooks"]
    assert f"in {project}/.claude/settings.local.json" in forked("hooks", "status", home=tmp_path, cwd=project).stdout
    forked("hooks", "uninstall", "claude", "--project", "--yes", home=tmp_path, cwd=project)
    assert list((project / ".claude").iterdir()) == []


def test_opencodes_plugin_is_written_and_removed(tmp_path: Path) -> None:
    plugin = tmp_path / ".config" / "opencode" / "plugins" / "nca.js"
    added = forked("hooks", "install", "opencode", "--yes", home=tmp_path)
    assert f"Changed {plugin}." in added.stdout
    assert "already" in forked("hooks", "install", "opencode", home=tmp_path).stdout
    assert f"opencode: in {plugin}\n" in forked("hooks", "status", home=tmp_path).stdout
    assert f"Removed {plugin}." in forked("hooks", "uninstall", "opencode", "--yes", home=tmp_path).stdout
    assert list(plugin.parent.iterdir()) == []
    plugin.write_text("export const Mine = async () => ({})\n")
    for command in ("install", "uninstall"):
        assert forked("hooks", command, "opencode", "--yes", home=tmp_path).returncode == 2
    assert "nca did not write it so" in forked("hooks", "status", home=tmp_path).stdout


def test_problems_are_one_line(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"model": ')
    for command in (("install", "claude"), ("uninstall", "claude"), ("install", "emacs")):
        done = forked("hooks", *command, "--yes", home=tmp_path)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
    assert "is not whole JSON" in forked("hooks", "status", home=tmp_path).stdout


def test_the_log_says_what_was_handed_over(tmp_path: Path) -> None:
    assert "No hook has called nca yet" in forked("hooks", "log", home=tmp_path).stdout
    folder = tmp_path / "nca" / "cache" / "hooks"
    folder.mkdir(parents=True)
    log = Log(folder)
    log.add(Line(at=1.0, agent="claude", problem="it was too late"))
    told = "[A record]\n\n### What the user said\n- Greet Olu.\x1b[2J"
    log.add(Line(at=2.0, agent="claude", event="SessionStart", session="0123456789", text=told, ms=12))
    done = forked("hooks", "log", home=tmp_path).stdout
    assert "claude: nothing: it was too late\n" in done
    assert "claude SessionStart 01234567: 51 characters in 12 ms: [A record] ### What the user said" in done
    assert "  - Greet Olu." in (whole := forked("hooks", "log", "--full", "-n", "1", home=tmp_path).stdout)
    assert "\x1b" not in whole
    assert "too late" not in whole
    assert "handed over 1 time, last" in forked("hooks", "status", home=tmp_path).stdout
