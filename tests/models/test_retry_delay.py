from datetime import UTC, datetime

import pytest

from nca.models.retry_delay import LONGEST_SECONDS, backoff_seconds, retry_after_seconds

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after": "-1"}, "", 0.0),
        ({"retry-after": "Tue, 01 Jan 2030 12:01:00 GMT"}, "", 60.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "86400"}, "", 86_400.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({}, "Please try again in 4.77s. Need more?", 4.77),
        ({}, "Please try again in 6ms.", 0.006),
        ({}, "try again in 1m30s", 90.0),
        ({}, "Please retry after 86400 seconds.", 86_400.0),
        ({}, '"retryDelay": "37s"', 37.0),
        ({}, "Rate limit reached.", None),
        ({}, "", None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], text: str, seconds: float | None) -> None:
    found = retry_after_seconds(headers, text, now=NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_back_off_doubles_with_jitter_up_to_a_bound() -> None:
    for attempt in range(1, 40):
        full = min(LONGEST_SECONDS, 0.5 * 2 ** (attempt - 1))
        assert full / 2 <= backoff_seconds(attempt) <= full
