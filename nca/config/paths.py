"""Locations of the user's settings, the project's settings, the data directory, and the cache.

`NCA_HOME` moves all but the project's settings to one folder. Otherwise the XDG variables apply, then the platform's
convention; on every Unix the user's settings are in ~/.config/nca, as usual for terminal tools.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from nca.errors import ConfigError

FILE_NAME = "config.toml"
PROJECT_FOLDER = ".nca"


def user_config_file(env: Mapping[str, str]) -> Path:
    """The user's settings file, which may not exist."""
    if home := _nca_home(env):
        return home / FILE_NAME
    if base := _absolute(env.get("XDG_CONFIG_HOME", "")):
        return base / "nca" / FILE_NAME
    if sys.platform == "win32":
        import platformdirs

        return platformdirs.user_config_path("nca", appauthor=False) / FILE_NAME
    return user_home(env) / ".config" / "nca" / FILE_NAME


def data_dir(env: Mapping[str, str]) -> Path:
    """The folder for sessions and weights, which may not exist."""
    if home := _nca_home(env):
        return home / "data"
    if base := _absolute(env.get("XDG_DATA_HOME", "")):
        return base / "nca"
    if sys.platform in ("win32", "darwin"):
        import platformdirs

        return platformdirs.user_data_path("nca", appauthor=False)
    return user_home(env) / ".local" / "share" / "nca"


def cache_dir(env: Mapping[str, str]) -> Path:
    """The folder for what can be made again, which may not exist."""
    if home := _nca_home(env):
        return home / "cache"
    if base := _absolute(env.get("XDG_CACHE_HOME", "")):
        return base / "nca"
    if sys.platform in ("win32", "darwin"):
        import platformdirs

        return platformdirs.user_cache_path("nca", appauthor=False)
    return user_home(env) / ".cache" / "nca"


def workspace_file(store: Path, root: Path, suffix: str) -> Path:
    """A file about one workspace, whose root is a real path, in `locks` beside the store. It may not exist.

    suffix  `files`: the lock of who changes files there; `rewind`: is there while files go back, and after a crash
    """
    # Imported here: most commands have no use for it.
    from hashlib import sha256

    return store.parent / "locks" / f"{sha256(os.fsencode(root)).hexdigest()[:16]}.{suffix}"


def project_config_file(directory: Path) -> Path:
    """The settings file of the project in `directory`."""
    return directory / PROJECT_FOLDER / FILE_NAME


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
