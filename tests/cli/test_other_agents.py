"""Sessions of other agents in the commands: import, compact, bench, and --resume, each as a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.sessions import Store
from nca.testing.provider import Provider
from tests.cli.command import environment, keys
from tests.terminal.tty import ROOT
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked as nca
from tests.transcripts.formats import test_codex as codex
from tests.transcripts.formats.test_claude_code import answer, boundary, call, raw, result, summary, user


def talk(folder: Path, directory: str = "/work") -> Path:
    path = folder / "s-1.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        user("u1", None, "Read the file and fix the walrus bug."),
        answer("a1", "u1", "I look.", call("t1", path="a.py")),
        result("r1", "a1", "t1", "line\n" * 400),
        answer("a2", "r1", "It is fixed."),
        boundary("b1", "a2"),
        summary("s1", "b1", "The bug was fixed."),
        user("u2", "s1", "Thanks. And the tests?"),
    ]
    path.write_bytes(raw(*({**row, "cwd": directory} for row in rows)))
    return path


def test_import_takes_it_whole_and_says_what_it_could_not_read(tmp_path: Path) -> None:
    path = talk(tmp_path / "x")
    path.write_bytes(path.read_bytes() + b"{broken\n")
    done = nca("sessions", "import", str(path), home=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("\n") <= 2
    assert "1 part could not be read: line 8 is not JSON" in done.stderr
    shown = nca("sessions", "show", done.stdout.strip(), home=tmp_path).stdout
    assert "directory  /work" in shown
    assert "model      claude-opus-4-5 in Claude Code" in shown
    assert "The bug was fixed." in shown
    found = nca("sessions", "search", "walrus", home=tmp_path).stdout
    assert "walrus" in found


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_compact_and_bench_read_the_conversation_behind_its_own_compactions(tmp_path: Path, way: str) -> None:
    path = talk(tmp_path / "x")
    file, stdin = (str(path), b"") if way == "file" else ("-", path.read_bytes())
    done = nca("compact", file, "--context-window", "100000", home=tmp_path, stdin=stdin)
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user"]
    report = json.loads(nca("bench", file, "--json", home=tmp_path, stdin=stdin).stdout)
    assert (report["messages"], report["turns"]) == (5, 2)


def test_a_key_where_there_is_one_session_is_one_line(tmp_path: Path) -> None:
    path = talk(tmp_path / "x")
    done = nca("sessions", "import", f"{path}#other", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == f"nca: {path}: holds one session and no 'other'."
    plain = tmp_path / "talk.json"
    plain.write_text('[{"role":"user","content":"hi"}]')
    done = nca("compact", f"{plain}#1", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds one conversation and no session '1'" in done.stderr


@pytest.mark.parametrize("command", ["", "/resume claude", "/resume"])
def test_resume_offers_an_agents_sessions_of_this_directory_and_goes_on_in_nca(
    provider: Provider, tmp_path: Path, command: str
) -> None:
    here = str(Path.cwd())
    talk(tmp_path / ".claude" / "projects" / "-here", here)
    talk(tmp_path / ".claude" / "projects" / "-there", "/elsewhere")
    rollouts = tmp_path / ".codex" / "sessions" / "2026"
    rollouts.mkdir(parents=True)
    (rollouts / "rollout-1.jsonl").write_bytes(codex.raw(codex.meta(cwd=here), codex.message("Sing a song")))
    env = {**environment(tmp_path, **keys(provider)), "PYTHONPATH": str(ROOT)}
    words = [] if command else ["--resume", "claude"]
    with ForkedTty(["nca", "loop", "-m", "openai/test-model", *words], environment=env) as tty:
        if command:
            tty.command("/resume gemini")
            tty.sees("There is no session of Gemini CLI in this directory.")
            tty.settle()
            tty.command(command)
        tty.sees("Claude Code: Read the file and fix the walrus bug.")
        if command == "/resume":
            tty.sees("Codex CLI: Sing a song")
            tty.send("walrus")
            tty.sees("Search: walrus")
            tty.sees_no("Sing a song")
        else:
            tty.sees("1 of 1")
            assert "Sing a song" not in tty.text()
        tty.send("\r")
        tty.sees("Resuming “Read the file and fix the walrus bug.” (5 messages).")
        tty.settle()
        tty.line("go on")
        tty.sees("You said: go on")
        tty.settle()
        tty.send("\x04")
        assert tty.ends() == 0
    sent = json.dumps(provider.requests[-1])
    assert "The bug was fixed." in sent
    assert "recall expand=1-4" in sent
    with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
        [info] = store.list()
        assert info.origin is not None
        assert info.messages > 5
    given: dict[str, Any] = dict(keys(provider))
    done = nca("loop", "--resume", home=tmp_path, cwd=Path.cwd(), **given)
    assert done.returncode == 2
    assert "Codex CLI: Sing a song" in done.stdout
    assert "elsewhere" not in done.stdout
    assert done.stdout.count("walrus") == 1
    done = nca("loop", "--resume", "codex", home=tmp_path, **given)
    assert "There is no session of Codex CLI in this directory" in done.stderr
