"""Permission rules for good: in the person's own settings file, and in force in the chat that runs."""

from __future__ import annotations

import os
from collections.abc import Callable

from nca.config.loaded import LoadedSettings
from nca.config.paths import user_config_file
from nca.config.permission_rules import ALLOW, RuleList, add_rule, remove_rule
from nca.config.tables import PermissionRule


class KeptRules:
    """`loaded` gives the settings in force, `use` takes others."""

    def __init__(self, loaded: Callable[[], LoadedSettings], use: Callable[[LoadedSettings], None]) -> None:
        self._loaded = loaded
        self._use = use

    def keep(self, rule: PermissionRule) -> None:
        """Allow it from now on. Raises ConfigError where the file cannot be written; then nothing changed."""
        file = user_config_file(os.environ)
        add_rule(file, ALLOW, rule)
        loaded = self._loaded()
        self._use(loaded.with_value(ALLOW, [*loaded.value(ALLOW), rule], str(file)))

    def forget(self, name: RuleList, rule: PermissionRule) -> None:
        """A rule less, wherever it came from. Raises ConfigError as `keep` does."""
        remove_rule(user_config_file(os.environ), name, rule)
        loaded = self._loaded()
        rest = [one for one in loaded.value(name) if one != rule]
        self._use(loaded.with_value(name, rest, loaded.origin(name)))
