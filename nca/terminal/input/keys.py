"""Key bindings that nca adds to the prompt, for emacs and vi keys."""

from __future__ import annotations

import math
import time
from pathlib import PurePath
from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import (
    Always,
    Condition,
    completion_is_selected,
    emacs_insert_mode,
    emacs_mode,
    has_completions,
    has_selection,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
    vi_replace_mode,
)
from prompt_toolkit.filters.app import vi_replace_single_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from nca.terminal.input.file_finder import mention_before
from nca.terminal.input.line_kind import is_command, may_complete
from nca.words import Span, Words, text_of

_inserts = emacs_insert_mode | vi_insert_mode | vi_replace_mode | vi_replace_single_mode

_COMPLETING = (Keys.ControlI, Keys.BackTab, Keys.ControlM, Keys.Up, Keys.Down)
"""Keys that put a completion in."""
REWIND = "/rewind"
"""The command that Escape twice at an empty prompt runs."""
_TWICE_SECONDS = 1.0


class KeyActions(Protocol):
    """The actions of the prompt for keys; `Prompt` implements them."""

    @property
    def is_lone_escape(self) -> bool:
        """Whether the Escape that is being handled was pressed alone."""

    def paste(self, buffer: Buffer, pasted: str) -> None: ...

    def paste_image(self, event: KeyPressEvent) -> None: ...

    @property
    def has_pasted(self) -> bool:
        """Whether something in the prompt was pasted."""

    def attach_pasted(self, event: KeyPressEvent) -> None: ...

    @property
    def gives_way(self) -> bool:
        """Whether typing replaces the text in the prompt."""

    def clear(self, buffer: Buffer) -> None: ...

    def edit(self, event: KeyPressEvent) -> None: ...

    def rewind(self, event: KeyPressEvent) -> None: ...

    def next_mode(self) -> None: ...

    def suspend(self) -> None: ...

    def on_interrupt_key(self, event: KeyPressEvent) -> None: ...


def prompt_keys(actions: KeyActions) -> KeyBindings:
    bindings = KeyBindings()
    _add_enter_and_tab(bindings, actions)
    _add_escape(bindings, actions)
    _add_actions(bindings, actions)
    return bindings


def completes(actions: KeyActions) -> Condition:
    """Whether typing opens the menu. Rows are kept free for it, so not where a text gives way, which gets none."""
    return Condition(
        lambda: not actions.gives_way and may_complete(get_app().current_buffer.document.text_before_cursor)
    )


