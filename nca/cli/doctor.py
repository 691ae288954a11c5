"""`nca doctor`: what was found on this machine, one line each, and what to do about what is wrong.

Nothing is written, and no connection is opened; with --probe to the usual ports of this machine, and to an endpoint
that is set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Annotated, Literal

import typer

Status = Literal["ok", "warn", "fail"]

OLDEST_PYTHON = (3, 11)
LITELLM_FROM, LITELLM_BELOW = (1, 102), (1, 106)
"""The tested range; pyproject.toml says the same."""
LITELLM_STOLEN = frozenset({"1.82.7", "1.82.8"})
"""These two releases sent credentials away."""
OLDEST_SQLITE = (3, 51, 3)
"""Older ones can lose data when a write-ahead log is reset."""
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `fail`: nca does not work; `warn`: something is missing that one may want."""

    name: str
    status: Status
    detail: str
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: ok, and the findings.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask this machine's ports, and an endpoint that is set, for models.")
    ] = False,
) -> int:
    """What was found: Python, settings, data, keys (names only), models. Exits 1 if something is broken."""
    findings = list(_examine(probe=probe))
    is_ok = all(finding.status != "fail" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": is_ok, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            _show(finding)
    return 0 if is_ok else 1


def _show(finding: Finding) -> None:
    from nca.terminal.render.sanitize import one_line

    mark = typer.style(f"{finding.status:<4}", fg=_STYLES[finding.status])
    advice = f" {finding.advice}" if finding.advice else ""
    typer.echo(f"{mark}  {finding.name:<12} {one_line(finding.detail + advice)}")


def _examine(*, probe: bool) -> Iterator[Finding]:
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _litellm,
        _sqlite,
        _settings,
        _data,
        _keys,
        lambda: _servers(probe=probe),
        _embedded,
        lambda: _model(probe=probe),
    )
    for check in checks:
        yield from check()


def _python() -> Iterator[Finding]:
    version = ".".join(str(number) for number in sys.version_info[:3])
    is_new = sys.version_info >= OLDEST_PYTHON
    wanted = "" if is_new else f"nca needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer."
    yield Finding("python", "ok" if is_new else "fail", f"{version}, {sys.executable}", wanted)
    version = _version("nca")
    yield Finding("nca", "ok", f"{version or 'not installed, run from its source'}, {Path(__file__).parents[1]}")


def _litellm() -> Iterator[Finding]:
    version = _version("litellm")
    tested = f"{_dotted(LITELLM_FROM)} up to, not including, {_dotted(LITELLM_BELOW)}"
    if not version:
        yield Finding("litellm", "fail", "is not installed.", "Install nca again with pip.")
    elif version in LITELLM_STOLEN:
        yield Finding("litellm", "fail", f"{version} sends credentials away.", "Remove it, and change your keys.")
    elif not LITELLM_FROM <= _numbers(version) < LITELLM_BELOW:
        yield Finding("litellm", "warn", f"{version} is outside the tested range ({tested}).")
    else:
        yield Finding("litellm", "ok", f"{version} (tested: {tested})")


def _sqlite() -> Iterator[Finding]:
    # apsw is numbered like the SQLite that it brings.
    version = _version("apsw")
    if not version:
        yield Finding("sqlite", "fail", "apsw is not installed.", "Install nca again with pip.")
    elif _numbers(version)[:3] < OLDEST_SQLITE:
        yield Finding("sqlite", "fail", f"{version} is too old.", f"Update apsw to {_dotted(OLDEST_SQLITE)} or newer.")
    else:
        yield Finding("sqlite", "ok", f"{_dotted(_numbers(version)[:3])}, brought by apsw {version}")


def _settings() -> Iterator[Finding]:
    from nca.cli.opening import load_settings
    from nca.config.paths import project_config_file, user_config_file
    from nca.errors import ConfigError

    try:
        files = (user_config_file(os.environ), project_config_file(Path.cwd()))
        loaded = load_settings({}, None)
    except ConfigError as error:
        yield Finding("settings", "fail", error.message, error.advice)
        return
    said = ", ".join(f"{file} ({'read' if file.exists() else 'none'})" for file in files)
    yield Finding("settings", "ok", said)
    for note in loaded.notes:
        yield Finding("settings", "warn", note)


