"""Add and remove permission rules in the user's settings file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nca.config.document import read_document
from nca.config.saving import save_value
from nca.config.schema import KEYS
from nca.config.tables import PermissionRule
from nca.errors import ConfigError

RuleList = Literal["permissions.allow", "permissions.ask", "permissions.deny"]
ALLOW: RuleList = "permissions.allow"
ASK: RuleList = "permissions.ask"
DENY: RuleList = "permissions.deny"


def add_rule(file: Path, name: RuleList, rule: PermissionRule) -> None:
    """Add a rule. Raises ConfigError if the file cannot be read or written; it is then unchanged."""
    rules = _rules(file, name)
    if rule not in rules:
        save_value(file, name, [*rules, rule], is_users_own=True)


def remove_rule(file: Path, name: RuleList, rule: PermissionRule) -> bool:
    """Remove a rule; False if there was none. Raises ConfigError like `add_rule`."""
    rules = _rules(file, name)
    if rule not in rules:
        return False
    save_value(file, name, [one for one in rules if one != rule], is_users_own=True)
    return True


def _rules(file: Path, name: RuleList) -> tuple[PermissionRule, ...]:
    """The rules in the file, without other layers."""
    document = read_document(file.resolve())
    section, _, key = name.partition(".")
    table = document.data.get(section, {}) if document is not None else {}
    raw = table.get(key, ()) if isinstance(table, dict) else ()
    try:
        rules: tuple[PermissionRule, ...] = KEYS[name].value_type.read(raw)
    except ValueError as error:
        raise ConfigError(f"{file}: {name}{error}") from None
    return rules
