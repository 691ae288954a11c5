"""How many examples the property tests of the engine try.

Their examples are 500 together, or as many as NCA_FUZZ_EXAMPLES says (`make fuzz`); each property takes its share.
The stateful machine takes one for every forty of them on top: one of its examples is some thirty steps.
A test run tries the same examples each time, so it fails for what was changed; the search tries others.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

USUAL_EXAMPLES = 500
EXAMPLES = int(os.environ.get("NCA_FUZZ_EXAMPLES") or USUAL_EXAMPLES)
IS_SEARCH = EXAMPLES > USUAL_EXAMPLES
"""A long search, not a test run: there is time for whole grids."""
patient = pytest.mark.timeout(0 if IS_SEARCH else 900)
"""For the tests that take most of the time: a slow machine is no failure."""


def trying(share: float, *, steps: int = 50) -> settings:
    """Settings for a property that tries this share of all examples; `steps` is for machines only."""
    return settings(
        max_examples=max(1, round(share * EXAMPLES)),
        stateful_step_count=steps,
        deadline=None,
        derandomize=not IS_SEARCH,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
