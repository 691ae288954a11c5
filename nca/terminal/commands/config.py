"""/config: find, show and change settings; --save keeps them in the project's file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from nca.config.layers import load
from nca.config.overrides import UNSET, canonical, key_meant, whole_name
from nca.config.paths import project_config_file
from nca.config.projects import TrustStore
from nca.config.saving import save_value
from nca.config.schema import KEYS, Key
from nca.errors import UsageError
from nca.humanize import counted
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.panels.config_browser import (
    ConfigBrowser,
    containing,
    listed,
    matching,
    overview,
    plain,
    section_of,
    shown,
    value_text,
)
from nca.terminal.render.event_lines import reserve_line
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

_SAVE, _UNSET, _DEFAULT = "--save", "--unset", "default"
_VERBS = ("set", "get", "show")
"""What `nca config` takes in the shell, and /config does not need."""
_RESETS = ("reset", "unset", "default")
_WORDS = re.compile(r"""(?:"[^"]*"|'[^']*')(?!\S)|\S+""")
"""What stands in quotes is one word."""
_OPTIONS = {
    _SAVE: "save it in the project's file",
    _UNSET: "undo what was set in this chat",
    _DEFAULT: "nca's default",
}
_KEEPS, _KEEPS_OWN = "; --save keeps it", "; nca config set --user keeps it"
"""How a value is kept: in the project's file, which may not hold each setting."""


class ConfigCommand(Command):
    name = "config"

    def needs_person(self, app: App, argument: str) -> str:
        words = argument.split()
        if _SAVE in words:
            return "changes a settings file"
        known = KEYS.get(key_meant(words[0])) if len(words) > 1 else None
        return "" if known is None or known.harmless is not None else f"changes {words[0]}"

    def only_shows(self, argument: str) -> bool:
        return len(argument.split()) < 2

    async def run(self, app: App, argument: str) -> None:
        words = _WORDS.findall(argument)
        options = {word for word in words if word in (_SAVE, _UNSET)}
        words = [word for word in words if word not in options]
        if len(words) == 2 and words[0].lower() in _RESETS and canonical(key := whole_name(words[1])) is not None:
            raise UsageError(
                f"/config {words[0]} is not a setting.",
                advice=f"/config {key} --unset undoes what was set in this chat; /config {key} {_DEFAULT} resets it.",
            )
        if words and words[0].lower() in _VERBS and canonical(key := whole_name("".join(words[1:2]))) is not None:
            raise UsageError(
                f"/config {words[0]} is no setting.", advice=f"/config {key} shows it; /config {key} VALUE changes it."
            )
        if len(words) > 1 or (options and words):
            words[0] = whole_name(words[0])
        if not words:
            if options:
                named = " ".join(sorted(options))
                raise UsageError(f"/config {named} needs a key.", advice=f"As in: /config context.target_ratio {named}")
            await _browse(app)
        elif _UNSET in options:
            self._unset(app, words, is_saving=_SAVE in options)
        elif len(words) == 1 and not options:
            _show(app, words[0])
        else:
            hint, value = "" if _SAVE in options else _KEEPS, _unquoted(" ".join(words[1:]))
            for said in _change(app, words[0], value, is_saving=_SAVE in options, hint=hint):
                app.output.show(said)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        key, blank, value = argument.partition(" ")
        if not blank:
            return [
                Suggestion(name, f"{shown(app.conversation.loaded.value(name))} · {KEYS[name].about}")
                for name in containing(key)
            ]
        if (described := KEYS.get(key_meant(key))) is None:
            return ()
        *done, last = value.split(" ")
        return beginning_with(last, _completions(app, described, [word for word in done if word]).items())

    def _unset(self, app: App, words: list[str], *, is_saving: bool) -> None:
        if len(words) > 1:
            raise UsageError("--unset takes no value.", advice=f"/config {one_line(words[0], 60)} --unset")
        if is_saving:
            raise UsageError(
                "--unset undoes a value set in this chat; no file has it.",
                advice=f"/config {one_line(words[0], 60)} default --save removes it from the project's file.",
            )
        loaded = app.conversation.loaded
        key = _known(app, words[0])
        if key not in loaded.covered:
            raise UsageError(f"{key} was not set in this chat.", advice=f"It comes from: {place(loaded.origin(key))}.")
        app.conversation.set(key, UNSET)
        loaded = app.conversation.loaded
        app.output.apply(loaded.settings.terminal)
        app.output.show(f"{key} = {value_text(key, loaded.value(key))} again ({place(loaded.origin(key))}).")


def _completions(app: App, key: Key, done: Sequence[str]) -> dict[str, str]:
    """What may follow these words behind a setting's name, with what it means."""
    if _UNSET in done:
        return {}
    found: dict[str, str] = {}
    if not [word for word in done if word != _SAVE] or done[-1].endswith(","):
        found = dict.fromkeys(key.value_type.choices, "")
        if key.value_type.names_models:
            found |= dict.fromkeys(app.models, "a model")
        if not key.value_type.choices and (default := plain(key.default)):
            found[default] = "the default"
        found[_DEFAULT] = _OPTIONS[_DEFAULT]
    if _SAVE not in done and not key.user_only:
        found[_SAVE] = _OPTIONS[_SAVE]
    if not done and key.name in app.conversation.loaded.covered:
        found[_UNSET] = _OPTIONS[_UNSET]
    return found


async def _browse(app: App) -> None:
    """The settings as a list on a screen, else what is changed and the groups."""
    if not app.can_walk or app.reader.is_line_queued:
        app.output.show(overview(app.conversation.loaded, differing(app.conversation)))
        return

    def change(key: str, written: str, is_saving: bool) -> str:
        return " ".join(_change(app, key, written, is_saving=is_saving))

    theme = app.conversation.loaded.settings.terminal.theme
    browser = ConfigBrowser(lambda: (app.conversation.loaded, differing(app.conversation)), change, theme)
    for said in await app.reader.walk(browser) or ():
        app.output.show(said)