def _data() -> Iterator[Finding]:
    """The data directory and the database in it."""
    from nca.cli.opening import store_path
    from nca.errors import NcaError, StoreError
    from nca.sessions.store import Store

    try:
        path = store_path()
    except NcaError as error:
        yield Finding("data", "fail", error.message, error.advice)
        return
    folder = path.parent
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    is_usable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    if not is_usable:
        advice = "Sessions would be kept in memory only; set NCA_HOME to a folder that can be written."
        yield Finding("data", "fail", f"{folder} cannot be written.", advice)
    else:
        yield Finding("data", "ok", f"{folder}{'' if there == folder else ' (not made yet)'}")
    if not path.exists():
        yield Finding("database", "ok", "none yet")
        return
    try:
        with Store.open(path, read_only=True) as store:
            count = len(store.list(limit=1_000_000))
    except StoreError as error:
        yield Finding("database", "fail", error.message, error.advice)
        return
    yield Finding("database", "ok", f"{path} ({count} sessions, {path.stat().st_size:,} bytes)")


def _keys() -> Iterator[Finding]:
    """Which of the providers' variables are set. Their values are nobody's business."""
    from nca.models.providers import PROVIDERS

    variables = [variable for facts in PROVIDERS.values() for variable in facts.key_variables]
    present = [variable for variable in dict.fromkeys(variables) if os.environ.get(variable, "").strip()]
    yield Finding("keys", "ok", ", ".join(present) or "none in the environment")


def _servers(*, probe: bool) -> Iterator[Finding]:
    from nca.models.local_servers import LOCAL_SERVERS, find_servers

    titles = ", ".join(server.title for server in LOCAL_SERVERS)
    if not probe:
        yield Finding("servers", "ok", f"not asked ({titles}); --probe asks")
        return
    found = find_servers()
    for one in found:
        yield Finding("servers", "ok", f"{one.server.title} at {one.server.api_base}: {', '.join(one.models[:5])}")
    if not found:
        yield Finding("servers", "ok", f"none answers ({titles})")


def _embedded() -> Iterator[Finding]:
    """The embedded model's runtime, and the weights that are here or half here."""
    from nca.errors import NcaError
    from nca.models.embedded import weights

    yield _runtime()
    try:
        names = weights.installed()
        folder = weights.models_dir()
        wanted = weights.recommended()
    except NcaError as error:
        yield Finding("weights", "fail", error.message, error.advice)
        return
    begun = sorted(part.name.removesuffix(".gguf.part") for part in folder.glob("*.gguf.part"))
    advice = "" if names else f"nca models get fetches them (recommended here: {wanted})."
    detail = ", ".join(names) or "none"
    detail += f"; begun: {', '.join(begun)}" if begun else ""
    yield Finding("weights", "ok" if names else "warn", detail + ("." if advice else ""), advice)


def _runtime() -> Finding:
    import ctypes

    if util.find_spec("xllamacpp") is None:
        return Finding("embedded", "warn", "its runtime is not installed.", "pip install 'nca[local]' brings it.")
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libgomp.so.1")
        except OSError:
            return Finding("embedded", "warn", "libgomp.so.1 is missing.", "Debian and Ubuntu: apt install libgomp1.")
    return Finding("embedded", "ok", f"xllamacpp {_version('xllamacpp')}")


_ENDPOINT_SECONDS = 2.0
"""It may be far, unlike this machine's ports."""


def _endpoint(base: str) -> Finding:
    """What an endpoint of the person's own lists."""
    from nca.models.local_servers import list_models
    from nca.models.providers import key_of

    key = key_of("openai", os.environ)[1]
    if listed := list_models(f"{base.rstrip('/')}/models", api_key=key, seconds=_ENDPOINT_SECONDS):
        return Finding("model", "ok", f"what the endpoint {base} offers: {', '.join(listed[:5])}")
    advice = "Is it running, and the address right (model.api_base, OPENAI_API_BASE)? Else name a model with -m."
    return Finding("model", "warn", f"the endpoint {base} lists no models.", advice)


def _model(*, probe: bool) -> Iterator[Finding]:
    """What `nca loop` would talk to, as far as that can be told, without --probe without asking anyone."""
    from nca.cli.opening import load_settings
    from nca.errors import NcaError
    from nca.models.choose import choose

    try:
        settings = load_settings({}, None).settings.model
        base = settings.api_base or os.environ.get("OPENAI_API_BASE", "") or os.environ.get("OPENAI_BASE_URL", "")
        if base and not settings.name:
            yield _endpoint(base) if probe else Finding("model", "ok", f"what the endpoint {base} offers; --probe asks")
            return
        choice = choose(settings, os.environ, servers=())
    except NcaError:
        # Said by the check of what is wrong.
        return
    yield Finding("model", "ok", f"{choice.model}: {choice.why}")


def _version(distribution: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (1, 105, 3)."""
    numbers = []
    for piece in version.split("."):
        if not piece.isdigit():
            break
        numbers.append(int(piece))
    return tuple(numbers)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in numbers)
