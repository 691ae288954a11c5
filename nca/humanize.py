"""Numbers, sizes and times as people read them: 86k, 1 message, 2 min 05 s, 1.2 MB."""

from __future__ import annotations

import time

_MILLION = 1_000_000


def short_tokens(count: int) -> str:
    """A token count where space is short: 950, 9.9k, 86k, 1.2M."""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / _MILLION:.1f}M"


def counted(number: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 message, 1,234 messages. Pass `many` for an irregular plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """A time span: 0.4 s, 12 s, 2 min 05 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def percent(ratio: float) -> str:
    """A share as a whole percentage. A share above zero is never shown as 0%."""
    return "<1%" if 0 < ratio < 0.005 else f"{ratio:.0%}"


def byte_size(count: int) -> str:
    """A size in decimal units: 512 bytes, 340 kB, 1.2 MB, 398 MB, 2.5 GB."""
    if count < 1_000:
        return f"{count} bytes"
    if count < 999_500:
        return f"{count / 1_000:.0f} kB"
    if count < 9_950_000:
        return f"{count / _MILLION:.1f} MB"
    return f"{count / _MILLION:.0f} MB" if count < 999_500_000 else f"{count / 1e9:.1f} GB"


def local_time(at: float) -> str:
    """A Unix time as local date and time; "unknown time" if it is out of range."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "unknown time"
