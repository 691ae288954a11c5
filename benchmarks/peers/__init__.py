"""Compactions of other projects, each in an environment of its own and behind one small adapter (see `side`)."""
