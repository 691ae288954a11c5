"""/config: every setting, one setting, a new value for this chat, and --save for the project's file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from nca.config.schema import KEYS
from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.sanitize import one_line
from nca.terminal.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

_SAVE = "--save"


class ConfigCommand:
    name = "config"
    aliases = ("settings", "set")
    usage = "/config\n/config KEY\n/config KEY VALUE\n/config KEY [VALUE] --save"
    about = "Settings: show, change for this chat, --save to the project's file"

    async def run(self, context: CommandContext, argument: str) -> None:
        words = argument.split()
        is_saving = _SAVE in words
        words = [word for word in words if word != _SAVE]
        if not words:
            if is_saving:
                raise UsageError("/config --save needs a key.", advice="As in: /config context.target_ratio 0.4 --save")
            context.output.show(_all(context))
            return
        key, value = words[0], " ".join(words[1:])
        if value == '""':
            value = ""
        is_setting = len(words) > 1
        if is_setting:
            key = self._set(context, key, value)
        if is_saving:
            self._save(context, key)
        elif not is_setting:
            context.output.show(_one(context, key))

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        key, blank, value = argument.partition(" ")
        if not blank:
            return [
                Suggestion(name, f"{_shown(context.conversation.loaded.value(name))} · {described.about}")
                for name, described in KEYS.items()
                if key.lower() in name
            ]
        described = KEYS.get(key.lower())
        if described is None:
            return ()
        last = value.rpartition(" ")[2]
        choices = [*described.kind.choices, *([] if described.kind.choices else [_plain(described.default)]), _SAVE]
        return [Suggestion(choice) for choice in choices if choice.startswith(last) and choice]

    def _set(self, context: CommandContext, written: str, value: str) -> str:
        conversation = context.conversation
        key: str = conversation.set(written, value)
        said = f"{key} = {_shown(conversation.loaded.value(key))}{_unit(key)}, for this chat; --save keeps it."
        if key != written.strip().lower():
            said = f"{one_line(written, 80)} is {key} in nca. {said}"
        context.output.show(said)
        return key

    def _save(self, context: CommandContext, written: str) -> None:
        if context.save_setting is None:
            raise UsageError("There is no place to save settings here.")
        value = context.conversation.loaded.value(written)
        path = context.save_setting(written, list(value) if isinstance(value, tuple) else value)
        context.output.show(f"Saved in {path}.")


def _all(context: CommandContext) -> Table:
    loaded = context.conversation.loaded
    table = new_table(has_header=True)
    table.add_column("setting", overflow="fold")
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    for name in KEYS:
        origin = loaded.origin(name)
        is_default = origin == "default"
        value = Text(_shown(loaded.value(name)) + _unit(name), style="" if is_default else "accent")
        table.add_row(Text(name), value, Text("" if is_default else one_line(origin), style="quiet"))
    return table


def _one(context: CommandContext, written: str) -> Text:
    loaded = context.conversation.loaded
    value = loaded.value(written)
    name = _canonical(written)
    key = KEYS[name]
    text = Text()
    text.append(name, style="accent")
    text.append(f" = {_shown(value)}{_unit(name)}  ")
    text.append(f"({one_line(loaded.origin(written))})", style="quiet")
    text.append(f"\n{key.about}")
    text.append(f"\nValid: {key.kind.valid}. Default: {_shown(key.default)}{_unit(name)}.", style="quiet")
    return text


def _canonical(written: str) -> str:
    from nca.config.names import canonical

    found = canonical(written)
    assert found is not None  # loaded.value has refused unknown names before
    return found.key


def _shown(value: Any) -> str:
    """A value as a person would write it; an empty text is visible."""
    return _plain(value) or '""'


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return one_line(", ".join(str(item) for item in value), 200)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case _:
            return one_line(str(value), 200)


def _unit(name: str) -> str:
    unit = KEYS[name].unit
    return f" {unit}" if unit else ""
