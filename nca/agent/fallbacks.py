"""The model that answers: the chat's own or, while its provider is down, the next of `model.fallbacks`.

A provider counts as down if retries did not help: no answer, 5xx and 529, a lasting rate limit, deadlines, empty
answers, or a model that it no longer knows. A wrong key, a lack of credit and a refused or too large request are for
the person to solve, so no other model takes over.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from nca.config.loaded import LoadedSettings
from nca.errors import ModelNotFound, NcaError, ProviderError, sentence
from nca.events import Listener, Notice
from nca.models.catalog import ModelFacts
from nca.models.failures import PassingFailure
from nca.models.model import Model, TakesSettings

COOL_DOWN_SECONDS = 300.0
"""How long a provider that is down is left alone, because asking it costs a turn all its retries."""


@dataclass(eq=False)
class Fallbacks:
    """The models of one conversation, each opened when it is first needed.

    first      the chat's own
    active     the one that answers now; it keeps answering until the end of the turn
    open_named opens the model of a name. Raises NcaError
    use_facts  works with another model. Raises NcaError, and nothing has changed, if its window leaves no budget
    """

    first: Model
    open_named: Callable[[str], Awaitable[Model]]
    use_facts: Callable[[ModelFacts], None]
    emit: Listener
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.active = self.first
        self._opened: dict[str, Model] = {}
        self._failed: set[str] = set()
        self._first_again_at = 0.0

    def begin_turn(self) -> None:
        """Go back to the first model after its cool-down."""
        self._failed.clear()
        if self.active is self.first or self.clock() < self._first_again_at:
            return
        self._switch(self.first)
        self.emit(Notice(f"{self.first.facts.name} is asked again."))

    async def take_over(self, error: ProviderError, names: Sequence[str]) -> bool:
        """Let the next of `names` answer instead of the active model; False if none can, or none should."""
        if not isinstance(error, PassingFailure | ModelNotFound):
            return False
        down = self.active.facts.name
        self._failed.add(down)
        if self.active is self.first:
            self._first_again_at = self.clock() + COOL_DOWN_SECONDS
        for name in (*names, self.first.facts.name):
            if name in self._failed:
                continue
            try:
                model = await self.open(name)
                # A setting may name a model without its provider: by any of its names it is asked once.
                if model.facts.name in self._failed:
                    continue
                self._switch(model)
            except NcaError as problem:
                self._failed.add(name)
                self.emit(Notice(f"{name} cannot take over: {problem.message}"))
                continue
            said = sentence(error.message)
            self.emit(Notice(f"{said} {model.facts.name} answers instead of {down}."))
            return True
        self._first_again_at = 0.0
        return False

    def replace_first(self, model: Model) -> Model:
        """Go on with a model that the person chose. Returns the one before, for the caller to close."""
        before = self.first
        self.use_facts(model.facts)
        self.first = self.active = model
        self._first_again_at = 0.0
        return before

    def take_settings(self, loaded: LoadedSettings) -> None:
        """The next request of each model follows these settings."""
        for model in (self.first, *self._opened.values()):
            if isinstance(model, TakesSettings):
                model.take_settings(loaded.for_model(model.facts.name).settings.model)

    async def close(self, *, keeps_first: bool = False) -> None:
        """Close every model, except the first if `keeps_first`."""
        for model in (*self._opened.values(), *([] if keeps_first else [self.first])):
            await model.close()
        self._opened.clear()

    async def open(self, name: str) -> Model:
        """The model of that name, opened once; `close` closes it. Raises NcaError."""
        if name == self.first.facts.name:
            return self.first
        if name not in self._opened:
            model = await self.open_named(name)
            if self._opened.setdefault(name, model) is not model:
                # Two tasks opened it at the same time.
                await model.close()
        return self._opened[name]

    def _switch(self, model: Model) -> None:
        try:
            self.use_facts(model.facts)
        except NcaError:
            self.use_facts(self.active.facts)
            raise
        self.active = model
