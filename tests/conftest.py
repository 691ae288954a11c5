"""What all tests share: how properties are tried."""

from __future__ import annotations

from hypothesis import settings

# No test asserts timing: how long an example takes depends on what else the machine does.
settings.register_profile("nca", deadline=None)
settings.load_profile("nca")
