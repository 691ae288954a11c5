"""Locations of the user's settings, the project's settings, the data directory, and the cache.

`NCA_HOME` moves all but the project's settings to one folder. Otherwise the XDG variables apply, then the platform's
convention; on every Unix the user's settings are in ~/.config/nca, as usual for terminal tools.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nca.errors import ConfigError, UsageError
from nca.humanize import kind_name

FILE_NAME = "config.toml"
PROJECT_FOLDER = ".nca"
PathLike = str | os.PathLike[str]


def read_path(value: Any, name: str) -> Path:
    """A path that a program passes. Raises UsageError."""
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{name}: expected a path, found {kind_name(value)}.")
    return Path(os.fspath(value))


def read_paths(values: Any, name: str) -> list[Path]:
    """Several paths. Raises UsageError; also for one path, whose characters would each be read as one."""
    if isinstance(values, str | os.PathLike) or not isinstance(values, Iterable):
        raise UsageError(f"{name}: expected a list of paths, found {kind_name(values)}.")
    return [read_path(value, name) for value in values]


def user_config_file(env: Mapping[str, str]) -> Path:
    """The user's settings file, which may not exist."""
    return (_nca_home(env) or _folder(env, "config", ".config", ("win32",))) / FILE_NAME


def data_dir(env: Mapping[str, str]) -> Path:
    """The folder for sessions and weights, which may not exist."""
    home = _nca_home(env)
    return home / "data" if home else _folder(env, "data", ".local/share", ("win32", "darwin"))


class StorePlace(NamedTuple):
    """Where the sessions are: in the file, or in PostgreSQL. Then this machine's own files are beside `path`."""

    path: Path
    url: str = ""


def place_of_store(env: Mapping[str, str], url: str) -> StorePlace:
    """`url`: the setting `session.store`."""
    folder = data_dir(env)
    if not url:
        return StorePlace(folder / "sessions.db")
    from urllib.parse import parse_qs, urlsplit

    # Each database has a folder of its own: what no session of it refers to is deleted there.
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", [""])[0]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"postgresql-{host}{parts.path}")
    return StorePlace(folder / name / "sessions.db", url)


def keys_file(env: Mapping[str, str]) -> Path:
    """The file of API keys that the person stored, which may not exist."""
    return data_dir(env) / "keys.json"


def cache_dir(env: Mapping[str, str]) -> Path:
    """The folder for what can be made again, which may not exist."""
    home = _nca_home(env)
    return home / "cache" if home else _folder(env, "cache", ".cache", ("win32", "darwin"))


def workspace_file(store: Path, root: Path, suffix: str) -> Path:
    """A file about one workspace (its root is a real path), in `locks` beside the store. It may not exist.

    suffix  `files`: locks out other processes that change files; `rewind`: exists while files go back and after a crash
    """
    # Imported here: most commands have no use for it.
    from hashlib import sha256

    return store.parent / "locks" / f"{sha256(os.fsencode(root)).hexdigest()[:16]}.{suffix}"


def project_config_file(directory: Path) -> Path:
    """The settings file of the project in `directory`."""
    return directory / PROJECT_FOLDER / FILE_NAME


def config_file_above(directory: Path) -> Path | None:
    """The settings file of a folder above, up to the top of the repository, if `directory` has none. It is not read."""
    around = (directory, *directory.parents)
    top = next((levels for levels, folder in enumerate(around) if os.path.lexists(folder / ".git")), 0)
    own, *above = map(project_config_file, around[: top + 1])
    return None if os.path.lexists(own) else next(filter(os.path.isfile, above), None)


def _folder(env: Mapping[str, str], kind: str, usual: str, own: Sequence[str]) -> Path:
    """nca's folder of a kind: by its XDG variable, by the platform's convention on one of `own`, else as `usual`."""
    if base := _absolute(env.get(f"XDG_{kind.upper()}_HOME", "")):
        return base / "nca"
    if sys.platform in own:
        import platformdirs

        return Path(getattr(platformdirs, f"user_{kind}_path")("nca", appauthor=False))
    return user_home(env) / usual / "nca"


def _nca_home(env: Mapping[str, str]) -> Path | None:
    text = env.get("NCA_HOME", "")
    if not text:
        return None
    if "\0" in text:
        raise ConfigError("NCA_HOME is not a path.")
    path = Path(text)
    if text.startswith("~"):
        path = user_home(env).joinpath(*path.parts[1:]) if path.parts[0] == "~" else path.expanduser()
    return path.absolute()


def _absolute(text: str) -> Path | None:
    """The path, unless it is relative: the XDG specification says to ignore those."""
    return Path(text) if text and Path(text).is_absolute() else None


def user_home(env: Mapping[str, str]) -> Path:
    """The user's home directory. Raises ConfigError if there is none."""
    if base := _absolute(env.get("HOME", "")):
        return base
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigError(
            "This account has no home directory.", advice="Set NCA_HOME to a folder for nca's files."
        ) from error
