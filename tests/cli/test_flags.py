"""Flags that several commands share: declared once, and each sets the setting that its name says."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

from nca.cli.commands import loop
from nca.cli.compact import compact
from nca.cli.run import run
from nca.cli.startup import settings_of
from nca.config.layers import FLAGS, load
from nca.config.schema import KEYS

OWN = {"session", "as_json"}
"""Of the same name and another meaning: `nca loop --resume ID` is an argument; --json says what its object holds."""


def hints(command: Callable[..., Any]) -> dict[str, Any]:
    parameters = signature(command, eval_str=True).parameters
    return {name: one.annotation for name, one in parameters.items() if name not in OWN}


@pytest.mark.parametrize(("one", "other", "own"), [(loop, run, set()), (loop, compact, {"model"})])
def test_what_two_commands_share_is_declared_once(
    one: Callable[..., Any], other: Callable[..., Any], own: set[str]
) -> None:
    first, second = hints(one), hints(other)
    shared = first.keys() & second.keys() - own
    assert len(shared) >= 2
    # Two declarations are never equal, even with the same words.
    assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


def test_every_flag_sets_its_setting_and_says_so() -> None:
    parameters = {flag.removeprefix("--").replace("-", "_"): key for key, flag in FLAGS.items()}
    known = {name for command in (loop, run, compact) for name in hints(command)}
    assert parameters.keys() <= known
    values = {"profile": "nexora", "permission": "plan", "stages": "prune", "compact_threshold": "70%", "target": "0.4"}
    values |= {"max_steps": "7", "fit": "refuse"}
    switches = {"disable_compaction": True, "plain": True}
    settings = settings_of(**{name: values.get(name, "4000") for name in parameters} | switches)
    assert settings.keys() == FLAGS.keys()
    loaded = load(project=None, env={"NCA_HOME": "/nonexistent"}, flags=settings)
    for key, flag in FLAGS.items():
        assert loaded.origin(key) == f"flag {flag}"
        wanted = "off" if key == "context.auto" else KEYS[key].value_type.read(settings[key])
        assert loaded.value(key) == wanted


def test_a_flag_that_is_not_given_overrides_nothing() -> None:
    given = settings_of(model=None, compact_threshold=None)
    assert set(given.values()) == {None}
    env = {"NCA_HOME": "/nonexistent", "NCA_CONTEXT__AUTO": "preview"}
    assert load(project=None, env=env, flags=given).value("context.auto") == "preview"
