"""Keys in a project: 30 in 12 formats, and none gets past the tool that read it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import msgspec
import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import ProviderError
from nca.events import Event, ToolFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.words import Source, words

_HEX = "0123456789abcdef"


def _random(length: int, seed: int, letters: str = "") -> str:
    """Letters and digits that look random and are the same every time."""
    letters = letters or "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    state, out = seed * 2_654_435_761 + 97, []
    for _ in range(length):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        out.append(letters[(state >> 33) % len(letters)])
    return "".join(out)


PREFIXED = {
    "openai": f"sk-{_random(48, 1)}",
    "openai project": f"sk-proj-{_random(60, 2)}",
    "anthropic": f"sk-ant-api03-{_random(80, 3)}-AA",
    "openrouter": f"sk-or-v1-{_random(64, 4, _HEX)}",
    "deepseek": f"sk-{_random(32, 5, _HEX)}",
    "github": f"ghp_{_random(36, 6)}",
    "github app": f"ghs_{_random(36, 7)}",
    "github fine": f"github_pat_{_random(60, 8)}",
    "gitlab": f"glpat-{_random(20, 9)}",
    "aws id": f"AKIA{_random(16, 10, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}",
    "google": f"AIza{_random(35, 11)}",
    "hugging face": f"hf_{_random(34, 12)}",
    "groq": f"gsk_{_random(52, 13)}",
    "xai": f"xai-{_random(80, 14)}",
    "slack": f"xoxb-{_random(12, 15, '0123456789')}-{_random(24, 16)}",
    "stripe": f"sk_live_{_random(24, 17)}",
    "stripe restricted": f"rk_test_{_random(24, 18)}",
    "npm": f"npm_{_random(36, 19)}",
    "pypi": f"pypi-AgEI{_random(120, 20)}",
    "json web token": f"eyJ{_random(20, 21)}.eyJ{_random(40, 22)}.{_random(43, 23)}",
}
"""Whatever stands around them."""
IN_ENVIRONMENT = {
    "DATABASE_PASSWORD": "correct horse battery staple",
    "INTERNAL_TOKEN": _random(24, 24),
    "COMPANY_API_KEY": "plain-words-but-secret",
    "SERVICE_SECRET": "p@ss/w0rd+&=%",
}
"""Known by their names: in any form that files have."""
ASSIGNED = {
    "hex": _random(40, 25, _HEX),
    "long hex": _random(64, 26, _HEX),
    "mixed": _random(32, 27),
    "base64": base64.b64encode(_random(30, 28).encode()).decode(),
    "uuid": "7f3c1b9e-4a2d-4e8b-9c61-0d5f2a7e8b43",
    "underscored": f"{_random(12, 29)}_{_random(12, 30)}",
}
"""Known by what they are assigned to."""

FORMATS: dict[str, Callable[[str], str]] = {
    "dotenv": lambda key: f"API_KEY={key}\n",
    "shell": lambda key: f"export SERVICE_TOKEN='{key}'\n",
    "json": lambda key: json.dumps({"client": {"client_secret": key}}, indent=2),
    "yaml": lambda key: f"db:\n  password: {key}\n",
    "toml": lambda key: f'[auth]\naccess_key = "{key}"\n',
    "ini": lambda key: f"[default]\nsecret_access_key={key}\n",
    "python": lambda key: f'API_KEY = "{key}"  # remove\n',
    "header": lambda key: f"Authorization: Bearer {key}\n",
    "address": lambda key: f"postgres://app:{quote(key, safe='')}@db.internal:5432/app\n",
    "netrc": lambda key: f"machine x.org login me password {key}\n",
    "log": lambda key: f"2026-01-01 12:00:00 WARN retrying with token={key} (attempt 2)\n",
    "docker": lambda key: json.dumps({"auths": {"r.io": {"auth": base64.b64encode(f"me:{key}".encode()).decode()}}}),
}
SECRETS = {**PREFIXED, **IN_ENVIRONMENT, **ASSIGNED}
FACTS = ModelFacts(name="scripted/model", provider="scripted", window_tokens=200_000)


def test_there_are_as_many_as_are_promised() -> None:
    assert len(SECRETS) == 30
    assert len(FORMATS) == 12


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(f"me:{secret}".encode()).decode()
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded}


@pytest.mark.parametrize("form", FORMATS)
async def test_none_of_them_is_kept_or_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    for name, value in IN_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    project = tmp_path / "project"
    project.mkdir()
    for number, secret in enumerate(SECRETS.values()):
        (project / f"f{number}.txt").write_text(f"before\n{FORMATS[form](secret)}after\n")
    (project / "all.txt").write_text("".join(f"{FORMATS[form](secret)}\n" for secret in SECRETS.values()) * 30)
    reads = [ToolCall(f"r{number}", "read_file", f'{{"path": "f{number}.txt"}}') for number in range(len(SECRETS))]
    search = ToolCall("g", "grep", '{"pattern": ".", "max_results": 1000}')
    whole = ToolCall("w", "read_file", '{"path": "all.txt"}')
    model = ScriptedModel([Message("assistant", tool_calls=(*reads, search, whole)), "Done."], facts=FACTS)
    events: list[Event] = []
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        settings = defaults().with_value("context.admission.max_bytes", 4_000, "the test")
        conversation = Conversation.open(settings, store=store, model=model, directory=project, listener=events.append)
        assert (await conversation.send("What is in @f3.txt and @f21.txt?")).reason == "answered"
        await conversation.close()
    sent = json.dumps([request.messages for request in model.requests], ensure_ascii=False)
    assert sent.count("before") >= len(SECRETS)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"[The whole output is in" in kept
    told = msgspec.json.encode(events).decode()
    for name, secret in SECRETS.items():
        for one in _forms(secret):
            assert one not in sent, (name, "sent")
            assert one not in told, (name, "told")
            assert one.encode() not in kept, (name, "kept")


async def test_the_diff_of_an_edit_beside_a_key_does_not_show_it(tmp_path: Path) -> None:
    """The file and the approval are the person's; the diff in the events goes further, to logs and other programs."""
    secret = PREFIXED["github"]
    (tmp_path / ".env").write_text(f"A=1\nTOKEN={secret}\n")
    read = ToolCall("r", "read_file", '{"path": ".env"}')
    edit = ToolCall("e", "edit_file", '{"path": ".env", "old_text": "A=1", "new_text": "A=2"}')
    model = ScriptedModel(
        [Message("assistant", tool_calls=(read,)), Message("assistant", tool_calls=(edit,)), "Done."], facts=FACTS
    )
    events: list[Event] = []
    with Store.open(None) as store:
        settings = defaults().with_value("agent.permission", "accept-edits", "the test")
        conversation = Conversation.open(settings, store=store, model=model, directory=tmp_path, listener=events.append)
        await conversation.send("Count on.")
        await conversation.close()
    (diff,) = [event.diff for event in events if isinstance(event, ToolFinished) and event.diff]
    assert "+A=2\n TOKEN=[redacted" in diff
    assert secret not in msgspec.json.encode(events).decode()
    assert (tmp_path / ".env").read_text() == f"A=2\nTOKEN={secret}\n"


