"""`nca doctor`: check the installation, one line per finding, with what to do about each problem.

It writes nothing. It asks the ports of this machine as a start does; --probe asks always, and the configured endpoint.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nca.cli import flags
from nca.cli.printing import echo
from nca.cli.startup import load_settings, open_session_store, store_place
from nca.cli.store import MUCH_UNUSED_BYTES, VACUUM, disk_parts
from nca.config.paths import data_dir, project_config_file, user_config_file
from nca.errors import ConfigError, ModelNotFound, NcaError, StoreDamaged, install_command, sentence
from nca.humanize import byte_size, counted, local_time
from nca.safe_files import is_missing, paths_below
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions.sizes import StoreSizes

Level = Literal["ok", "warn", "fail"]

OLDEST_PYTHON = (3, 11)
LITELLM_FROM, LITELLM_BELOW = (1, 102), (1, 106)
"""The tested range, as in pyproject.toml."""
LITELLM_STOLEN = frozenset({"1.82.7", "1.82.8"})
"""Two compromised releases that sent credentials to an attacker."""
OLDEST_SQLITE = (3, 51, 3)
"""Earlier versions can lose data when a write-ahead log is reset."""
LEAST_FREE_BYTES = 10_000_000
"""Fewer are full after a few hours of a chat."""
LARGE_STORE_BYTES = 2_000_000_000
"""Some 20,000 sessions of 40 messages. A store of this size works, but its backups take room and time."""
_CHECK_SECONDS = 4.0
"""A database of 100 MB takes one second from a fast disk."""
_ENDPOINT_SECONDS = 2.0
"""Longer than for local ports, because the endpoint may be remote."""
_STYLES = {"ok": "added", "warn": "notice", "fail": "failure"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `fail`: nca does not work; `warn`: something useful is missing."""

    name: str
    status: Level
    detail: str
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: ok and the findings.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask local ports, and the configured endpoint, for their models.")
    ] = False,
) -> int:
    """Check the installation: Python, settings, data, keys (names only), models. Exits 1 if something is broken."""
    findings = list(_findings(probe=probe))
    is_ok = all(finding.status != "fail" for finding in findings)
    if as_json:
        echo(json.dumps({"ok": is_ok, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            _show(finding)
    return 0 if is_ok else 1


def _show(finding: Finding) -> None:
    from nca.terminal.render.theme import styled

    head = f"{finding.status:<4}  {finding.name:<12} "
    line = f"{head}{one_line(f'{finding.detail} {finding.advice}')}"
    flags.say(line, hang=len(head), mark=styled(finding.status, _STYLES[finding.status]))


def _findings(*, probe: bool) -> Iterator[Finding]:
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "python": _python,
        "litellm": _litellm,
        "prices": _prices,
        "sqlite": _sqlite,
        "settings": _settings,
        "data": _data,
        "database": _database,
        "not stored": _spools,
        "keys": _keys,
        "servers": partial(_servers, probe=probe),
        "embedded": _runtime,
        "weights": _weights,
        "model": partial(_model, probe=probe),
    }
    said = set[str]()
    for name, check in checks.items():
        try:
            yield from check()
        except NcaError as error:
            if str(error) not in said:  # settings that cannot be read stop several checks
                yield Finding(name, "fail", sentence(error.message), error.advice)
            said.add(str(error))


def _python() -> Iterator[Finding]:
    version = f"{_dotted(sys.version_info[:3])}, {sys.executable}"
    if sys.version_info >= OLDEST_PYTHON:
        yield Finding("python", "ok", version)
    else:
        yield Finding("python", "fail", version, f"nca needs Python {_dotted(OLDEST_PYTHON)} or newer.")
    yield Finding("nca", "ok", f"{_version('nca') or 'running from source'}, {Path(__file__).parents[1]}")


def _litellm() -> Iterator[Finding]:
    version = _version("litellm")
    tested = f"{_dotted(LITELLM_FROM)} to below {_dotted(LITELLM_BELOW)}"
    if not version:
        yield Finding("litellm", "fail", "is not installed.", f"To install it: {install_command('litellm')}")
    elif version in LITELLM_STOLEN:
        yield Finding("litellm", "fail", f"{version} steals credentials.", "Uninstall it and replace your API keys.")
    elif not LITELLM_FROM <= _numbers(version) < LITELLM_BELOW:
        yield Finding("litellm", "warn", f"{version} is outside the tested range ({tested}).")
    else:
        yield Finding("litellm", "ok", f"{version} (tested: {tested})")


def _prices() -> Iterator[Finding]:
    """Which price map is used, and how old it is."""
    from nca.models.fetched_prices import in_use

    yield Finding("prices", "ok", in_use(os.environ))


def _sqlite() -> Iterator[Finding]:
    # apsw has the version number of the SQLite that it bundles.
    version = _version("apsw")
    if not version:
        yield Finding("sqlite", "fail", "apsw is not installed.", f"To install it: {install_command('apsw')}")
    elif _numbers(version)[:3] < OLDEST_SQLITE:
        yield Finding(
            "sqlite", "fail", f"{version} is too old.", f"To update it: {install_command('--upgrade', 'apsw')}"
        )
    else:
        yield Finding("sqlite", "ok", f"{_dotted(_numbers(version)[:3])}, bundled with apsw {version}")


def _settings() -> Iterator[Finding]:
    files = (user_config_file(os.environ), project_config_file(Path.cwd()))
    from nca.agent.tool_selection import check_names, idle_rules

    loaded = load_settings({}, None)
    check_names(loaded)
    states = (f"{file} ({'no file, so it sets nothing' if is_missing(file) else 'read'})" for file in files)
    yield Finding("settings", "ok", ", ".join(states))
    for note in (*loaded.notes, *idle_rules(loaded)):
        yield Finding("settings", "warn", note)


def _data() -> Iterator[Finding]:
    """The directory that holds the sessions."""
    folder = store_place("").path.parent
    existing = next((one for one in (folder, *folder.parents) if os.path.exists(one)), folder)
    is_folder = os.path.isdir(existing)
    if is_folder and (free := shutil.disk_usage(existing).free) < LEAST_FREE_BYTES:
        advice = "Free some space, or sessions cannot be stored."
        yield Finding("data", "warn", f"{folder} is on a disk with {byte_size(free)} left.", advice)
    elif is_folder and os.access(existing, os.W_OK | os.X_OK):
        yield Finding("data", "ok", f"{folder}{'' if existing == folder else ' (not created yet)'}")
    else:
        advice = "Sessions would be kept in memory only. Set NCA_HOME to a writable folder."
        yield Finding("data", "fail", f"{folder} is not writable.", advice)


def _database() -> Iterator[Finding]:
    try:
        path, url = store_place()
    except ConfigError:  # reported by _data
        return
    if url:
        yield _postgres(url)
        return
    if is_missing(path):
        yield Finding("database", "ok", "not created yet")
        return
    with open_session_store(read_only=True) as store:
        count, sizes = len(store.list(None)), store.sizes()
    detail = f"{path} ({counted(count, 'session')}, {byte_size(sizes.total)})"
    checked = _checked(path)
    if sizes.total < LARGE_STORE_BYTES:
        yield Finding("database", "ok", f"{detail}, {checked}")
    else:
        advice = (
            "Nothing is removed by itself. To archive what you have not used for 90 days: nca config set"
            " session.retention_days 90. `nca sessions archive ID` archives one session, `nca sessions delete ID`"
            " deletes one."
        )
        yield Finding("database", "warn", f"{detail} is large; {checked}.", advice)
    yield _disk(sizes)


def _checked(path: Path) -> str:
    """What is known of the pages of the sessions and of the changed files. Raises StoreDamaged."""
    from nca.sessions.corruption import is_checked
    from nca.sessions.paths import FILES, size_of

    ends = time.monotonic() + _CHECK_SECONDS
    files = [one for one in (path, path.with_name(FILES)) if size_of(one)]
    if all(is_checked(one, max(ends - time.monotonic(), 0)) for one in files):
        return "every page is whole"
    return f"not checked to the end: that takes longer than {_CHECK_SECONDS:g} seconds"


def _postgres(url: str) -> Finding:
    """The store that `session.store` names: whether it answers, its versions, and how fast it is."""
    from nca.sessions.postgres import facts

    found = facts(url)
    detail = (
        f"{found.where}: PostgreSQL {found.version}, schema {found.schema} of {found.newest_schema},"
        f" {counted(found.sessions, 'session')}, an answer takes {found.seconds * 1000:.1f} ms"
    )
    if found.schema < found.newest_schema:
        return Finding("database", "warn", f"{detail}.", "The next start prepares it, as `nca store init` does.")
    return Finding("database", "ok", detail)


def _spools() -> Iterator[Finding]:
    """Messages that could not be stored while a database was unreachable."""
    from nca.sessions.postgres import spool

    used = store_place().path
    for folder in sorted(paths_below(data_dir(os.environ), "postgresql-*")):
        advice = "An open session stores them once the database can be reached; otherwise the next start does."
        if folder != used.parent:
            advice = "session.store names another database now. The next start with their own database stores them."
        for file, session_id, _ in spool.left_in(folder / used.name):
            try:
                kept = spool.messages_in(file)
                since = kept[0].at if kept else file.stat().st_mtime
            except FileNotFoundError:  # stored meanwhile
                continue
            except StoreDamaged as error:
                detail = f"session {session_id}: {file} cannot be stored. {error.message}."
                yield Finding("not stored", "warn", detail, "Repair the line, or delete it and those after it.")
                continue
            what = f"{counted(len(kept), 'message')} since {local_time(since)}"
            yield Finding("not stored", "warn", f"session {session_id}: {what}, in {file}.", advice)


def _disk(sizes: StoreSizes) -> Finding:
    """The disk use of each part, largest first."""
    parts = disk_parts(sizes)
    total = byte_size(sum(part.size_bytes for part in parts))
    detail = f"{total}: {', '.join(f'{part.name} {byte_size(part.size_bytes)}' for part in parts)}."
    if sizes.unused < MUCH_UNUSED_BYTES:
        return Finding("disk", "ok", detail, "`nca sessions usage` shows more.")
    return Finding("disk", "warn", detail, f"`{VACUUM}` gives back what is unused, while no other nca runs.")


def _keys() -> Iterator[Finding]:
    """The names of the API key variables that are set, never their values."""
    from nca.models import keys
    from nca.models.providers import PROVIDERS

    variables = [variable for facts in PROVIDERS.values() for variable in facts.key_variables]
    present = [variable for variable in dict.fromkeys(variables) if os.environ.get(variable, "").strip()]
    stored = keys.stored(os.environ)
    named = ", ".join(f"{one} (stored)" if stored.get(one) == os.environ[one] else one for one in present)
    yield Finding("keys", "ok", named or "none in the environment, and none stored (nca keys add)")


def _servers(*, probe: bool) -> Iterator[Finding]:
    from nca.models.providers import LOCAL_SERVERS, find_servers

    titles = ", ".join(server.title for server in LOCAL_SERVERS)
    if not probe:
        yield Finding("servers", "ok", f"asked only if no key or endpoint is set ({titles}). --probe asks them now.")
        return
    found = find_servers()
    for one in found:
        yield Finding("servers", "ok", f"{one.server.title} at {one.server.api_base}: {', '.join(one.models[:5])}")
    if not found:
        yield Finding("servers", "ok", f"none is running ({titles})")


def _runtime() -> Iterator[Finding]:
    """The embedded model's runtime."""
    import ctypes

    from nca.models.embedded.known import RUNTIME, runtime_command
    from nca.models.embedded.weights import has_runtime

    if not has_runtime():
        yield Finding("embedded", "warn", "The runtime is not installed.", f"To install it: {runtime_command()}")
        return
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libgomp.so.1")
        except OSError:
            advice = "On Debian and Ubuntu: apt install libgomp1"
            yield Finding("embedded", "warn", "libgomp.so.1 is missing.", advice)
            return
    yield Finding("embedded", "ok", f"models on this machine can run: {RUNTIME} {_version(RUNTIME)} is installed")


def _weights() -> Iterator[Finding]:
    """The embedded models that are downloaded, completely or in part."""
    from nca.models.embedded import weights

    names = weights.installed()
    parts = sorted(part.name.removesuffix(".gguf.part") for part in paths_below(weights.models_dir(), "*.gguf.part"))
    partial_downloads = f"; incomplete: {', '.join(parts)}" if parts else ""
    if names:
        yield Finding("weights", "ok", f"{', '.join(names)}{partial_downloads}")
    else:
        advice = f"You need one only without a provider or server: `nca models get` downloads {weights.recommended()}."
        yield Finding("weights", "warn", f"no embedded model is downloaded{partial_downloads}.", advice)


def _model(*, probe: bool) -> Iterator[Finding]:
    """The model that `nca loop` would use, and whether it has all that it needs, as far as is known without --probe."""
    from nca.models.choose import checked_endpoint, choose, require_usable
    from nca.models.providers import SPEAKS_OPENAI, key_of, provider_of

    try:
        loaded = load_settings({}, None, remembers=True)
        settings = loaded.settings.model
        try:
            base, _ = checked_endpoint("openai", settings.api_base, os.environ)
        except ConfigError as error:
            yield Finding("model", "fail", error.message, error.advice)
            return
        if base and not settings.name:
            unasked = Finding("model", "ok", f"from {base} (--probe lists its models)")
            yield _endpoint(base, key_of("openai", os.environ)[1]) if probe else unasked
            return
        choice = choose(settings, os.environ, named_by=loaded.origin("model.name"))
    except NcaError:
        # Another check has reported it.
        return
    require_usable(choice, os.environ)
    yield Finding("model", "ok", f"{choice.model}: {choice.why}")
    if probe and choice.api_base and provider_of(choice.model) in SPEAKS_OPENAI:
        yield _endpoint(choice.api_base, choice.api_key, wanted=choice.model)


def _endpoint(base: str, key: str, *, wanted: str = "") -> Finding:
    """The models that the configured endpoint lists, and whether the one that is wanted is among them."""
    from http.client import HTTPException

    from nca.models.certificates import refused_encryption
    from nca.models.lookup import look_up
    from nca.models.providers import read_models

    about = "endpoint" if wanted else "model"
    advice = "Check that it is running and the address (model.api_base, OPENAI_API_BASE)"
    advice += "." if wanted else ", or name a model with -m."
    try:
        listed = read_models(f"{base.rstrip('/')}/models", api_key=key, seconds=_ENDPOINT_SECONDS)
    except (OSError, HTTPException, ValueError) as error:
        if refused := refused_encryption([error], base):
            return Finding(about, "fail", *refused)
        said = one_line(str(error) or type(error).__name__)
        return Finding(about, "warn", f"{base} lists no models ({said}).", advice)
    if not listed:
        return Finding(about, "warn", f"{base} lists no models.", advice)
    offers = f"{base} offers {', '.join(list(listed)[:5])}"
    try:
        if wanted:
            look_up(wanted, base, key)
    except ModelNotFound as error:
        return Finding(about, "warn", error.message, error.advice)
    return Finding(about, "ok", offers)


def _version(distribution: str) -> str:
    from nca.models.fetched_prices import version_of

    return version_of(distribution)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (1, 105, 3)."""
    return tuple(map(int, takewhile(str.isdigit, version.split("."))))


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
