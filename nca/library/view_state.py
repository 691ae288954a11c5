"""The state of a view, for the next request in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from nca.context.history import History
from nca.context.policy import FRESH, PolicyState
from nca.context.view import View, check_partition, ranges_of
from nca.errors import SessionLocked, SessionNotFound, StoreDamaged, UsageError, ViewInUse
from nca.humanize import kind_name
from nca.library.inputs import read_text
from nca.messages import Message, with_tool_names
from nca.sessions import Store
from nca.sessions.view_rows import StoredState

_encoder = msgspec.json.Encoder()


class ViewState(msgspec.Struct, frozen=True):
    """The state for the next process.

    covers   a hash of the messages that the view covers
    session  the id of the session that keeps the messages, if one does
    """

    view: View
    covers: str = ""
    policy: PolicyState = FRESH
    session: str = ""


BEGINNING = ViewState(View())


def read_state(state: Any) -> ViewState:
    """None and {}: the view begins. Raises UsageError."""
    if state is None or state == {}:
        return BEGINNING
    if not isinstance(state, Mapping):
        raise UsageError(f"state: expected an object, found {kind_name(state)}.")
    try:
        return _checked(msgspec.convert(dict(state), ViewState))
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"state: is not the state of a view ({error}); valid: ContextView.state.") from error


def _checked(state: ViewState) -> ViewState:
    """Raises ValueError unless each message below the tail is in one item, and each item stands for one at least."""
    check_partition(state.view)
    if not all(map(ranges_of, state.view.items)):
        raise ValueError("an item of the view stands for no message")
    return state


class Before(NamedTuple):
    """The state before a request; `stored`: the row that it was read from, if any."""

    state: ViewState
    stored: StoredState | None


class SavedState:
    """The state of a view in a store. With `keeps_messages`, a session beside it has the current messages."""

    def __init__(self, store: Store, key: str, *, keeps_messages: bool) -> None:
        self._store, self._views, self._key = store, store.program_views, key
        self.keeps_messages = keeps_messages

    def read(self) -> Before:
        stored = self._views.read(self._key)
        if stored is None:
            return Before(BEGINNING, None)
        try:
            return Before(_checked(msgspec.json.decode(stored.body, type=ViewState)), stored)
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreDamaged(
                f"The state of the view {self._key!r} is damaged ({error})",
                advice=f"store.program_views.delete({self._key!r}) lets it begin anew.",
            ) from error

    def save(self, state: ViewState, before: Before, history: History) -> None:
        """Raises ViewInUse if another process has saved meanwhile. A state that has not changed is not saved."""
        known = session = before.state.session
        try:
            if self.keeps_messages:
                session = self._keep(list(with_tool_names(entry.message for entry in history.entries)), known)
            state = msgspec.structs.replace(state, session=session)
            if state != before.state:
                self._views.save(self._key, _encoder.encode(state).decode(), before.stored)
        except SessionLocked as error:
            raise self._in_use() from error
        except ViewInUse:
            if session != known:
                self._store.delete(session)
            raise

    def history(self) -> History:
        """The messages kept last, as the view shows them. Raises SessionNotFound."""
        state = self.read().state
        if not state.session:
            raise SessionNotFound(f"No messages are kept under the key {self._key!r}.")
        with self._store.open_session(state.session, read_only=True) as session:
            return History(session.log.entries(), state.view)

    def delete(self) -> None:
        """Delete the messages, if they are kept, and then the state. Raises SessionNotFound, ViewInUse."""
        state, stored = self.read()
        if stored is None:
            raise SessionNotFound(f"Nothing is kept under the key {self._key!r}.")
        try:
            if state.session:
                with suppress(SessionNotFound):
                    self._store.delete(state.session)
        except SessionLocked as error:
            raise self._in_use() from error
        self._views.delete(self._key, stored)

    def _in_use(self) -> ViewInUse:
        return ViewInUse(
            f"Another request keeps the messages of {self._key!r} now.", advice="Nothing was changed; ask again."
        )

    def _keep(self, messages: list[Message], session_id: str) -> str:
        """Keep the messages, in the session of the earlier ones or a new one; returns its id."""
        if session_id:
            with suppress(SessionNotFound):
                if self._goes_on(messages, session_id):
                    return session_id
                self._store.delete(session_id)
        with self._store.create(directory="", model="", name=self._key, kind="run") as session:
            session.log.append(messages)
            return session.info.id

    def _goes_on(self, messages: list[Message], session_id: str) -> bool:
        with self._store.open_session(session_id) as session:
            kept = [entry.message for entry in session.log.entries()]
            is_beginning = kept == messages[: len(kept)]
            if is_beginning:
                session.log.append(messages[len(kept) :])
        return is_beginning


def saved_in(store: Any, key: Any, state: Any, *, keeps_messages: bool) -> SavedState | None:
    """Raises UsageError."""
    name = read_text(key, "key")
    if store is None and not name:
        if keeps_messages:
            raise UsageError("keeps_messages: needs a store and a key.")
        return None
    if not isinstance(store, Store):
        raise UsageError(f"store: expected an nca.Store, found {kind_name(store)}; a key names a view in a store.")
    if not name:
        raise UsageError("key: is empty; valid: a name of the conversation, such as user-7/42.")
    if name != key:
        raise UsageError("key: holds half of a surrogate pair, which no store keeps; valid: text, such as user-7/42.")
    if state is not None:
        raise UsageError("state: is given beside store and key; valid: one of them.")
    return SavedState(store, name, keeps_messages=keeps_messages)
