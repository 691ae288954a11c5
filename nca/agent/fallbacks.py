"""Which model answers: the chat's own, or while its provider is down the next of `model.fallbacks`.

Down is what trying again did not cure: nothing answers, 5xx and 529, a rate limit that is still there, deadlines,
empty answers; and a model that its provider no longer knows. A wrong key, money, a refused or too large request are
for the person, whatever other model there is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from nca.errors import ModelNotFound, NcaError, ProviderError
from nca.events import Listener, Notice
from nca.models.model import Model
from nca.models.retry import PassingFailure

COOL_DOWN_SECONDS = 300.0
"""A provider that is down costs a turn all its tries, so it is asked again only on the first turn after this."""


class Fallbacks:
    """The models of one conversation, opened when first needed.

    first    the chat's own
    active   the one that answers now; what follows a failure in the same turn stays with it
    use      makes the conversation go on with a model; raises NcaError where its window makes no budget
    """

    def __init__(
        self,
        first: Model,
        open_model: Callable[[str], Awaitable[Model]],
        use: Callable[[Model], None],
        emit: Listener,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.first = first
        self.active = first
        self._open_model = open_model
        self._use = use
        self._emit = emit
        self._clock = clock
        self._opened: dict[str, Model] = {}
        self._failed: set[str] = set()
        self._first_again_at = 0.0

    def begin_turn(self) -> None:
        """Go back to the first, once it has had its time."""
        self._failed.clear()
        if self.active is self.first or self._clock() < self._first_again_at:
            return
        self._switch(self.first)
        self._emit(Notice(f"{self.first.facts.name} is asked again."))

    async def take_over(self, error: ProviderError, names: Sequence[str]) -> bool:
        """Let the next of `names` answer in the active one's place; False where none can, or none should."""
        if not isinstance(error, PassingFailure | ModelNotFound):
            return False
        down = self.active.facts.name
        self._failed.add(down)
        if self.active is self.first:
            self._first_again_at = self._clock() + COOL_DOWN_SECONDS
        for name in (*names, self.first.facts.name):
            if name in self._failed:
                continue
            try:
                self._switch(await self.opened(name))
            except NcaError as problem:
                self._failed.add(name)
                self._emit(Notice(f"{name} cannot take over: {problem.message}"))
                continue
            said = error.message if error.message.endswith((".", "!", "?", "…")) else f"{error.message}."
            self._emit(Notice(f"{said} {name} answers instead of {down}."))
            return True
        self._first_again_at = 0.0
        return False

    def replace_first(self, model: Model) -> Model:
        """Go on with another model of the person's choice; gives the one before, to be closed."""
        before = self.first
        self._use(model)
        self.first = self.active = model
        self._first_again_at = 0.0
        return before

    async def close(self, *, keeps_first: bool = False) -> None:
        """Close what was opened here and the first."""
        for model in (*self._opened.values(), *([] if keeps_first else [self.first])):
            await model.close()
        self._opened.clear()

    async def opened(self, name: str) -> Model:
        """The model of that name, opened once and closed here. Raises NcaError."""
        if name == self.first.facts.name:
            return self.first
        if name not in self._opened:
            model = await self._open_model(name)
            if self._opened.setdefault(name, model) is not model:
                # Two tasks wanted it at the same time.
                await model.close()
        return self._opened[name]

    def _switch(self, model: Model) -> None:
        try:
            self._use(model)
        except NcaError:
            self._use(self.active)
            raise
        self.active = model
