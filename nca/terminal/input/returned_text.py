"""A text that was sent and comes back because it had no effect, such as a message with `@` and a missing file.

The next thing typed replaces it, as in a text that is selected. Otherwise a person who types on would append to it, and
be refused again. Any other key keeps it, to be mended.
"""

from __future__ import annotations

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from nca.words import Words, text_of

HINT = "Not sent. Typing replaces it, → keeps it, Enter resends."
"""Fits a window of 60 columns."""


class ReturnedText(Processor):
    """Knows what was sent last, and draws it as selected while it gives way."""

    def __init__(self) -> None:
        self._sent = ""
        self.gives_way = False

    def sent(self, said: Words) -> None:
        """This left the prompt."""
        self._sent = text_of(said).strip()

    def begin(self, default: Words) -> None:
        """A prompt begins with this text."""
        self.gives_way = bool(self._sent) and text_of(default).strip() == self._sent

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not self.gives_way:
            return Transformation(fragments)
        return Transformation([(f"{style} class:selected", text) for style, text, *_ in fragments])