def _change(app: App, written: str, value: str, *, is_saving: bool, hint: str = "") -> Iterator[str]:
    """Set a value, none (the current one is saved), or `default`. Yields lines about it; `hint` ends them."""
    conversation = app.conversation
    key = _known(app, written)
    is_default = value == _DEFAULT and _DEFAULT not in KEYS[key].value_type.choices
    if value:
        raw: Any = _raw(KEYS[key].default) if is_default else "" if value == '""' else value
        key = conversation.set(key if is_default else written, raw)
        app.output.apply(conversation.loaded.settings.terminal)
        hint = hint and (_KEEPS_OWN if KEYS[key].user_only else hint)
        saved = _save(app, key, UNSET if is_default else _raw(conversation.loaded.value(key))) if is_saving else ""
        reach = _reach(app, key) if not saved else f", {saved}{_reach(app, key).removeprefix(_HERE)}"
        said = f"{key} = {value_text(key, conversation.loaded.value(key))}{reach}{hint}."
        yield said if key == written.strip().lower() else f"{one_line(written, 80)} is {key} in nca. {said}"
        if key == "model.max_output_tokens" and (line := reserve_line(conversation)):
            yield line
    elif is_saving:
        saved = _save(app, key, _raw(conversation.loaded.value(key)))
        yield f"{key} = {value_text(key, conversation.loaded.value(key))}, {saved}."


def _unquoted(value: str) -> str:
    """The value without the pair of quotes around it, which a shell would take off; `""` stays, for an empty one."""
    quote, inside = value[:1], value[1:-1]
    is_quoted = len(value) > 2 and quote in ("'", '"') and value.endswith(quote) and quote not in inside
    return inside if is_quoted else '""' if value == "''" else value


def _save(app: App, key: str, value: Any) -> str:
    """Save it in the project's file, or remove it from there. Returns what was done, in words."""
    directory = app.conversation.directory
    path = project_config_file(directory)
    with TrustStore(os.environ).saving(directory):
        save_value(path, key, value)
    loaded = app.conversation.loaded
    if value is UNSET:
        files = load(project=directory, env=os.environ)
        loaded = loaded.taken_out(key, str(path), files)
    else:
        loaded = loaded.saved(key, str(path))
    app.conversation.file_changed(loaded)
    return f"{'removed from' if value is UNSET else 'saved in'} {place(str(path))}"


def _show(app: App, word: str) -> None:
    """A setting, a group, or what a search finds. Raises ConfigError if there is none of these."""
    loaded, has, wanted = app.conversation.loaded, differing(app.conversation), word.strip().lower()
    if key := key_meant(word):
        _show_one(app, key)
    elif wanted == "all":
        app.output.show(listed(loaded, list(KEYS), has))
    elif of_section := [name for name in KEYS if section_of(name) == wanted or name.startswith(f"{wanted}.")]:
        app.output.show(listed(loaded, of_section, has))
    elif found := matching(wanted):
        app.output.show(listed(loaded, found, has))
        app.output.show(Text("/config KEY explains one setting.", style="quiet"))
    else:
        loaded.value(word)


def _show_one(app: App, name: str) -> None:
    loaded, key = app.conversation.loaded, KEYS[name]
    text = Text()
    text.append(name, style="accent")
    text.append(f" = {value_text(name, loaded.value(name))}  ")
    text.append(f"({place(loaded.origin(name))})", style="quiet")
    text.append(f"\n{key.about}")
    text.append(f"\nValid: {key.value_type.valid}. Default: {value_text(name, key.default)}.", style="quiet")
    below = loaded.covered.get(name)
    if below is not None:
        text.append(f"\nBefore: {value_text(name, below.value)} ({place(below.origin)}); --unset restores it.")
    if has := differing(app.conversation).get(name):
        text.append(f"\nThis chat has {has}.", style="notice")
    app.output.show(text)


_HERE = ", for this chat"


def _reach(app: App, key: str) -> str:
    """How far a change reaches: to this chat, or only to a later start."""
    has = differing(app.conversation).get(key)
    if KEYS[key].at_start:
        return "; this chat stays as it is, only a start reads it"
    if key == "model.name" and has:
        return f"; this chat stays with {has}"
    return f"; this chat has {has}" if has else _HERE


def differing(conversation: Conversation) -> Mapping[str, str]:
    """What this chat has, by setting, where it is not what the settings say: so `/config` shows both."""
    loaded, facts = conversation.loaded, conversation.context.facts
    model, name, window = facts.name, loaded.value("model.name"), loaded.value("model.context_window")
    found = {
        key: value_text(key, below.value)
        for key, below in loaded.covered.items()
        if KEYS[key].at_start and below.value != loaded.value(key)
    }
    if name not in (model, model.partition("/")[2]):
        found["model.name"] = one_line(model) + (f" (/model {one_line(name)} switches)" if name else "")
    if window not in (0, facts.window_tokens):
        found["model.context_window"] = facts.window_in_words
    own = {"permissions.allow": len(conversation.approvals.session_rules)}
    for kind in ("allow", "ask", "deny"):
        key = f"permissions.{kind}"
        more = own.get(key, 0) + len(getattr(loaded.settings.permissions, kind)) - len(loaded.value(key))
        if more:
            found[key] = f"{counted(more, 'rule')} more (/permissions lists all)"
    return found


def _known(app: App, written: str) -> str:
    """The canonical name. Raises ConfigError, with the nearest one, if there is no such setting."""
    app.conversation.loaded.value(written)
    found = canonical(written)
    return found.key if found is not None else written


def _raw(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
