"""The sessions in the agents' own places are found, by default and where an environment variable says."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.transcripts.formats.registry import stored_sessions
from tests.transcripts.formats.samples import SAMPLES

PLACES = {
    "pi": ".pi/agent/sessions/--repo--",
    "gemini": ".gemini/tmp/p/chats",
    "copilot": ".copilot/session-state",
    "qwen": ".qwen/projects/-repo/chats",
    "opencode": ".local/share/opencode",
    "opencode-files": ".local/share/opencode",
    "llm": ".config/io.datasette.llm",
    "openhands": ".openhands/conversations",
    "mini-swe-agent": ".config/mini-swe-agent",
    "goose": ".local/share/goose/sessions",
    "cline": ".cline/data",
    "gptme": ".local/share/gptme/logs",
    "kimi-code": ".kimi-code/sessions/wd_repo",
    "vibe": ".vibe/logs/session",
}
"""Where each agent keeps its sessions below the home."""
CHOSEN = {
    "pi": ("PI_CODING_AGENT_DIR", "sessions/--repo--"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/tmp/p/chats"),
    "copilot": ("COPILOT_HOME", "session-state"),
    "qwen": ("QWEN_HOME", "projects/-repo/chats"),
    "opencode": ("XDG_DATA_HOME", "opencode"),
    "llm": ("LLM_USER_PATH", ""),
    "goose": ("GOOSE_PATH_ROOT", "data/sessions"),
    "gptme": ("GPTME_LOGS_HOME", ""),
    "kimi-code": ("KIMI_CODE_HOME", "sessions/wd_repo"),
    "vibe": ("VIBE_HOME", "logs/session"),
}
"""The variable that chooses another place, and the folder in it."""


def write(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return SAMPLES[name][1](folder)


@pytest.mark.parametrize("name", PLACES)
def test_sessions_are_found_in_the_home(name: str, tmp_path: Path) -> None:
    path = write(name, tmp_path / PLACES[name])
    found = stored_sessions({}, tmp_path)
    assert found.notes == ()
    assert [(one.agent, one.path) for one in found.sessions] == [(SAMPLES[name][0], path)]


@pytest.mark.parametrize("name", CHOSEN)
def test_an_environment_variable_chooses_the_place(name: str, tmp_path: Path) -> None:
    variable, folder = CHOSEN[name]
    path = write(name, tmp_path / "chosen" / folder)
    found = stored_sessions({variable: str(tmp_path / "chosen")}, tmp_path / "home")
    assert [one.path for one in found.sessions] == [path]
    in_home = write(name, tmp_path / "home" / "chosen" / folder)
    if variable != "XDG_DATA_HOME":  # which must be absolute
        found = stored_sessions({variable: "~/chosen"}, tmp_path / "home")
        assert [one.path for one in found.sessions] == [in_home]


@pytest.mark.parametrize(("name", "folder"), [("aider", ""), ("crush", ".crush")])
def test_sessions_beside_the_project_are_found_from_a_folder_inside(name: str, folder: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    path = write(name, project / folder)
    found = stored_sessions({"PWD": str(project / "src" / "deep")}, tmp_path / "home", str(project))
    assert [(one.agent, one.path) for one in found.sessions] == [(name, path)]
    assert stored_sessions({"PWD": str(tmp_path)}, tmp_path / "home").sessions == ()


def test_kimi_knows_the_folder_by_its_digest(tmp_path: Path) -> None:
    path = write("kimi", tmp_path)
    env = {"KIMI_SHARE_DIR": str(tmp_path / "kimi")}
    assert [one.path for one in stored_sessions(env, tmp_path / "home", "/repo").sessions] == [path]
    assert stored_sessions(env, tmp_path / "home", "/elsewhere").sessions == ()


def test_gemini_names_the_project_beside_its_chats(tmp_path: Path) -> None:
    write("gemini", tmp_path / PLACES["gemini"])
    (tmp_path / ".gemini/tmp/p/.project_root").write_text("/repo\n")
    assert len(stored_sessions({}, tmp_path, "/repo").sessions) == 1


def test_a_store_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    path = write("goose", tmp_path / PLACES["goose"])
    path.write_bytes(b"no database")
    write("pi", tmp_path / PLACES["pi"])
    found = stored_sessions({}, tmp_path)
    assert [one.agent for one in found.sessions] == ["pi"]
    assert [note.split(":")[0] for note in found.notes] == ["goose"]