@pytest.mark.parametrize("source", [one for one in get_args(Source) if one not in ("typed", "nca", "foreign")])
async def test_what_the_person_did_not_type_is_redacted_at_every_door(tmp_path: Path, source: Source) -> None:
    secret, typed = PREFIXED["github"], PREFIXED["gitlab"]
    said = (*words(f"I typed {typed}. Why? "), *words(f"TOKEN={secret[:9]}", source), *words(secret[9:], source))
    model = ScriptedModel([ProviderError("down"), "Because.", "So."], facts=FACTS)
    events: list[Event] = []
    with Store.open(None) as store:
        conversation = Conversation.open(
            defaults(), store=store, model=model, directory=tmp_path, listener=events.append
        )
        await conversation.send(said)
        conversation.take_back(said)
        await conversation.send(said)
        await conversation.beside.ask(said)
        logged = str(list(conversation.context.entries))
        asked = [row for row in model.requests[1].messages if row["role"] == "user"]
    assert len(asked) == 1, "it is known again"
    told = f"{logged}{[request.messages for request in model.requests]}{events}"
    assert secret[9:] not in told
    assert typed in told
    assert "it is sent as [redacted]" in told


async def test_the_person_s_own_words_stay_as_they_are(tmp_path: Path) -> None:
    said = f"My key is {PREFIXED['github']}."
    with Store.open(None) as store:
        model = ScriptedModel(["Noted."], facts=FACTS)
        conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path)
        await conversation.send(said)
        assert conversation.context.entries[0].message.text == said


async def test_a_key_that_the_chat_gives_to_commands_is_known_at_once(tmp_path: Path) -> None:
    """Its value has no shape of a key, so only its name says what it is."""
    printing = Message("assistant", None, (ToolCall("c1", "shell", json.dumps({"command": "echo $MY_TOKEN"})),))
    with Store.open(None) as store:
        conversation = Conversation.open(
            defaults().with_value("agent.permission", "auto", "the test"),
            store=store,
            model=ScriptedModel([printing, "Done."]),
            directory=tmp_path,
        )
        conversation.set("tools.variables", ["MY_TOKEN=under the blue door"])
        await conversation.send("Print it.")
        text = conversation.context.entries[2].message.text
        await conversation.close()
    assert text.startswith("[redacted")
    assert "blue door" not in text
