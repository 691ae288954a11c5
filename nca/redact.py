"""Taking keys out of text that leaves the machine's private files, such as an export.

Two ways: the exact values of known keys (the caller collects them, see `nca.models.secrets`), and the shapes in
which well-known services write theirs. The shapes are those that the services document for secret scanning; each
begins with a fixed prefix, so prose and hashes are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FEWEST_CHARS = 8
"""A known value shorter than this is no real key, and would be found in ordinary words."""

REDACTED = "[redacted]"

_SHAPES = (
    r"sk-(?:[A-Za-z0-9]+-)*[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, OpenRouter, DeepSeek
    r"gh[pousr]_[A-Za-z0-9]{36,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",  # GitLab
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS key ids
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"hf_[A-Za-z0-9]{30,}",  # Hugging Face
    r"gsk_[A-Za-z0-9]{40,}",  # Groq
    r"xai-[A-Za-z0-9]{40,}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{40,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",  # JSON web tokens
)
_SHAPE = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_SHAPES) + r")(?![A-Za-z0-9])")
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)


class Redactor:
    """Replaces keys in texts and in values made of them. Idempotent."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        """`secrets`: known values by the names that stand in their place."""
        known = {value: name for name, value in (secrets or {}).items() if len(value) >= FEWEST_CHARS}
        self._names = known
        # The longest first, so that a key which another one begins with does not leave its end behind.
        alternatives = "|".join(re.escape(value) for value in sorted(known, key=len, reverse=True))
        self._known = re.compile(alternatives) if alternatives else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(lambda found: f"[redacted {self._names[found[0]]}]", text)
        text = _PRIVATE_KEY.sub(REDACTED, text) if "PRIVATE KEY" in text else text
        return _SHAPE.sub(REDACTED, text)

    def value(self, value: Any) -> Any:
        """A copy of what JSON can hold, with every text in it redacted; keys of objects stay."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self.value(item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value
