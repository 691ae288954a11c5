"""What all tests share: how properties are tried."""

from __future__ import annotations

import signal

from hypothesis import settings

# No test asserts timing: how long an example takes depends on what else the machine does.
settings.register_profile("nca", deadline=None)
settings.load_profile("nca")

# Whoever runs the tests in the background (nohup, a script's `&`) has these ignored, and programs inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
