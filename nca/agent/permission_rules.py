"""Permission rules in the person's own settings file, never in a project's. A change takes effect at once."""

from __future__ import annotations

import os

from nca.agent.window import Window
from nca.config.paths import user_config_file
from nca.config.permission_rules import ALLOW, RuleList, add_rule, remove_rule
from nca.config.tables import PermissionRule


class SavedRules:
    """The rules that outlive the chat. Both methods raise ConfigError if the file cannot be written."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def add(self, rule: PermissionRule) -> None:
        """Allow it from now on."""
        file = user_config_file(os.environ)
        add_rule(file, ALLOW, rule)
        rules = [*self._window.loaded.value(ALLOW), rule]
        self._window.use(self._window.loaded.with_value(ALLOW, rules, str(file)), self._window.facts)

    def remove(self, name: RuleList, rule: PermissionRule) -> None:
        """Remove a rule, wherever it came from."""
        loaded = self._window.loaded
        remove_rule(user_config_file(os.environ), name, rule)
        rest = [one for one in loaded.value(name) if one != rule]
        self._window.use(loaded.with_value(name, rest, loaded.origin(name)), self._window.facts)
