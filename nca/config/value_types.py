"""The types of value that a setting can have: how each is parsed, checked and described.

A ValueType turns what a person wrote (a TOML value, or text from the environment or `/config`) into the typed value,
or raises ValueError. Nothing else decides what a setting accepts.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, NamedTuple, NoReturn, dataclass_transform
from urllib.parse import parse_qs, urlsplit

_UNUSABLE = re.compile("[\\0\ud800-\udfff]")
"""NUL and lone surrogates: they come from undecodable environment variables, and no request can carry them."""
_VARIABLE = re.compile(r"[A-Za-z0-9_.-]+=")
_NUMBER = re.compile(r"[+-]?(\d[\d_,]*)(\.\d+)?([kKmM]?)")

_BOOLEANS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}

LOWEST_BARE_PERCENTAGE = 10
"""A number between 1 and this needs a percent sign: 7.5 is more likely a slip for 0.75 than meant as 7.5%."""
OUTSIDE = "a project's own file may only name files inside the project."


class InvalidValue(ValueError):
    """A refusal with its own explanation.

    The text is appended to the setting's name; `path` leads to the invalid part of the value.
    """

    def __init__(self, text: str, *path: str) -> None:
        super().__init__(text)
        self.path = path


class ValueType(NamedTuple):
    """The type of a setting.

    valid    the phrase after "valid: " in an error
    read     parses a raw value; raises ValueError
    choices  offered by completion
    confine  raises InvalidValue for a value that a project's own file may not set
    row      the dataclass of one table, for a list of tables or tables by name
    merge    joins the values of two layers; None: the later layer replaces the earlier
    is_named whether the setting holds tables by name: `[key.NAME]`
    names_models  whether its values are names of models, which completion offers
    """

    valid: str
    read: Callable[[Any], Any]
    choices: tuple[str, ...] = ()
    confine: Callable[[Any], None] | None = None
    row: Any = None
    merge: Callable[[Any, Any], Any] | None = None
    is_named: bool = False
    names_models: bool = False


def _refuse() -> ValueError:
    return ValueError("not valid")


def boolean() -> ValueType:
    def read(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in _BOOLEANS:
            return _BOOLEANS[value.strip().lower()]
        raise _refuse()

    return ValueType("true or false", read, ("true", "false"))


def added(base: ValueType) -> ValueType:
    """A list to which a later layer adds."""

    def merge(current: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys((*current, *new)))

    return base._replace(merge=merge)


def variables(valid: str = "a list of NAME=VALUE") -> ValueType:
    """Texts NAME=VALUE; a later layer adds, and replaces those of the same name."""

    def read(value: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = texts().read(value)
        if not all(_VARIABLE.match(one) for one in found):
            raise _refuse()
        return found

    def merge(current: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for name, value in dict(one.split("=", 1) for one in (*current, *new)).items())

    return ValueType(valid, read, merge=merge)


def text() -> ValueType:
    def read(value: Any) -> str:
        if not isinstance(value, str) or _UNUSABLE.search(value):
            raise _refuse()
        return value

    return ValueType("text", read)


def one_line() -> ValueType:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise _refuse()
        return value.strip()

    return ValueType("one line of text", read)


def postgres_url() -> ValueType:
    """An address of a PostgreSQL database. It holds no password, so nothing that shows a setting shows one."""

    def read(value: Any) -> str:
        url: str = text().read(value).strip()
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if url and parts.scheme not in ("postgresql", "postgres"):
            raise InvalidValue(": not an address such as postgresql://ada@db.example/nca. Empty: a file.")
        if parts.password or "password" in parse_qs(parts.query):
            raise InvalidValue(": write no password here. PostgreSQL reads it from ~/.pgpass or PGPASSWORD.")
        return url

    return ValueType("postgresql://USER@HOST/DATABASE", read)


def web_address() -> ValueType:
    """An address of a server that speaks HTTP; empty for none."""

    def read(value: Any) -> str:
        address: str = text().read(value).strip()
        if address and not is_web_address(address):
            raise _refuse()
        return address

    return ValueType("an address that begins with http:// or https://", read)


def is_web_address(address: str) -> bool:
    """Whether an address has the scheme of the web, a host and, if any, a port that can be one."""
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and address.isprintable()


def file_path() -> ValueType:
    """A file's path, absolute or relative to the project's directory; `~` is the user's home."""

    def confine(value: str) -> None:
        if not lies_inside(value):
            raise InvalidValue(f" = {value!r}: {OUTSIDE}")

    return ValueType("a file's path", one_line().read, confine=confine)


def lies_inside(name: str) -> bool:
    """Whether a path, as written, stays inside the directory it is relative to. Links are checked on opening."""
    if name.startswith("~") or PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor:
        return False
    depth = 0
    for part in PureWindowsPath(name).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def choice(*options: str, aliases: dict[Any, str] | None = None) -> ValueType:
    """One of `options`; `aliases` maps other accepted spellings. True and False cover all words of a boolean."""
    words = {word: (aliases or {})[meaning] for word, meaning in _BOOLEANS.items() if meaning in (aliases or {})}

    def read(value: Any) -> str:
        if isinstance(value, str):
            value = value.strip().lower()
            value = words.get(value, value) if value not in options else value
        for alias, meaning in (aliases or {}).items():
            if type(alias) is type(value) and alias == value:
                return meaning
        if isinstance(value, str) and value in options:
            return value
        raise _refuse()

    return ValueType("one of " + ", ".join(options), read, options)


