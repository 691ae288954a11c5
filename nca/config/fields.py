"""How the schema writes a setting down: a dataclass field that knows its kind, meaning and unit."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from nca.config.value_types import Kind


def setting(default: Any, kind: Kind, about: str, *, unit: str = "", trusted: bool = False, acts: bool = False) -> Any:
    """One setting.

    trusted  a project's own file may not set it (it could run things or redirect keys)
    acts     a project's own file sets it only where the person trusts the project (nca.config.trust)
    """
    meta = {"kind": kind, "about": about, "unit": unit, "trusted": trusted, "acts": acts}
    return field(default=default, metadata=meta)


def table(kind: type, about: str) -> Any:
    """A table of settings."""
    return field(default_factory=kind, metadata={"about": about})
