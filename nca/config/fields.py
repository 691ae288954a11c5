"""Define one setting: a dataclass field with its type, default, unit and description."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from nca.config.value_types import ValueType


def setting(
    default: Any,
    value_type: ValueType,
    about: str,
    *,
    unit: str = "",
    user_only: bool = False,
) -> Any:
    """A dataclass field for one setting.

    user_only  a project's own file may never set it, because it could run programs or redirect keys; what else such a
               file may set is in nca.config.harmless
    """
    meta = {
        "value_type": value_type,
        "about": about,
        "unit": unit,
        "user_only": user_only,
    }
    return field(default=default, metadata=meta)


def table(settings: type, about: str) -> Any:
    """A dataclass field for a table of settings."""
    return field(default_factory=settings, metadata={"about": about})
