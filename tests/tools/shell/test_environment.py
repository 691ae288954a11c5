"""No key reaches a command, however it is stored; programs still get what they need."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.tools.programs import command_environment
from nca.tools.shell.runner import CommandRunner

KEY = "sk-proj-" + "a1B2" * 10
PLANTED = {
    "OPENAI_API_KEY": KEY,
    "ANTHROPIC_API_KEY": "sk-ant-api03-" + "c3D4" * 20,
    "GEMINI_API_KEY": "AIza" + "e5F6-" * 7,
    "AWS_ACCESS_KEY_ID": "AKIA" + "ABCD" * 4,
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "GITHUB_TOKEN": "ghp_" + "a1B2" * 9,
    "HF_TOKEN": "hf_" + "aB" * 17,
    "SLACK_BOT": "xoxb-1234567890-abcdefghij",
    "SESSION": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
    "DEPLOY_KEY": "-----BEGIN RSA PRIVATE KEY-----\nMIIEplanted\n-----END RSA PRIVATE KEY-----",
    "DATABASE_URL": "postgres://me:plantedpassword@db/x",
    "CREDENTIALS": f'{{"key": "{KEY}"}}',
    "ENCODED": base64.b64encode(KEY.encode()).decode(),
    "MY_PASSWORD": "correct horse battery staple",
    "NCA_MODEL__API_BASE": "http://me:plantedpassword@host",
    # The same in variables that pass otherwise.
    "LC_ALL": KEY,
    "LANG": f"C.UTF-8 {KEY}",
    "TERM": "ghp_" + "a1B2" * 9,
    "HTTPS_PROXY": "http://me:plantedpassword@proxy:3128",
    "http_proxy": "me:plantedpassword@proxy:3128",
    "VIRTUAL_ENV": "/tmp/correct horse battery staple",
    "LC_SECRET": base64.b64encode(KEY.encode()).decode(),
    "BASH_ENV": "/tmp/evil",
    "BASH_FUNC_ls%%": "() { touch pwned; }",
    "LD_PRELOAD": "/tmp/evil.so",
}
USUAL = {"PATH": os.environ["PATH"], "HOME": "/home/me", "USER": "me", "LC_CTYPE": "C.UTF-8", "NO_PROXY": "localhost"}
SECRETS = [
    *(KEY, base64.b64encode(KEY.encode()).decode(), "sk-ant-api03-", "AIza", "AKIA", "wJalrXUtnFEMI", "ghp_", "hf_aB"),
    *("xoxb-", "eyJhbGci", "MIIEplanted", "plantedpassword", "correct horse", "evil", "pwned"),
]


def test_nothing_planted_is_passed_on() -> None:
    passed = command_environment({**PLANTED, **USUAL})
    assert USUAL.items() <= passed.items()
    assert set(passed) <= {*USUAL, "PAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_TERMINAL_PROMPT"}
    assert not [secret for secret in SECRETS if secret in str(passed)]


async def test_nothing_planted_is_seen_by_a_command(tmp_path: Path) -> None:
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits, env={**PLANTED, **USUAL})
    result = await runner.run("env; cat /proc/self/environ /proc/$$/environ 2>/dev/null || true; set; echo $0 $*")
    assert "HOME=/home/me" in result.output.text
    assert not [secret for secret in SECRETS if secret in result.output.text]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "CREDENTIALS", "ANTHROPIC_API_KEY", "LANG"]
)
def test_a_providers_key_does_not_pass_even_where_its_variable_is_named(name: str) -> None:
    assert name not in command_environment({**PLANTED, **USUAL}, [name])


def test_what_the_person_names_passes() -> None:
    env = {**PLANTED, **USUAL, "MY_FLAG": "1", "PAGER": "less"}
    passed = command_environment(env, ["GITHUB_TOKEN", "MY_FLAG", "NOT_THERE", "PAGER"])
    assert passed["GITHUB_TOKEN"] == PLANTED["GITHUB_TOKEN"]
    assert passed["MY_FLAG"] == "1"
    assert passed["PAGER"] == "less"
    assert "NOT_THERE" not in passed


def test_a_short_key_is_one_too() -> None:
    assert "X" not in command_environment({"OPENAI_API_KEY": "abc", "X": "abc"}, ["X"])


def test_there_is_always_a_path() -> None:
    assert command_environment({})["PATH"]
    assert KEY not in command_environment({"OPENAI_API_KEY": KEY, "PATH": f"/bin:/{KEY}"})["PATH"]


def test_proxies_without_credentials_pass() -> None:
    for proxy in ("http://proxy:3128", "proxy:3128", "socks5://[::1]:9"):
        assert command_environment({"https_proxy": proxy})["https_proxy"] == proxy
    for proxy in ("http://me@proxy", "http://me:x@proxy:1", "http://[bad", "a@b"):
        assert "https_proxy" not in command_environment({"https_proxy": proxy})


def test_a_command_started_elsewhere_has_no_keys_either(tmp_path: Path) -> None:
    """From a program that has no loop of its own running, too."""
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits, env={**PLANTED, **USUAL})
    result = asyncio.run(runner.run("bash -c 'bash -c env'"))
    assert not [secret for secret in SECRETS if secret in result.output.text]
