"""The colours for highlighted code, on dark, light and unknown backgrounds."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, SyntaxTheme

from nca.terminal.render.theme import PALETTES, background


def code_theme(theme: str, environment: Mapping[str, str] = os.environ) -> SyntaxTheme:
    """The colours for the setting terminal.theme: auto, dark or light."""
    colours = PALETTES[background(theme, environment)]
    # The keys are Pygments' token types, which are tuples of names.
    styles = {
        (): Style(),
        ("Comment",): Style(dim=True, italic=True),
        ("Keyword",): Style(color=colours.keyword),
        ("Operator", "Word"): Style(color=colours.keyword),
        ("Name", "Function"): Style(color=colours.accent),
        ("Name", "Class"): Style(color=colours.accent, bold=True),
        ("Name", "Decorator"): Style(color=colours.accent),
        ("Name", "Tag"): Style(color=colours.keyword),
        ("Name", "Attribute"): Style(color=colours.accent),
        ("Literal", "Number"): Style(color=colours.notice),
        ("Literal", "String"): Style(color=colours.added),
        ("Generic", "Inserted"): Style(color=colours.added),
        ("Generic", "Deleted"): Style(color=colours.failure),
        ("Generic", "Heading"): Style(bold=True),
        ("Generic", "Subheading"): Style(color=colours.accent),
    }
    return ANSISyntaxTheme(styles)
