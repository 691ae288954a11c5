"""Several programs change one file at once: no change is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nca.agent.memory import add_note, load_notes
from nca.config.document import read_document
from nca.config.overrides import UNSET
from nca.config.projects import ChosenModel, ChosenModels
from nca.config.saving import ALLOW, add_rule, add_server, remove_rule, remove_server, save_value, value_at
from nca.config.tables import PermissionRule
from nca.models import keys
from nca.safe_files import exclusively

MANY = 8


def at_once(change: Callable[[int], object]) -> None:
    """Each on a thread of its own: the lock is between open folders, whoever has opened them."""
    begin = threading.Barrier(MANY)

    def run(number: int) -> None:
        begin.wait()
        change(number)

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(run, range(MANY)))


def value(file: Path, key: str) -> object:
    document = read_document(file)
    return value_at(document.data, key) if document else None


def test_settings_of_different_names(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    names = ["agent.max_steps", "model.max_retries", "context.max_turns", "context.preserve_turns"]
    names += ["context.max_messages", "context.max_tokens", "model.context_window", "model.max_output_tokens"]
    at_once(lambda number: save_value(file, names[number], 20_000 + number if number > 3 else 5 + number))
    assert [value(file, name) for name in names] == [5, 6, 7, 8, *range(20_004, 20_008)]
    at_once(lambda number: save_value(file, names[number], UNSET))
    assert [value(file, name) for name in names] == [None] * MANY


def test_rules_servers_keys_notes_and_choices(tmp_path: Path) -> None:
    file, env = tmp_path / "config.toml", {"NCA_HOME": str(tmp_path / "home")}
    at_once(lambda number: add_rule(file, ALLOW, PermissionRule("shell", f"make {number}")))
    rules = value(file, "permissions.allow")
    assert isinstance(rules, list)
    assert sorted(rule["subject"] for rule in rules) == [f"make {number}" for number in range(MANY)]
    at_once(lambda number: add_server(file, f"s{number}", {"command": "x"}, is_users_own=True))
    servers = value(file, "mcp.servers")
    assert isinstance(servers, dict)
    assert sorted(servers) == [f"s{number}" for number in range(MANY)]
    at_once(lambda number: remove_rule(file, ALLOW, PermissionRule("shell", f"make {number}")))
    at_once(lambda number: remove_server(file, f"s{number}", is_users_own=True))
    assert (value(file, "permissions.allow"), value(file, "mcp.servers")) == ([], None)
    variables = sorted(keys.PROVIDERS_BY_VARIABLE)[:MANY]
    at_once(lambda number: keys.save(env, variables[number], f"sk-{number}-0123456789abcdef"))
    assert sorted(keys.stored(env)) == variables
    notes = tmp_path / "notes" / "memory.json"
    at_once(lambda number: add_note(notes, f"note {number}", at=number, max_notes=100))
    assert sorted(note.text for note in load_notes(notes)) == [f"note {number}" for number in range(MANY)]
    at_once(lambda number: ChosenModels(env).record(tmp_path / str(number), ChosenModel(f"openai/{number}")))
    assert all(ChosenModels(env).of(tmp_path / str(number)) for number in range(MANY))


def test_a_file_that_another_process_changes_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    with ThreadPoolExecutor(1) as pool:
        with exclusively(file):
            saving = pool.submit(save_value, file, "agent.max_steps", 5)
            time.sleep(0.1)
            assert not saving.done()
            assert not file.exists()
        saving.result()
    assert value(file, "agent.max_steps") == 5
