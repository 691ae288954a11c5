"""Draw the text in the prompt: pastes as labels, tabs as blanks, and nothing that reorders or hides text."""

from __future__ import annotations

from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.render.sanitize import to_terminal

TAB_CELLS = 4
_LABEL_STYLE = " class:pasted"
_UNSEEN = "\ufffd"


class ShownText(Processor):
    """Draws one line, each folded paste as its label.

    The text itself stays as it is: what is sent is what was typed or pasted.
    """

    def __init__(self, pastes: FoldedPastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = explode_text_fragments(transformation_input.fragments)
        shown: StyleAndTextTuples = []
        position = 0
        widths: list[int] = []
        for style, character, *_ in fragments:
            text, extra_style = self._shown(character, position)
            shown.append((style + extra_style, text))
            widths.append(len(text))
            position += len(text)
        if all(width == 1 for width in widths):
            return Transformation(shown)
        # The cursor may be one cell after the end of the line.
        starts = list(accumulate([*widths, 1], initial=0))
        return Transformation(
            shown,
            source_to_display=lambda source: starts[min(source, len(starts) - 1)],
            display_to_source=lambda display: max(index for index, start in enumerate(starts) if start <= display),
        )

    def _shown(self, character: str, position: int) -> tuple[str, str]:
        """The text for a character, and what is added to its style."""
        if character == "\t":
            return " " * (TAB_CELLS - position % TAB_CELLS), ""
        if (label := self._pastes.label(character)) is not None:
            return label, _LABEL_STYLE
        if character.isprintable() or character < "\x20" or character == "\x7f":
            # prompt_toolkit draws control characters as ^C by itself.
            return character, ""
        return (character if to_terminal(character) == character else _UNSEEN), ""
