"""Sessions on disk: log, views, summaries, usage, locks. The only room that speaks SQL."""

from nca.sessions.results import Hit, SessionHit
from nca.sessions.session import Session, SessionInfo, SessionPreview
from nca.sessions.store import Store
from nca.sessions.usage import Learned
from nca.sessions.views import CompactionRecord

__all__ = ["CompactionRecord", "Hit", "Learned", "Session", "SessionHit", "SessionInfo", "SessionPreview", "Store"]
