"""Conversations as files: parse transcripts of other programs; export and import whole sessions."""

from nca.transcripts.session_file import VALID, Transcript, read_transcript

__all__ = ["VALID", "Transcript", "read_transcript"]
