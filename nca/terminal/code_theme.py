"""The colours of code, for dark, light and unknown backgrounds."""

from __future__ import annotations

from rich.style import Style
from rich.syntax import ANSI_DARK, ANSI_LIGHT, ANSISyntaxTheme, SyntaxTheme

# Keys are Pygments' token types, which are tuples of names.
# Magenta, green and cyan keep their contrast on both backgrounds; yellow and blue each fail on one.
_ANY_BACKGROUND: SyntaxTheme = ANSISyntaxTheme(
    {
        (): Style(),
        ("Comment",): Style(dim=True, italic=True),
        ("Keyword",): Style(color="magenta"),
        ("Operator", "Word"): Style(color="magenta"),
        ("Name", "Function"): Style(color="cyan"),
        ("Name", "Class"): Style(color="cyan", bold=True),
        ("Name", "Decorator"): Style(color="cyan"),
        ("Name", "Tag"): Style(color="magenta"),
        ("Name", "Attribute"): Style(color="cyan"),
        ("Literal", "Number"): Style(color="cyan"),
        ("Literal", "String"): Style(color="green"),
        ("Generic", "Inserted"): Style(color="green"),
        ("Generic", "Deleted"): Style(color="red"),
        ("Generic", "Heading"): Style(bold=True),
        ("Generic", "Subheading"): Style(color="cyan"),
    }
)


def code_theme(name: str) -> SyntaxTheme:
    """The colours of code for the setting terminal.theme: auto, dark or light."""
    if name == "dark":
        return ANSISyntaxTheme(ANSI_DARK)
    if name == "light":
        return ANSISyntaxTheme(ANSI_LIGHT)
    return _ANY_BACKGROUND