def whole(minimum: int = 0, maximum: int = 1_000_000_000) -> ValueType:
    """A whole number; `80k`, `1M`, `80_000` and `80,000` are accepted."""

    def read(value: Any) -> int:
        number = value
        if isinstance(value, str):
            match = _NUMBER.fullmatch(value.strip())
            if match is None:
                raise _refuse()
            number = float(match[1].replace("_", "").replace(",", "") + (match[2] or ""))
            number *= {"": 1, "k": 1_000, "m": 1_000_000}[match[3].lower()]
            number = -number if value.strip().startswith("-") else number
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _refuse()
        if not minimum <= number <= maximum or number != int(number):
            raise _refuse()
        return int(number)

    return ValueType(f"a whole number from {minimum:,} to {maximum:,}", read)


def ratio(*, zero: bool = False) -> ValueType:
    """A share: `0.8`, `80%` and `80` all mean 0.8. Zero is valid only with `zero`.

    A bare number above 1 and below 10 is refused, because nobody can tell what it means: write `0.75` or `7.5%`.
    """
    valid = f"a share {'from 0' if zero else 'above 0'} up to 1 (0.8, 80% and 80 mean the same)"

    def read(value: Any) -> float:
        written = value.strip() if isinstance(value, str) else value
        has_sign = isinstance(written, str) and written.endswith("%")
        share = _as_float(written.removesuffix("%") if has_sign else written)
        if not has_sign and 1 < share < LOWEST_BARE_PERCENTAGE:
            hint = f"did you mean {share / 10:g} or {share:g}%?"
            raise InvalidValue(f" = {value!r} is not valid; valid: {valid}; {hint}")
        if has_sign or share > 1:
            share /= 100
        if not (0 if zero else 1e-9) <= share <= 1:
            raise _refuse()
        return share

    return ValueType(valid, read)


def or_word(word: str, other: ValueType) -> ValueType:
    """A word, or a value of another type."""

    def read(value: Any) -> Any:
        return word if isinstance(value, str) and value.strip().lower() == word else other.read(value)

    return other._replace(valid=f"{word}, or {other.valid}", read=read, choices=(word, *other.choices))


def number(minimum: float, maximum: float) -> ValueType:
    def read(value: Any) -> float:
        found = _as_float(value)
        if not minimum <= found <= maximum:
            raise _refuse()
        return found

    return ValueType(f"a number from {minimum:g} to {maximum:g}", read)


def _as_float(value: Any) -> float:
    """A finite number, also from text. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _refuse()
    try:
        found = float(value)
    except (ValueError, OverflowError):
        raise _refuse() from None
    if not math.isfinite(found):
        raise _refuse()
    return found


def texts(options: Sequence[str] = (), aliases: Mapping[str, str] | None = None) -> ValueType:
    """A list of texts; one text with commas is read as a list. With `options`, each must be one of them, and unique."""
    meanings = aliases or {}

    def read(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [item.strip() for item in value.strip().strip("[]").split(",")]
            value = [item.strip("\"'") for item in value if item]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise _refuse()
        if any(_UNUSABLE.search(item) for item in value):
            raise _refuse()
        items = tuple(meanings.get(item, str(item)) for item in value)
        if options and (len(set(items)) < len(items) or any(item not in options for item in items)):
            raise _refuse()
        return items

    valid = "a list of " + (", ".join(options) + ", each at most once" if options else "texts")
    return ValueType(valid, read, tuple(options))


def model_names(names: ValueType) -> ValueType:
    """The same type for names of models; a project's own file may not give one that contains an address.

    litellm reads `huggingface/https://HOST/` as the endpoint HOST.
    """

    def confine(value: Any) -> None:
        if "://" in str(value):
            raise InvalidValue(": a project's own file may only name models, not addresses.")

    return names._replace(confine=confine, names_models=True)


def setting(
    default: Any, value_type: ValueType, *, unit: str = "", user_only: bool = False, at_start: bool = False
) -> Any:
    """A dataclass field for one setting. What it means is in meanings.toml.

    unit       "" if the name ends in it (`max_bytes`), or if there is none
    user_only  a project's own file may never set it, because it could run programs or redirect keys; what else such a
               file may set is in nca.config.harmless
    at_start   read only when nca starts: set in a chat, it changes nothing there
    """
    about_it = {"value_type": value_type, "unit": unit, "user_only": user_only, "at_start": at_start}
    return dataclasses.field(default=default, metadata=about_it)


def table(settings: type, about: str) -> Any:
    """A dataclass field for a table of settings."""
    return dataclasses.field(default_factory=settings, metadata={"about": about})


@dataclass_transform(frozen_default=True)
class Table:
    """A table of settings, which is a frozen dataclass. Of 20 classes, dataclasses would compile all methods at each
    start: an eighth of what nca does before the prompt. So these share theirs.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclasses writes the signature
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        known = {item.name: item for item in dataclasses.fields(self)}
        given = dict(zip(known, values, strict=False)) | named
        if len(given) < len(values) + len(named) or not given.keys() <= known.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(known)}, each at most once")
        for name, item in known.items():
            if name not in given:
                given[name] = item.default if item.default_factory is dataclasses.MISSING else item.default_factory()
        self.__dict__.update(given)
        if check := getattr(self, "__post_init__", None):
            check()

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[item.name] for item in dataclasses.fields(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
