"""Conversations as files: read as other programs write them, and whole sessions written for people and for nca."""

from nca.transcripts.reading import VALID, Transcript, read_transcript

__all__ = ["VALID", "Transcript", "read_transcript"]
