"""The real programs resume what was written for them, and send their model all of it.

NCA_TEST_AGENTS names a folder in which `npm install` put @anthropic-ai/claude-code, @openai/codex,
@mariozechner/pi-coding-agent and @google/gemini-cli; without it there is nothing to run.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nca.messages import Message
from nca.sessions.transfer import SessionCopy
from nca.transcripts.outgoing.conversation import Written, write_for
from nca.wire import content_text
from tests.transcripts.outgoing.loopback_models import ANSWER, LoopbackModels
from tests.transcripts.outgoing.sessions import SUMMARIZED, SUMMARY, TALK, compacted, real_talks, session

FOLDER = os.environ.get("NCA_TEST_AGENTS", "")
ASKED = "And do the tests pass now?"
SECONDS = 120
Fact = tuple[str, Any]
"""What a request holds: ("said", text), ("call", (id, name, arguments)) or ("result", (id, text))."""

pytestmark = pytest.mark.skipif(not FOLDER, reason="NCA_TEST_AGENTS names no folder with the programs")


class Program(NamedTuple):
    """How an agent is run, and what its requests hold.

    arguments  the executable below the folder of the packages and its arguments, with those of the printed command
    set_up     writes the program's own settings below its home, given the address of its models
    facts      the messages of a request, in order
    """

    arguments: Callable[[list[str]], list[str]]
    set_up: Callable[[Path, str], Mapping[str, str]]
    facts: Callable[[dict[str, Any]], Iterator[Fact]]


def _claude(printed: list[str]) -> list[str]:
    executable = "@anthropic-ai/claude-code-linux-x64/claude"
    return [executable, "-p", ASKED, "--model", "claude-sonnet-4-5", *printed]


def _claude_settings(home: Path, url: str) -> Mapping[str, str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-test", **quiet}


def _of_anthropic(request: dict[str, Any]) -> Iterator[Fact]:
    for message in request["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                yield "said", block["text"].strip()
            elif block["type"] == "tool_use":
                yield "call", (block["id"], block["name"], block["input"])
            elif block["type"] == "tool_result":
                yield "result", (block["tool_use_id"], _text(block.get("content")))


def _codex(printed: list[str]) -> list[str]:
    return [".bin/codex", "exec", "--skip-git-repo-check", *printed, ASKED]


def _codex_settings(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    provider = f'name = "loop"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOOP_KEY"\n'
    text = f'model = "gpt-5"\nmodel_provider = "loop"\n[model_providers.loop]\n{provider}'
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return {"LOOP_KEY": "x"}


def _of_responses(request: dict[str, Any]) -> Iterator[Fact]:
    for item in request["input"]:
        if item["type"] == "message":
            yield "said", _text(item["content"])
        elif item["type"] == "function_call":
            yield "call", (item["call_id"], item["name"], json.loads(item["arguments"]))
        elif item["type"] == "function_call_output":
            yield "result", (item["call_id"], _text(item["output"]))


def _pi(printed: list[str]) -> list[str]:
    return [".bin/pi", "-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", *printed, ASKED]


def _pi_settings(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    (folder / "models.json").write_text(json.dumps({"providers": {"anthropic": {"baseUrl": url}}}), encoding="utf-8")
    return {"ANTHROPIC_API_KEY": "sk-ant-test", "PI_OFFLINE": "1"}


def _gemini(printed: list[str]) -> list[str]:
    return [".bin/gemini", "-p", ASKED, "--model", "gemini-2.5-pro", "--skip-trust", *printed]


def _gemini_settings(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".gemini"
    folder.mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_TELEMETRY_ENABLED": "false"}


def _of_google(request: dict[str, Any]) -> Iterator[Fact]:
    for content in request["contents"]:
        for part in content["parts"]:
            if call := part.get("functionCall"):
                yield "call", (call["id"], call["name"], call["args"])
            elif answered := part.get("functionResponse"):
                said = answered["response"]
                yield "result", (answered["id"], str(said.get("output", said.get("error"))).strip())
            elif "text" in part:
                yield "said", part["text"].strip()


PROGRAMS = {
    "claude": Program(_claude, _claude_settings, _of_anthropic),
    "codex": Program(_codex, _codex_settings, _of_responses),
    "gemini": Program(_gemini, _gemini_settings, _of_google),
    "pi": Program(_pi, _pi_settings, _of_anthropic),
}


def _text(content: Any) -> str:
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]
    return "".join(parts).strip()


def _expected(messages: list[Message]) -> Iterator[Fact]:
    for message in messages:
        text = content_text(message.content).strip()
        if message.role == "tool":
            yield "result", (message.tool_call_id, text or "(no output)")
            continue
        if text:
            yield "said", text
        yield from (("call", (call.id, call.name, json.loads(call.arguments))) for call in message.tool_calls)


def _resumed(name: str, copy: SessionCopy, folder: Path, file: str = "") -> list[Fact]:
    """What the program sends when it resumes the session with one more message."""
    home, work = folder / "home", Path(copy.info.directory)
    home.mkdir()
    work.mkdir(exist_ok=True)
    program = PROGRAMS[name]
    with LoopbackModels() as models:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), **program.set_up(home, models.url)}
        done: Written = write_for(name, copy, env, home, file)
        executable, *arguments = program.arguments(done.command.partition(" && ")[2].split()[1:])
        ran = subprocess.run(
            [Path(FOLDER) / "node_modules" / executable, *arguments],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert ran.returncode == 0, ran.stderr + ran.stdout
        assert ANSWER in ran.stdout
        return list(program.facts(models.requests[-1]))


def _from_the_first(expected: list[Fact], sent: list[Fact]) -> list[Fact]:
    """What was sent from the first expected fact on, without what the program adds before and behind the talk."""
    start = sent.index(expected[0])
    return sent[start : start + len(expected)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_messages_calls_and_results_are_sent_whole(name: str, tmp_path: Path) -> None:
    sent = _resumed(name, session(directory=tmp_path / "work"), tmp_path)
    expected = list(_expected(list(TALK)))
    assert _from_the_first(expected, sent) == expected
    assert any(kind == "said" and ASKED in text for kind, text in sent)


@pytest.mark.parametrize("name", PROGRAMS)
def test_after_a_compaction_its_summary_is_sent(name: str, tmp_path: Path) -> None:
    sent = _resumed(name, compacted(directory=tmp_path / "work"), tmp_path)
    expected = list(_expected(list(TALK[SUMMARIZED:])))
    assert _from_the_first(expected, sent) == expected
    before = sent[: sent.index(expected[0])]
    assert any(kind == "said" and SUMMARY in text for kind, text in before)
    assert not any("call_1" in str(fact) for fact in sent)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_long_real_conversation_is_sent_whole(name: str, tmp_path: Path) -> None:
    talk = max(real_talks(), key=len)
    expected = list(_expected(talk))
    sent = _resumed(name, session(talk, directory=tmp_path / "work"), tmp_path)
    assert _from_the_first(expected, sent) == expected


@pytest.mark.parametrize("name", ["gemini", "pi"])
def test_a_file_elsewhere_is_resumed(name: str, tmp_path: Path) -> None:
    sent = _resumed(name, session(directory=tmp_path / "work"), tmp_path, str(tmp_path / "talk.jsonl"))
    expected = list(_expected(list(TALK)))
    assert _from_the_first(expected, sent) == expected
