"""What a report teaches, and for whom an anchor is valid."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.calibration import (
    FEWEST_LESSONS,
    HIGHEST_RATIO,
    LOWEST_RATIO,
    Anchor,
    Calibration,
    Lessons,
    tokens_used,
)
from nca.context.tokenizers import O200K

UNLEARNED = Calibration.unlearned("mistral")

raws = st.integers(0, 3_000_000)


def test_unlearned_is_what_is_known_of_the_tokenizer() -> None:
    assert Calibration.unlearned() == Calibration(1.0, tokenizer=O200K, is_exact=True)
    assert Calibration.unlearned("mistral").ratio == 1.2
    assert Calibration.unlearned("anthropic").ratio == pytest.approx(1.06 * 1.11)
    assert Calibration.unlearned("anthropic").for_text(1.2).ratio == pytest.approx(1.06 * 1.2)
    assert Calibration.unlearned("openai", "gpt-4").for_text(1.02).ratio == 1.02


@given(st.integers(1_000, 100_000), st.floats(0.971, 1.029), st.integers(0, 900))
def test_an_exact_tokenizer_is_not_taught_by_what_a_provider_adds(raw: int, around: float, added: int) -> None:
    before = Calibration.unlearned("openai")
    after = before.learn(raw, round(raw * min(1.0, around)) + min(added, 900))
    assert after.is_exact
    assert after.ratio == 1.0
    assert after.extra_tokens >= 0


@pytest.mark.parametrize("truth", [0.8, 0.95, 1.08, 1.4])
def test_a_report_of_another_tokenizer_teaches_all_the_same(truth: float) -> None:
    """An endpoint may serve any model under OpenAI's names."""
    calibration = Calibration.unlearned("openai", "openai/gpt-4o")
    for raw in range(20_000, 80_000, 1_000):
        calibration = calibration.learn(raw, round(raw * truth))
    assert not calibration.is_exact
    assert calibration.ratio == pytest.approx(truth, rel=0.01)


def test_what_earlier_sessions_learned_is_taken_up() -> None:
    exact, other = Calibration.unlearned("openai"), Calibration.unlearned("mistral")
    assert exact.taught(1.3, 0) is exact
    assert exact.taught(1.01, 5) == msgspec.structs.replace(exact, samples=5)
    assert exact.taught(1.3, 5) == msgspec.structs.replace(exact, ratio=1.3, samples=5, is_exact=False)
    assert other.taught(1.05, 5) == msgspec.structs.replace(other, ratio=1.05, samples=5)


def test_the_first_report_is_taken_whole_and_later_ones_move_the_average() -> None:
    first = UNLEARNED.learn(1_000, 900)
    assert (first.ratio, first.samples) == (0.9, 1)
    second = first.learn(1_000, 1_000)
    assert 0.9 < second.ratio < 1.0
    assert second.samples == 2


@given(raws, st.integers(-5, 9_000_000))
def test_the_ratio_stays_within_its_clamps(raw: int, reported: int) -> None:
    before = Calibration(1.0, 3)
    after = before.learn(raw, reported)
    assert LOWEST_RATIO <= after.ratio <= HIGHEST_RATIO
    believable = raw >= 200 and LOWEST_RATIO <= reported / raw <= HIGHEST_RATIO
    assert (after is before) == (not believable)


@given(st.floats(LOWEST_RATIO, HIGHEST_RATIO))
def test_it_settles_on_what_is_reported(truth: float) -> None:
    calibration = UNLEARNED
    for raw in range(10_000, 60_000, 1_000):
        calibration = calibration.learn(raw, max(1, round(raw * truth)))
    assert calibration.ratio == pytest.approx(truth, rel=0.01)


@given(raws, raws)
def test_from_the_anchor_on_only_what_came_after_is_estimated(anchored: int, more: int) -> None:
    anchor = Anchor(("view",), anchored, 12_345)
    calibration = Calibration(0.8, 9)
    assert tokens_used(anchored, calibration, anchor, ("view",)) == 12_345
    assert tokens_used(anchored + more, calibration, anchor, ("view",)) == 12_345 + round(more * 0.8)


@given(raws, raws)
def test_an_anchor_of_another_subject_or_of_a_longer_request_is_not_used(anchored: int, raw: int) -> None:
    anchor = Anchor(("view",), anchored, 12_345)
    calibration = Calibration(0.8, 9)
    assert tokens_used(raw, calibration, anchor, ("another",)) == round(raw * 0.8)
    assert tokens_used(raw, calibration, None, ("view",)) == round(raw * 0.8)
    if raw < anchored:
        assert tokens_used(raw, calibration, anchor, ("view",)) == round(raw * 0.8)


