"""What `make loop` runs: weights are downloaded before any package is installed, and the chat opens where DIR says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from nca.models.embedded.known import SMOLLM
from tests.models.embedded.wheels import tiny_model, wheel_of

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


class Index(SimpleHTTPRequestHandler):
    """A package index over a folder, which answers no page before two programs ask for one."""

    met: threading.Barrier

    def do_GET(self) -> None:
        if self.path.endswith("/"):
            try:
                self.met.wait(timeout=60)
            except threading.BrokenBarrierError:
                self.send_error(500, "nobody else asks")
                return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "index"
    folder.mkdir()
    Index.met = threading.Barrier(2)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        yield folder
        server.shutdown()


def lock_of(index: Path) -> str:
    """A lock of two packages, each on a page of its own, as indexes have them."""
    parts = tiny_model(index, parts=2).parts
    for number, part in enumerate(parts, start=1):
        (index / part.distribution).mkdir()
        wheel_of(index, number).rename(index / part.distribution / wheel_of(index, number).name)
    return "".join(f"{part.distribution}=={part.version} \\\n    --hash=sha256:{part.sha256}\n" for part in parts)


def test_packages_are_fetched_by_several_pips_at_once(set_up: Any, index: Path, tmp_path: Path) -> None:
    progress = set_up.Progress(2)
    files = set_up.download(progress, sys.executable, lock_of(index), tmp_path)
    assert [Path(file).name for file in files] == [wheel_of(index, number).name for number in (1, 2)]
    assert progress.seen == {"tiny-part1", "tiny-part2"}


def test_a_package_with_another_hash_ends_the_set_up(
    set_up: Any, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = lock_of(index)
    wrong = lock[: lock.rindex(":") + 1] + "0" * 64 + "\n"
    with pytest.raises(SystemExit):
        set_up.download(set_up.Progress(2), sys.executable, wrong, tmp_path)
    assert "DO NOT MATCH THE HASHES" in capsys.readouterr().err


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "set_up.py"), str(tmp_path / "venv"), "all"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Setting up ")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert said == "The set-up was stopped; the same command continues it.\n"


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
