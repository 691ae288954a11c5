"""Adapters to the compactions of other programs, each in its own environment (see `side`)."""
