"""The price map as it is on the network today: fetched by `nca models refresh`, checked, and kept in the cache.

Nothing else fetches it. The file is used until another release of litellm is installed; its map may be newer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from nca.config.paths import cache_dir
from nca.errors import NcaError, UsageError, system_reason
from nca.humanize import counted
from nca.models.providers import MOST_TOKENS, is_loopback, within

CHATS = ("chat", "responses")
"""Modes of chat models. The windows of embedding, image and completion models mean something else."""

KINDS = {
    "input_cost_per_token": "input_cost",
    "output_cost_per_token": "output_cost",
    "cache_read_input_token_cost": "cache_read_cost",
    "cache_creation_input_token_cost": "cache_write_cost",
}
"""The map's names of the four prices, and nca's."""
ABOVE = re.compile(rf"({'|'.join(KINDS)})_above_(\d+)k_tokens")

MOST_DOLLARS = 0.01
"""The highest price of a token that is believed: 10,000 dollars for a million, ten times the dearest of 2026."""
_MOST_CHARS = 200
_MOST_TIERS = 20

_Count = Annotated[float, msgspec.Meta(ge=0, le=MOST_TOKENS)]
_Price = Annotated[float, msgspec.Meta(ge=0, le=MOST_DOLLARS)]
_Word = Annotated[str, msgspec.Meta(max_length=_MOST_CHARS)]


class _Tier(msgspec.Struct):
    range: list[_Count] = []
    input_cost_per_token: _Price | None = None
    output_cost_per_token: _Price | None = None
    cache_read_input_token_cost: _Price | None = None
    cache_creation_input_token_cost: _Price | None = None


_TYPES: dict[str, Any] = {
    **dict.fromkeys(KINDS, _Price),
    **dict.fromkeys(("max_input_tokens", "max_output_tokens"), _Count),
    **dict.fromkeys(("supports_function_calling", "supports_vision", "supports_reasoning"), bool),
    **dict.fromkeys(("litellm_provider", "mode"), _Word),
    "supports_anthropic_compaction": bool,
    "tiered_pricing": Annotated[list[_Tier], msgspec.Meta(max_length=_MOST_TIERS)],
}
"""What nca reads of a row, and what each value is."""


def checked(name: str, row: Any) -> dict[str, Any] | None:
    """The facts that nca reads from a chat model's row; None for others. Raises ValueError for an impossible value."""
    if not isinstance(row, dict) or row.get("mode") not in CHATS:
        return None
    if not 0 < len(name) <= _MOST_CHARS or not name.isprintable():
        raise ValueError("name")
    kept = {key: value for key, value in row.items() if value is not None and _is_valid(key, value)}
    if "litellm_provider" not in kept:
        raise ValueError("litellm_provider")
    return kept


def _is_valid(key: str, value: Any) -> bool:
    """Whether nca reads this value. Raises ValueError if it should, and cannot."""
    kind = _Price if ABOVE.fullmatch(key) else _TYPES.get(key)
    if kind is None:
        return False
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(key) from error
    if isinstance(value, str) and not value.isprintable():
        raise ValueError(key)
    return True


FILE_NAME = "model_prices.json"
NEWER = Path(__file__).with_name("newer_models.json")
"""Rows of our own, in litellm's shape: models that the oldest litellm of the tested range lacks or has wrong."""
ADDRESS = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
VARIABLE = "NCA_PRICE_TABLE_URL"
"""Another address, such as a mirror. Not a setting: a project must not choose where prices come from."""
MOST_BYTES = 32 << 20
"""Ten times what the map has in late 2026."""
FEWEST_MODELS = 500
"""A map with fewer chat models is not the whole map."""
MOST_INVALID_RATIO = 0.02
_SECONDS = 30.0
MOST_SECONDS = 300.0
"""The map has some 2 MB: 50 kbit/s are enough."""


class RefreshFailed(NcaError):
    """The price map could not be fetched or is not what it should be. The one in use stays."""


class FetchedPrices(msgspec.Struct, frozen=True):
    """The file in the cache.

    day       when it was fetched, as in 2026-11-22
    litellm   the release of litellm that was installed then
    models    litellm's rows by name, with the fields that nca reads
    left_out  chat models with invalid rows
    """

    day: str
    source: str
    litellm: str
    models: dict[str, msgspec.Raw]
    left_out: int = 0


def path_of(env: Mapping[str, str]) -> Path:
    return cache_dir(env) / FILE_NAME


def read(env: Mapping[str, str]) -> FetchedPrices | None:
    """The map in the cache; None if there is none, if it is damaged, or if litellm is another release now."""
    try:
        data = path_of(env).read_bytes()
        fetched = msgspec.json.decode(data, type=FetchedPrices)
    except (OSError, NcaError, msgspec.MsgspecError):
        return None
    return fetched if fetched.litellm == litellm_version() else None


