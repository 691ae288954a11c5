"""Settings: schema, layers, and the origin of each value.

Names are loaded when first used, so that importing the package is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.config.layers import load as load
    from nca.config.loaded import LoadedSettings as LoadedSettings
    from nca.config.loaded import defaults as defaults
    from nca.config.saving import save_value as save_value
    from nca.config.schema import KEYS as KEYS
    from nca.config.schema import Settings as Settings

__all__ = ["KEYS", "LoadedSettings", "Settings", "defaults", "load", "save_value"]

_HOMES = {
    "KEYS": "schema",
    "LoadedSettings": "loaded",
    "Settings": "schema",
    "defaults": "loaded",
    "load": "layers",
    "save_value": "saving",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"nca.config.{_HOMES[name]}"), name)