def test_growth_between_two_reports_teaches_the_ratio_and_the_rest_is_extra() -> None:
    """A provider that adds 1,500 tokens to every request and counts 0.9 a raw token."""
    calibration, anchor = UNLEARNED, None
    for raw in range(1_000, 60_000, 2_000):
        reported = 1_500 + round(raw * 0.9)
        calibration = calibration.learn(raw, reported, anchor)
        anchor = Anchor(("view",), raw, reported)
    assert calibration.ratio == pytest.approx(0.9, rel=0.02)
    assert calibration.tokens(5_000) == pytest.approx(1_500 + 4_500, rel=0.05)


@given(st.lists(st.tuples(st.integers(200, 100_000), st.integers(1, 200_000)), max_size=12))
def test_a_request_that_shrinks_is_never_counted_below_its_ratio(reports: list[tuple[int, int]]) -> None:
    calibration, anchor = UNLEARNED, None
    for raw, reported in reports:
        calibration = calibration.learn(raw, reported, anchor)
        anchor = Anchor(("view",), raw, reported)
        assert calibration.extra_tokens >= 0
        assert LOWEST_RATIO <= calibration.ratio <= HIGHEST_RATIO


@given(raws, st.floats(LOWEST_RATIO, HIGHEST_RATIO), st.integers(0, 5_000), st.floats(LOWEST_RATIO, HIGHEST_RATIO))
def test_what_was_learned_explains_the_report_it_was_learned_from(
    raw: int, truth: float, grown: int, before: float
) -> None:
    calibration = Calibration(before, 3)
    reported = round(raw * truth)
    learned = calibration.learn(raw, reported)
    if learned is calibration:
        return
    assert learned.extra_tokens >= 0
    assert abs(learned.tokens(raw) - reported) <= 1
    later = learned.learn(raw + grown, reported + grown, Anchor(("view",), raw, reported))
    assert LOWEST_RATIO <= later.ratio <= HIGHEST_RATIO
    assert later is learned or abs(later.tokens(raw + grown) - (reported + grown)) <= 1


@given(st.floats(0.5, 2.5), st.integers(0, 3_000))
def test_what_a_provider_adds_to_every_request_is_told_from_the_ratio(truth: float, extra: int) -> None:
    calibration, anchor = UNLEARNED, None
    for raw in range(4_000, 120_000, 4_000):
        reported = round(raw * truth) + extra
        calibration = calibration.learn(raw, reported, anchor)
        anchor = Anchor(("view",), raw, reported)
    assert calibration.ratio == pytest.approx(truth, rel=0.05)
    assert calibration.extra_tokens == pytest.approx(extra, abs=0.05 * truth * 120_000)


def test_too_little_growth_teaches_the_ratio_nothing() -> None:
    calibration = Calibration(1.0, 3)
    assert calibration.learn(5_000, 6_000, Anchor(("view",), 4_950, 5_900)) == Calibration(1.0, 4, 1_000)


@given(st.floats(0.7, 1.6), st.integers(0, 150), st.integers(0, 6_000))
def test_a_fit_tells_text_calls_and_preamble_apart(ratio: float, per_call: int, preamble: int) -> None:
    """A session that begins with long reads and ends with many small calls: one ratio cannot say both."""
    lessons, raw, calls = Lessons(), 500, 0
    for step in range(60):
        raw += 4_000 if step < 10 else 200
        calls += 1 if step < 10 else 4
        lessons = lessons.add(raw, calls, round(raw * ratio + calls * per_call) + preamble)
    fitted = lessons.fit(1.15)
    assert fitted is not None
    small = fitted[0] * 5_000 + fitted[1] * 40 + fitted[2]
    assert small == pytest.approx(5_000 * ratio + 40 * per_call + preamble, rel=0.03)


def test_few_reports_and_reports_that_make_no_sense_teach_no_fit() -> None:
    lessons = Lessons()
    for number in range(1, FEWEST_LESSONS):
        lessons = lessons.add(1_000 * number, number, 1_100 * number)
    assert lessons.fit(1.0) is None
    assert lessons.add(9_000, 9, 9_900).fit(1.0) is not None
    odd = Lessons()
    for number in range(1, 20):
        odd = odd.add(1_000 * number, number, 90_000 - 4_000 * number)
    assert odd.fit(1.0) is None
