"""What the compactions of a session lost, as one HTML file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nca.context.view import Summary
from nca.library.losses import (
    KINDS,
    CompactionLoss,
    KindCount,
    LostFact,
    column_of,
    nca_size,
    size_and_cost,
    would_have_kept,
)
from nca.sessions.transfer import SessionCopy
from nca.transcripts.descriptions import new_summaries, session_facts, session_title, utc_time
from nca.transcripts.html_page import page_head
from nca.transcripts.html_text import html_escaped, prose
from nca.transcripts.timeline import timeline

_FOLDED_CHARS = 600
"""The rest of a longer message is folded."""
_HOW = (
    "A fact counts as kept if it can be read word for word in the first request after the compaction, and as reworded"
    " if one sentence there has most of its words. Both sides are judged by the same rules, in the same room. What the"
    " agent adds by itself later is not seen here, such as files that it reads again or instructions from files. A"
    " summary may say a thing in quite other words: it stands above what was not found in it."
)


def to_loss_page(agent: str, copy: SessionCopy, compactions: Sequence[CompactionLoss]) -> str:
    """The page: the context over the session, and of each compaction the counts by kind and what was lost.

    `agent` wrote the session. The texts are shown as they are: redact API keys before (`Redactor`).
    """
    return "\n".join(_page(agent, copy, compactions)) + "\n"


def _page(agent: str, copy: SessionCopy, compactions: Sequence[CompactionLoss]) -> Iterator[str]:
    yield from page_head(f"What {agent} lost: {session_title(copy)}", {"Agent": agent, **session_facts(copy)})
    if chart := timeline(copy):
        yield f"<figure>{chart}</figure>"
    yield f"<p>{_HOW}</p>\n<main>"
    records = {record.view_after: record for record in copy.compactions}
    for one in compactions:
        yield from _section(agent, one, new_summaries(copy, records[one.view]))
    yield "</main>\n</body>\n</html>"


def _section(agent: str, one: CompactionLoss, summaries: Sequence[Summary]) -> Iterator[str]:
    when = f" · {utc_time(one.at)}" if one.at else ""
    yield f'<section id="c{one.view}">'
    yield f"<h2>Compaction {one.number}, after message {one.after_message:,}{when}</h2>"
    yield f"<p>{html_escaped(one.trigger)} · {size_and_cost(one)}</p>"
    if one.is_unreadable:
        yield "<p>Its summary is encrypted or missing, so what it kept cannot be known.</p></section>"
        return
    heads = ("", "stated", "before", "after", "reworded", column_of(agent))
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for kind, count in one.kinds.items():
        yield _row(KINDS[kind], count)
    yield f"</table>\n<p>{nca_size(one)}</p>"
    for summary in summaries:
        yield f"<details><summary>Its summary</summary>{prose(summary.text)}</details>"
    gone = [fact for fact in one.lost if not fact.is_reworded]
    reworded = [fact for fact in one.lost if fact.is_reworded]
    if gone:
        kept = sum(fact.with_nca for fact in gone)
        yield f"<p>Lost: {len(gone):,}; {would_have_kept(agent, len(gone), kept)}.</p>"
        yield from map(_lost, gone)
    if reworded:
        yield f"<details><summary>Reworded: {len(reworded):,}</summary>"
        yield from map(_lost, reworded)
        yield "</details>"
    yield "</section>"


def _row(name: str, count: KindCount) -> str:
    gone = ' class="gone"' if count.after + count.reworded < count.before else ""
    cells = f"<td>{count.stated:,}</td><td>{count.before:,}</td><td{gone}>{count.after:,}</td>"
    return f"<tr><th>{name}</th>{cells}<td>{count.reworded:,}</td><td>{count.with_nca:,}</td></tr>"


def _lost(fact: LostFact) -> str:
    text = html_escaped(fact.text)
    if len(fact.text) > _FOLDED_CHARS:
        text = f"<details><summary>{html_escaped(fact.text[:_FOLDED_CHARS])}…</summary>{text}</details>"
    nca = '<span class="kept">nca would have kept it</span>' if fact.with_nca else "nca would have lost it too"
    kind = KINDS[fact.kind]
    state = "reworded" if fact.is_reworded else "<b>lost</b>"
    return (
        f'<div class="lost{" reworded" if fact.is_reworded else ""}">{text}'
        f"<small>{kind}, message {fact.seq} · {state} · {nca}</small></div>"
    )
