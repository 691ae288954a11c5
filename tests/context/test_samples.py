"""What samples of a request say of another vocabulary."""

from __future__ import annotations

import pytest

from nca.context.calibration import own_per_raw
from nca.context.request import resolve
from nca.messages import Message
from nca.vocabulary import Name, count, count_in
from tests.context.logs import history_of
from tests.context.samples import assistant, compacted, step, user

TEXTS = {
    "code": "def clamp(value: int, low: int = 0) -> int:\n    return max(low, min(value, self.limits[name]))\n\n",
    "hex": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n",
    "prose": "The results of the survey were discussed at length, and nobody agreed with what it said. ",
    "chinese": "会议讨论了调查结果，没有人同意它的说法。",
}


def talked(*texts: str) -> list[Message]:
    return [message for text in texts for message in (user(text), assistant(text))]


@pytest.mark.parametrize("vocabulary", ["cl100k", "claude"])
@pytest.mark.parametrize("kind", TEXTS)
def test_a_request_of_one_kind_has_the_ratio_of_its_kind(kind: str, vocabulary: Name) -> None:
    text = TEXTS[kind] * 300
    history = history_of(talked(*[text] * 12))
    found = own_per_raw(resolve(history), vocabulary)
    assert found == pytest.approx(count_in(vocabulary, [text]) / count(text), rel=0.03)


def test_each_place_counts_the_same_however_long_its_message_is() -> None:
    texts = [TEXTS["prose"], TEXTS["hex"] * 2_000, *[TEXTS["prose"]] * 30]
    history = history_of([*talked(*texts), *step("a", TEXTS["code"] * 900, path="a.py")])
    whole = [text for entry in history.entries for text in (entry.message.text,) if text]
    expected = count_in("claude", whole) / sum(map(count, whole))
    assert own_per_raw(resolve(history), "claude") == pytest.approx(expected, rel=0.05)


def test_what_is_hidden_does_not_count_and_what_goes_along_does() -> None:
    history = history_of([*talked(*[TEXTS["chinese"] * 400] * 8), *talked(TEXTS["prose"] * 40), user("Go on.")])
    before = own_per_raw(resolve(history), "claude")
    compacted(history, 8_000, stages=["truncate"])
    assert own_per_raw(resolve(history), "claude") < before
    assert own_per_raw([user("Hi.")], "claude", [TEXTS["chinese"] * 100]) > 1.3
    assert own_per_raw([], "claude") == 1.0
