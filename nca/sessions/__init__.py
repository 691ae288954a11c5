"""Sessions on disk: log, views, summaries, usage, locks. The only room that speaks SQL."""

from nca.sessions.log import Partial
from nca.sessions.results import Hit, Neighbour, SessionHit
from nca.sessions.session import Session, SessionInfo, SessionPreview
from nca.sessions.store import Store
from nca.sessions.usage import Learned, UsageRow
from nca.sessions.views import CompactionRecord

__all__ = [
    "CompactionRecord",
    "Hit",
    "Learned",
    "Neighbour",
    "Partial",
    "Session",
    "SessionHit",
    "SessionInfo",
    "SessionPreview",
    "Store",
    "UsageRow",
]
