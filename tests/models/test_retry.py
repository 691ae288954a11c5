import pytest

from nca.errors import ProviderError, ProviderFailure
from nca.events import RetryScheduled
from nca.models.failures import LONGEST_SECONDS, PassingFailure, backoff_seconds, with_retries


def _failure(*, retry_after: float | None = 0.0, most: int | None = None) -> PassingFailure:
    failure = PassingFailure("busy", failure=ProviderFailure("backoff", False, retry_after_seconds=retry_after))
    failure.most_retries = most
    return failure


class Attempts:
    """Fails with `failures` in turn, then answers; knows what was waited and said."""

    def __init__(self, *failures: ProviderError) -> None:
        self.failures = list(failures)
        self.made = 0
        self.waited: list[float] = []
        self.said: list[RetryScheduled] = []

    async def attempt(self) -> str:
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    async def run(self, *, max_retries: int = 5, may_retry: bool = True) -> str:
        return await with_retries(
            self.attempt,
            max_retries=max_retries,
            may_retry=lambda: may_retry,
            on_retry=self.said.append,
            sleep=self.sleep,
        )


async def test_a_passing_failure_is_tried_again_and_said() -> None:
    attempts = Attempts(_failure(retry_after=3.0), _failure(retry_after=None))
    assert await attempts.run() == "answer"
    assert attempts.made == 3
    assert attempts.waited[0] == 3.0
    assert [event.attempt for event in attempts.said] == [1, 2]
    assert attempts.said[0].reason == "busy"


@pytest.mark.parametrize(
    ("failures", "options", "made"),
    [
        ([_failure() for _ in range(9)], {"max_retries": 2}, 3),
        ([_failure() for _ in range(9)], {"max_retries": 0}, 1),
        ([_failure(most=1) for _ in range(9)], {}, 2),
        ([_failure(most=1) for _ in range(9)], {"max_retries": 0}, 1),
        ([_failure(retry_after=61.0)], {}, 1),
        ([_failure()], {"may_retry": False}, 1),
        ([ProviderError("no")], {}, 1),
    ],
)
async def test_tries_are_bounded(failures: list[ProviderError], options: dict[str, int], made: int) -> None:
    attempts = Attempts(*failures)
    with pytest.raises(ProviderError) as raised:
        await attempts.run(**options)  # type: ignore[arg-type]
    assert attempts.made == made
    assert (f"; tried {made} times, " in raised.value.message) == (made > 1)
    assert ", 0 s in all" not in raised.value.message


def test_back_off_doubles_with_jitter_up_to_a_bound() -> None:
    for attempt in range(1, 40):
        full = min(LONGEST_SECONDS, 0.5 * 2 ** (attempt - 1))
        assert full / 2 <= backoff_seconds(attempt) <= full
