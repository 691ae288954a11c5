"""The meter for a model: what is known of how its provider counts, from what the session was measured with before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from nca.context.calibration import Calibration, Lessons
from nca.context.history import History
from nca.context.meter import Meter
from nca.models.catalog import ModelFacts
from nca.sessions.usage import Learned


def meter_for(
    facts: ModelFacts,
    learned: Learned,
    before: Meter,
    history: History,
    *,
    count_as: str,
    system_prompt: str,
    tools: Sequence[dict[str, Any]],
) -> tuple[Meter, bool]:
    """The meter, and whether it continues from the one `before`: then nothing is to be learned from reports again.

    It does for the same model. Another name alone changes no count: what a provider reported holds for another model of
    its own with the same tokenizer, and what it taught as long as nothing is known of that one.
    """
    unlearned = Calibration.unlearned(facts.provider, facts.name, count_as=count_as)
    is_same = before.model == facts.name
    is_alike = (before.provider, before.calibration.tokenizer) == (facts.provider, unlearned.tokenizer)
    goes_on = is_same or (bool(before.model) and is_alike and not learned.samples)
    if is_same:
        calibration = before.calibration
    elif goes_on:
        calibration = replace(before.calibration, samples=0, lessons=Lessons())
    else:
        calibration = unlearned.taught(learned.ratio, learned.samples)
        history.call_raw = 0
    meter = Meter(
        model=facts.name,
        provider=facts.provider,
        calibration=calibration,
        system_prompt=system_prompt,
        tools=tools,
        anchor=before.anchor if is_same else None,
    )
    known = before.anchor
    if goes_on and not is_same and known is not None and known.subject == before.subject(history):
        meter.anchor = replace(known, subject=meter.subject(history))
    return meter, goes_on