def _add_enter_and_tab(bindings: KeyBindings, actions: KeyActions) -> None:
    """Keys that send, start a new line, or accept a completion."""
    is_lone_escape, gives_way = Condition(lambda: actions.is_lone_escape), Condition(lambda: actions.gives_way)

    @bindings.add("enter", filter=~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @bindings.add("enter", filter=completion_is_selected & ~is_searching)
    def take(event: KeyPressEvent) -> None:
        """Accept a completion. A file completion stays in the line to type on; a command is sent."""
        buffer = event.current_buffer
        if is_command(buffer.text):
            send(event)
        else:
            buffer.complete_state = None
            if buffer.text.endswith("/"):
                buffer.start_completion()

    @bindings.add("enter", filter=Condition(_is_mention_begun) & ~completion_is_selected & ~is_searching)
    def finish(event: KeyPressEvent) -> None:
        """Sent as it is, the name would attach nothing, and nobody would say so."""
        event.current_buffer.go_to_completion(0)
        take(event)

    # An Escape that was pressed alone is a key of its own; with another one at once it is that key with Alt.
    @bindings.add("escape", "enter", filter=~is_searching & ~is_lone_escape)
    @bindings.add("c-j", filter=~is_searching)
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("tab", filter=~is_searching)
    def complete(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    @bindings.add(" ", filter=Condition(_is_behind_blank) & _inserts & ~gives_way & ~is_searching)
    def blank(event: KeyPressEvent) -> None:
        """Ignore a blank behind a completion, or a completed command, which has one already."""
        is_completed = any(one.key in _COMPLETING for one in event.previous_key_sequence)
        if not is_completed and not _has_blank_after_command():
            event.current_buffer.insert_text(event.data)


def _add_escape(bindings: KeyBindings, actions: KeyActions) -> None:
    """An Escape that was pressed alone."""
    is_alone, gives_way = Condition(lambda: actions.is_lone_escape), Condition(lambda: actions.gives_way)
    escaped_at = -math.inf

    # At once, not after the pause in which another key would make it Alt: that key would be swallowed.
    @bindings.add("escape", filter=is_alone & (emacs_mode | gives_way) & ~is_searching, eager=True)
    def escape(event: KeyPressEvent) -> None:
        """Close the menu, or empty a prompt with restored text; twice at an empty prompt, offer to go back."""
        nonlocal escaped_at
        buffer, before = event.current_buffer, escaped_at
        escaped_at = -math.inf
        if buffer.complete_state is not None:
            buffer.cancel_completion()
        elif actions.gives_way:
            actions.clear(buffer)
        elif not buffer.text and time.monotonic() - before < _TWICE_SECONDS:
            actions.rewind(event)
        else:
            escaped_at = time.monotonic()

    # prompt_toolkit has these, but Alt-/ would complete as Tab does and the rest be sent, and the others do nothing.
    @bindings.add("escape", "/", filter=emacs_mode & ~is_searching)
    @bindings.add("escape", "a", filter=emacs_mode & ~is_searching)
    @bindings.add("escape", "e", filter=emacs_mode & ~is_searching)
    def no_alt(event: KeyPressEvent) -> None:
        """An Escape out of habit, then the key, as where Alt with it is not bound at all."""
        if actions.gives_way:
            actions.clear(event.current_buffer)
        event.key_processor.feed(event.key_sequence[-1], first=True)


def _add_actions(bindings: KeyBindings, actions: KeyActions) -> None:
    """Keys for paste, editor, undo, suspend and interrupt."""

    @bindings.add(Keys.Any, filter=_inserts & Condition(lambda: actions.gives_way) & ~is_searching)
    def replace(event: KeyPressEvent) -> None:
        actions.clear(event.current_buffer)
        event.current_buffer.insert_text(event.data)

    @bindings.add("c-u", filter=_inserts & Condition(lambda: actions.gives_way) & ~is_searching)
    def empty(event: KeyPressEvent) -> None:
        """As Escape: of a text of several rows it would leave all but one, and the next line would go with them."""
        actions.clear(event.current_buffer)

    @bindings.add("c-d", filter=Condition(lambda: actions.gives_way) & ~is_searching)
    def leave(event: KeyPressEvent) -> None:
        """As at an empty prompt: nobody typed this text."""
        actions.clear(event.current_buffer)
        event.app.exit(exception=EOFError)

    # vi replays a macro as typed keys, which a paste is not.
    @bindings.add(Keys.BracketedPaste, record_in_macro=emacs_mode)
    def paste(event: KeyPressEvent) -> None:
        actions.paste(event.current_buffer, event.data)

    @bindings.add("c-_", filter=emacs_mode & ~is_searching, save_before=lambda _: False)
    @bindings.add("c-x", "c-u", filter=emacs_mode & ~is_searching, save_before=lambda _: False)
    def undo(event: KeyPressEvent) -> None:
        _undo(event.current_buffer)

    is_lone_escape, has_pasted = Condition(lambda: actions.is_lone_escape), Condition(lambda: actions.has_pasted)
    is_empty = Condition(lambda: not get_app().current_buffer.text)
    for keys, is_active, act in (
        # An image; terminals paste text by a key of their own.
        (("c-v",), ~vi_navigation_mode & ~is_searching, actions.paste_image),
        (("escape", "a"), ~is_lone_escape & has_pasted & ~is_searching, actions.attach_pasted),
        (("c-x", "c-e"), ~is_searching, actions.edit),
        (("v",), vi_navigation_mode & ~has_selection, actions.edit),
        # With emacs keys two that come at once; with vi keys the first one leaves the insert mode.
        (("escape", "escape"), emacs_mode & is_empty & ~is_searching, actions.rewind),
        (("escape",), vi_navigation_mode & is_empty, actions.rewind),
        (("s-tab",), ~has_completions & ~is_searching, lambda _: actions.next_mode()),
        (("c-z",), Always(), lambda _: actions.suspend()),
        (("c-c",), ~is_searching & ~has_selection, actions.on_interrupt_key),
        ((Keys.SIGINT,), Always(), actions.on_interrupt_key),
    ):
        bindings.add(*keys, filter=is_active)(act)


def typed_by_key(buffer: Buffer, said: Words) -> Span | None:
    """The text that the current key has put before the cursor, if it is a typed character."""
    app = get_app()
    keys = app.key_processor.key_buffer
    if app.current_buffer is not buffer or len(keys) != 1 or isinstance(keys[0].key, Keys) or not _inserts():
        return None
    character = keys[0].data
    times = max(1, (len(buffer.text) - len(text_of(said))) // max(1, len(character)))
    return Span(character * times, "typed")


def _is_mention_begun() -> bool:
    """Whether the word behind an @ names nothing in the menu, and the name that is first there begins with it.

    Any other word may be a person's name, or a decorator.
    """
    buffer = get_app().current_buffer
    mention = mention_before(buffer.document.text_before_cursor)
    found = buffer.complete_state.completions if buffer.complete_state is not None else []
    if not found or not mention or is_command(buffer.text):
        return False
    typed = mention.strip('"').lower()
    names = [one.text.strip(' "').rstrip("/").lower() for one in found]
    is_named = typed.endswith("/") or typed in names
    return not is_named and (names[0].startswith(typed) or PurePath(names[0]).name.startswith(typed))


def _is_behind_blank() -> bool:
    return get_app().current_buffer.document.text_before_cursor.endswith(" ")


def _has_blank_after_command() -> bool:
    text = get_app().current_buffer.document.text_before_cursor
    return is_command(text) and text.endswith(" ") and text.count(" ") == 1


def _undo(buffer: Buffer) -> None:
    """Undo the last change. Typed text is undone by words; prompt_toolkit undoes it by letters."""
    is_first = True
    while True:
        before = buffer.text
        buffer.undo()
        if buffer.text == before:
            return
        place = buffer.cursor_position
        if before[:place] + before[place + 1 :] != buffer.text:
            if not is_first:
                buffer.redo()
            return
        if not before[place : place + 1].strip() or not buffer.text[:place][-1:].strip():
            return
        is_first = False


def _complete(buffer: Buffer) -> None:
    """Accept the only completion, else go to the next. Computed here, since the menu may not be open yet."""
    state = buffer.complete_state
    if state is not None and len(state.completions) > 1:
        buffer.complete_next()
        return
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    if len(found) == 1:
        buffer.cancel_completion()
        buffer.apply_completion(found[0])
    elif found:
        # At once too, so that text typed after the Tab comes after the completion.
        buffer.complete_state = CompletionState(buffer.document, found)
        buffer.go_to_completion(0)
