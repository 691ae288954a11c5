from __future__ import annotations

from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.models.embedded import weights
from nca.models.embedded.known import KNOWN, QWEN, SMOLLM, KnownModel

MUCH = 100_000_000_000


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"NCA_HOME": str(tmp_path)}


def put(env: dict[str, str], model: KnownModel, size: int | None = None) -> Path:
    """A sparse file of the right size."""
    folder = weights.models_dir(env)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / model.filename
    with path.open("wb") as file:
        file.truncate(model.size_bytes if size is None else size)
    return path


def test_nothing_is_installed_in_an_empty_home(env: dict[str, str]) -> None:
    assert weights.installed(env) == []
    assert weights.path_of(QWEN.name, env) is None


def test_only_a_file_of_the_right_size_is_installed(env: dict[str, str]) -> None:
    put(env, SMOLLM, SMOLLM.size_bytes - 1)
    assert weights.installed(env) == []
    path = put(env, SMOLLM)
    assert weights.path_of("embedded/smollm2-135m", env) == path
    put(env, QWEN)
    assert weights.installed(env) == [QWEN.name, SMOLLM.name]


@pytest.mark.parametrize(
    ("free_disk", "available_ram", "expected"),
    [
        (MUCH, MUCH, QWEN),
        (3_400_000_000, MUCH, SMOLLM),
        (MUCH, 2_900_000_000, SMOLLM),
    ],
)
def test_the_small_one_is_for_small_machines(
    env: dict[str, str], free_disk: int, available_ram: int, expected: KnownModel
) -> None:
    assert weights.recommended(env, free_disk=free_disk, available_ram=available_ram) == expected.name
    lacks = weights.shortage(env, free_disk=free_disk, available_ram=available_ram)
    assert ("are free, and it should have 3" in lacks) == (expected is SMOLLM)


def test_weights_that_are_here_need_no_disk(env: dict[str, str]) -> None:
    put(env, QWEN)
    assert weights.recommended(env, free_disk=0, available_ram=MUCH) == QWEN.name
    assert weights.recommended(env, free_disk=0, available_ram=0) == SMOLLM.name


def test_a_model_that_the_memory_does_not_hold_has_no_room(env: dict[str, str]) -> None:
    put(env, SMOLLM)
    assert weights.missing_room(SMOLLM.name, env, available_ram=SMOLLM.ram_bytes) == ""
    lacks = weights.missing_room(SMOLLM.name, env, available_ram=200_000_000)
    assert lacks == "200 MB of memory are free, and it takes 370 MB"


def test_the_environment_decides(env: dict[str, str]) -> None:
    wanted = env | {"NCA_EMBEDDED": "smollm2-135m"}
    assert weights.recommended(wanted, free_disk=MUCH, available_ram=MUCH) == SMOLLM.name
    assert weights.known("recommended", wanted) is SMOLLM
    either = env | {"NCA_EMBEDDED": "recommended"}
    assert weights.recommended(either, free_disk=MUCH, available_ram=MUCH) == QWEN.name
    with pytest.raises(UsageError, match="NCA_EMBEDDED: There is no embedded model 'gpt'"):
        weights.recommended(env | {"NCA_EMBEDDED": "gpt"})


def test_this_machine_gets_an_answer(env: dict[str, str]) -> None:
    assert weights.recommended(env) in KNOWN