def in_use(env: Mapping[str, str]) -> str:
    """Which price map is used, and how old it is, in one line."""
    fetched = read(env)
    if fetched is None:
        newest = max(row["checked"] for row in msgspec.json.decode(NEWER.read_bytes()).values())
        return (
            f"litellm {litellm_version() or '(not installed)'}'s map, and newer models as of {newest}."
            " `nca models refresh` fetches the newest map."
        )
    age = _days_since(fetched.day)
    return f"fetched on {fetched.day} ({age}) from {fetched.source}, {len(fetched.models):,} models."


def refresh(env: Mapping[str, str], *, seconds: float = MOST_SECONDS) -> FetchedPrices:
    """Fetch the map, check it and put it in the cache. Raises RefreshFailed, UsageError; then nothing has changed.

    seconds  for all of the answer
    """
    address = env.get(VARIABLE, "").strip() or ADDRESS
    _refuse_address(address)
    models, left_out = _checked(_fetched(address, seconds), address)
    fetched = FetchedPrices(time.strftime("%Y-%m-%d"), address, litellm_version(), models, left_out)
    _write(path_of(env), msgspec.json.encode(fetched))
    return fetched


def _days_since(day: str) -> str:
    try:
        days = (date.today() - date.fromisoformat(day)).days
    except ValueError:
        return "on an unknown day"
    return "today" if days <= 0 else f"{counted(days, 'day')} ago"


def litellm_version() -> str:
    return version_of("litellm")


def version_of(package: str) -> str:
    """The installed version of a package; "" if there is none."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _refuse_address(address: str) -> None:
    scheme = urlsplit(address).scheme
    if scheme != "https" and not (scheme == "http" and is_loopback(address)):
        raise UsageError(
            f"{VARIABLE}: {address} is not valid.", advice="Valid: an https address, or http on this machine."
        )


def _fetched(address: str, seconds: float) -> bytes:
    import httpx2

    from nca.models.redirects import RedirectRefused

    try:
        return within(seconds, partial(_received, address), late=f"it was not complete after {seconds:g} seconds")
    except RedirectRefused as error:
        raise RefreshFailed(
            f"{error}, which nca does not follow; the price map stays.", advice=f"Set {VARIABLE} to the right address."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        said = str(error).strip() or type(error).__name__
        raise RefreshFailed(
            f"{address} could not be read ({said}); the price map stays.", advice=f"{VARIABLE} may name a mirror."
        ) from error


def _received(address: str) -> bytes:
    import httpx2

    from nca.models.redirects import certificates_for, refuse_elsewhere

    received = bytearray()
    client = httpx2.Client(
        timeout=_SECONDS,
        follow_redirects=True,
        trust_env=not is_loopback(address),
        verify=certificates_for(address),
        # The address may hold a password or a token of a mirror.
        event_hooks={"response": [refuse_elsewhere]},
    )
    with client, client.stream("GET", address) as response:
        if response.status_code != 200:
            raise RefreshFailed(f"{address} answered with status {response.status_code}; the price map stays.")
        for piece in response.iter_bytes():
            received += piece
            if len(received) > MOST_BYTES:
                raise RefreshFailed(f"{address} sent more than {MOST_BYTES >> 20} MB; the price map stays.")
    return bytes(received)


def _checked(data: bytes, address: str) -> tuple[dict[str, msgspec.Raw], int]:
    """The rows of all chat models, and how many are not valid. Raises RefreshFailed."""
    try:
        rows: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise RefreshFailed(f"{address} sent no JSON object ({error}); the price map stays.") from error
    kept: dict[str, msgspec.Raw] = {}
    wrong: list[str] = []
    for name, row in rows.items():
        try:
            values = checked(name, row)
        except ValueError as error:
            wrong.append(f"{name}: {error}")
            continue
        if values is not None:
            kept[name] = msgspec.Raw(msgspec.json.encode(values))
    if len(kept) < FEWEST_MODELS:
        raise RefreshFailed(
            f"{address} has {len(kept)} chat models; valid: at least {FEWEST_MODELS}. The price map stays."
        )
    if len(wrong) > MOST_INVALID_RATIO * len(kept):
        raise RefreshFailed(
            f"{address} has {len(wrong)} models with values that cannot be true ({wrong[0]}); the price map stays."
        )
    return kept, len(wrong)


def _write(path: Path, content: bytes) -> None:
    from nca.safe_files import write_atomically

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, content)
    except OSError as error:
        raise RefreshFailed(f"{path} cannot be written: {system_reason(error)}.") from error
