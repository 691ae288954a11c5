"""Changes of the view by a person, as steps of `test_machine`: pins, restored originals, previews."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from nca.context.view import Marker, Summary, Verbatim, View, seqs
from nca.errors import ContextDoesNotFit, UsageError
from nca.messages import Message
from tests.context.happenings import moods, texts
from tests.context.reference import Reference


class Hands(Reference):
    """Rules that a machine takes over by inheriting them."""

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def pin_what_may_be_hidden(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(1, len(self.log)))
        before = self.now()
        try:
            is_new = self.context.pin(seq)
        except UsageError:
            assert self.window.history.view == self.view
            return
        assert is_new == (seq not in self.pins)
        self.note_view(before)
        assert seq in self.pins
        assert is_shown(self.window.history.view, seq) or not is_new

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def expand(self, data: st.DataObject) -> None:
        """What is put back is shown as it is; everything else stays where it was."""
        ids = [item.id for item in self.window.history.view.items if isinstance(item, Summary | Marker)]
        wanted = data.draw(st.sampled_from([*ids, *map(str, range(1, len(self.log) + 1))]))
        item = next((item for item in self.view.items if getattr(item, "id", "") == wanted), None)
        before = self.now()
        try:
            record = self.context.expand(wanted)
        except UsageError:
            assert self.window.history.view == self.view
            return
        self.note_view(before)
        asked = seqs(item.ranges) if isinstance(item, Summary | Marker) else [int(wanted)]
        assert all(is_shown(self.window.history.view, seq) for seq in asked)
        assert record is None or self.window.measure().fits

    @rule(mood=moods, later=st.lists(texts, max_size=2), prose=st.one_of(st.none(), texts))
    def preview_and_accept(self, mood: str, later: list[str], prose: str | None) -> None:
        self.summarizer.mood = mood
        before = self.now()
        try:
            preview = self.runner.run(self.compactor.preview())
        except ContextDoesNotFit:
            return
        assert self.window.history.view == self.view
        for text in later:
            self.append(Message("assistant", text))
        try:
            outcome = self.compactor.accept(preview if prose is None else preview.with_prose(prose))
        except UsageError:
            assert self.window.history.view == self.view
            return
        self.note_view(before)
        assert outcome.compacted == (self.window.history.view != before.view)
        assert not outcome.compacted or outcome.tokens_after < outcome.tokens_before


def is_shown(view: View, seq: int) -> bool:
    """Whether a message is shown as it is."""
    runs = [item for item in view.items if isinstance(item, Verbatim)]
    return seq >= view.tail or any(run.first <= seq <= run.last for run in runs)
