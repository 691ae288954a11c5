"""Redact API keys and passwords in text: in what a person did not type of a request, and in exports.

Three kinds of text are replaced:

- the exact values of known keys, also base64- and percent-encoded (`nca.models.providers` collects them)
- strings in the documented key formats of well-known services, each with a fixed prefix
- random-looking values assigned to a name such as `token` or `password`, and passwords in URLs

Prose, hashes and code stay as they are.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from nca.humanize import clean_text
from nca.words import Words, merged

FEWEST_CHARS = 8
"""Shorter values are not real keys, and would match ordinary words."""

REDACTED = "[redacted]"
PLACEHOLDER = REDACTED.rstrip("]")
"""What every placeholder begins with."""

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
_MARKS = (
    *("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "AIza", "hf_", "gsk_"),
    *("xai-", "xox", "k_live_", "k_test_", "npm_", "pypi-", "eyJ"),
)
"""Each format contains one of these. Searching for them first is ten times as fast; most text contains none."""
_SHAPE = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_SHAPES) + r")(?![A-Za-z0-9])")
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)


_ASSIGNED = re.compile(
    r"""((?:api_?key|secret|token|passw(?:or)?d|credential|auth|bearer|basic|access_?key|private_?key)"""
    r"""[\w-]{0,40}["']?(?:[ \t]*(?:=>|[:=])[ \t]*|[ \t]+)["']?(?:(?:bearer|basic|token)[ \t]+)?)"""
    r"""([A-Za-z0-9+/_=.~-]{16,}+)""",
    re.IGNORECASE,
)
_PASSWORD = re.compile(
    r"""(pass(?:(?:w(?:or)?d|phrase)["']?(?:[ \t]*(?:=>|[:=])[ \t]*|[ \t]+)|["']?=)["']?)"""
    r"""((?!\$)[^\s"'`,;&(){}\[\]<>\\]{8,}+)""",
    re.IGNORECASE,
)
"""Behind a name that ends in the word, or `PASS=`, a shorter value is one too, and of any characters."""
_ASSIGNED_WORDS = ("key", "secret", "token", "passw", "credential", "auth", "bearer", "basic")
_IN_ADDRESS = re.compile(
    r"(://[^\s/:@\"'<>]{0,80}:)(?!(?:pass|passwd|password|pwd|secret)@)([^\s/@\"'<>$%{*]{4,}+)(?=@)"
)
"""A value of any length in linear time: none is looked at twice, as what follows one is judged in `_assigned`, and an
address begins with a character that no password has."""
_NO_BYTE = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
_FEWEST_DIGITS = 3
_FEWEST_CHANGES = 0.3
"""Share of adjacent characters of different classes (upper, lower, digit): about half in random text, less in words."""
_AWS_SECRET = re.compile(
    r"(secret_?access_?key[\"']?[ \t]*[:=][ \t]*[\"']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])", re.IGNORECASE
)


def _is_random(value: str) -> bool:
    sorts = ["d" if char.isdigit() else "u" if char.isupper() else "l" if char.islower() else "-" for char in value]
    changes = sum(one != other for one, other in pairwise(sorts))
    has_both = sorts.count("d") >= _FEWEST_DIGITS and len(sorts) - sorts.count("d") >= _FEWEST_DIGITS
    return has_both and changes >= _FEWEST_CHANGES * len(value)


def _assigned(found: re.Match[str]) -> str:
    text, end = found.string, found.end()
    is_code = text.startswith(("(", "["), end) and not text.startswith(PLACEHOLDER, end)
    return found[0] if is_code or not _is_random(found[2]) else f"{found[1]}{REDACTED}"


def _forms(value: str) -> set[str]:
    """The value as it may appear in files, output and URLs. Bytes that are not UTF-8 are lone surrogates in it."""
    raw = _NO_BYTE.sub("\ufffd", value).encode("utf-8", "surrogateescape")
    shown = {value, clean_text(value), raw.decode("utf-8", "replace")}
    return shown | {base64.b64encode(raw).decode().rstrip("="), quote(raw, safe=""), quote(raw)}


class Redactor:
    """Replaces keys in text, and in nested values. Idempotent."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        """`secrets`: known values by name; the name is shown in the placeholder."""
        self._names: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None
        self.learn(secrets or {})

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Replace these values as well from now on."""
        for name, value in secrets.items():
            if len(value) >= FEWEST_CHARS:
                self._names.update(dict.fromkeys(_forms(value), name))
        # Longest first: a key may be the beginning of another one.
        alternatives = "|".join(re.escape(value) for value in sorted(self._names, key=len, reverse=True))
        self._known = re.compile(alternatives) if alternatives else None

    def clean(self, text: str) -> str:
        """Text of a file or a tool, ready to be logged and sent: valid Unicode without keys."""
        return self.text(clean_text(text))

    def text(self, text: str) -> str:
        if self._known is not None and any(value in text for value in self._names):
            text = self._known.sub(lambda found: f"[redacted {self._names[found[0]]}]", text)
        text = _PRIVATE_KEY.sub(REDACTED, text) if "PRIVATE KEY" in text else text
        text = _SHAPE.sub(REDACTED, text) if any(mark in text for mark in _MARKS) else text
        text = _IN_ADDRESS.sub(rf"\1{REDACTED}", text) if "://" in text else text
        lowered = text.lower()
        if "pass" in lowered:
            text = _PASSWORD.sub(_assigned, text)
        if not any(word in lowered for word in _ASSIGNED_WORDS):
            return text
        return _ASSIGNED.sub(_assigned, _AWS_SECRET.sub(rf"\1{REDACTED}", text))

    def said(self, said: Words) -> Words:
        """The words without keys in what nobody typed. Of an unknown source, they may be typed."""
        whole = merged(said) or said
        return tuple(
            one if one.source in ("typed", "foreign") else one._replace(text=self.text(one.text)) for one in whole
        )

    def value(self, value: Any) -> Any:
        """A copy of a JSON value with every string redacted; object keys stay."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self.value(item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value


KEYS_BY_SHAPE = Redactor()
"""Knows no key by its value."""
