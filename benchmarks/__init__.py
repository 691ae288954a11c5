"""Measurements of the engine. `python -m benchmarks [--transcripts FOLDER]`; nothing here is a verdict."""
