"""What `make loop` runs: weights are downloaded before any package is installed, and the chat opens where DIR says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from nca.models.embedded.known import SMOLLM

ROOT = Path(__file__).parent.parent


@pytest.fixture
def set_up() -> Any:
    spec = spec_from_file_location("set_up", ROOT / "scripts" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the weights, and no index to download them from."""
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    monkeypatch.setenv("NCA_EMBEDDED", SMOLLM.name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    return folder


def test_weights_are_looked_up_by_the_standard_library_alone(set_up: Any, models: Path) -> None:
    os.truncate(os.open(models / SMOLLM.filename, os.O_CREAT | os.O_WRONLY, 0o600), SMOLLM.size_bytes)
    subprocess.run([sys.executable, "-I", "-S", "-c", set_up.FETCH_WEIGHTS, str(ROOT)], check=True)


def test_weights_that_cannot_be_had_do_not_stop_the_set_up(set_up: Any, models: Path) -> None:
    progress = set_up.Progress(3)
    with set_up.weights(progress):
        pass
    assert progress.is_installed
    assert not list(models.glob("*.gguf"))


@pytest.mark.parametrize("stage", ["downloading", "checking"])
def test_an_installation_that_fails_ends_the_download(
    set_up: Any, models: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    fetch = "import time; print('{} 1000000 2000000', flush=True); time.sleep(600)"
    monkeypatch.setattr(set_up, "FETCH_WEIGHTS", fetch.format(stage))
    progress = set_up.Progress(3)

    def fail_after_a_part() -> None:
        with set_up.weights(progress):
            while not progress.weights:
                time.sleep(0.01)
            raise SystemExit(1)

    with pytest.raises(SystemExit):
        fail_after_a_part()
    assert progress.weights == f", model: {stage} 1 of 2 MB"


def foreground(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "foreground.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_the_chat_opens_in_the_named_folder(tmp_path: Path) -> None:
    program = tmp_path / "where"
    program.write_text('#!/bin/sh\necho "$PWD $1"\n')
    program.chmod(0o700)
    (tmp_path / "a project").mkdir()
    done = foreground(str(tmp_path / "a project"), os.path.relpath(program, ROOT), "loop")
    assert done.stdout == f"{tmp_path}/a project loop\n"


def test_a_folder_that_there_is_not_is_one_line() -> None:
    done = foreground("no-such-folder", "true")
    assert (done.returncode, done.stderr) == (2, "DIR=no-such-folder: no such file or directory; name a folder.\n")
