"""The state of a view: what goes on with the next request, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from nca.context.policy import FRESH, PolicyState
from nca.context.view import View
from nca.errors import StoreDamaged, UsageError
from nca.library.inputs import kind_of, read_text
from nca.sessions import Store
from nca.sessions.program_views import StoredState

_encoder = msgspec.json.Encoder()


class ViewState(msgspec.Struct, frozen=True):
    """What goes on in the next process. `covers`: a hash of the messages that the view covers."""

    view: View = View()
    covers: str = ""
    policy: PolicyState = FRESH


def read_state(state: Any) -> ViewState:
    """Raises UsageError."""
    if state is None:
        return ViewState()
    if not isinstance(state, Mapping):
        raise UsageError(f"state: expected an object, found {kind_of(state)}.")
    try:
        return msgspec.convert(dict(state), ViewState)
    except msgspec.ValidationError as error:
        raise UsageError(f"state: is not the state of a view ({error}); valid: ContextView.state.") from error


class Before(NamedTuple):
    """What a request goes on from; `stored`: the row that it was read from, if there was one."""

    state: ViewState
    stored: StoredState | None


class SavedState:
    """The state of a view in a store."""

    def __init__(self, store: Store, key: str) -> None:
        self._views, self._key = store.program_views, key

    def read(self) -> Before:
        stored = self._views.read(self._key)
        if stored is None:
            return Before(ViewState(), None)
        try:
            return Before(msgspec.json.decode(stored.body, type=ViewState), stored)
        except msgspec.DecodeError as error:
            raise StoreDamaged(
                f"The state of the view {self._key!r} is damaged ({error})",
                advice=f"store.program_views.delete({self._key!r}) lets it begin anew.",
            ) from error

    def save(self, state: ViewState, before: Before) -> None:
        """Raises ViewInUse if another process has saved meanwhile. A state that has not changed is not saved."""
        if state != before.state:
            self._views.save(self._key, _encoder.encode(state).decode(), before.stored)


def saved_in(store: Any, key: Any, state: Any) -> SavedState | None:
    """Raises UsageError."""
    name = read_text(key, "key")
    if store is None and not name:
        return None
    if not isinstance(store, Store):
        raise UsageError(f"store: expected an nca.Store, found {kind_of(store)}; a key names a view in a store.")
    if not name:
        raise UsageError("key: is empty; valid: a name of the conversation, such as user-7/42.")
    if state is not None:
        raise UsageError("state: is given beside store and key; valid: one of them.")
    return SavedState(store, name)
