"""Benchmarks of nca: `python -m benchmarks [--transcripts FOLDER]`. They report figures and pass no verdict."""
