"""The live branch of a file with records that name their parents: a walk from the newest record to the first.

Real files have holes: parents that were never written, circles, the same id twice. Where the walk meets one, it goes on
with the record before in the order of the file, so a damaged chain never hides a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nca.transcripts.formats.records import Live


class Link(msgspec.Struct):
    """A record with an id. `parent`: the id of the one before it; "" if it is the first.

    before  where the walk goes on if there is no parent: a compaction begins a new chain, and names the old one here
    is_said  a person wrote it
    """

    id: str
    parent: str
    before: str = ""
    is_compaction: bool = False
    is_said: bool = False


class Chain(msgspec.Struct, frozen=True):
    """The ids of the live branch, and how many of its records name a parent that is missing or leads in a circle."""

    ids: frozenset[str]
    breaks: int


def walk(links: Sequence[Link], places: Mapping[str, int], newest: int | None = None) -> Chain:
    """The chain that ends with the newest link.

    links   in the order of the file, each id once
    places  the place of each id in `links`
    """
    if not links:
        return Chain(frozenset(), 0)
    if not any(link.parent in places for link in links):
        return Chain(frozenset(places), 0)
    seen: set[int] = set()
    breaks = 0
    at: int | None = len(links) - 1 if newest is None else newest
    while at is not None:
        seen.add(at)
        link = links[at]
        target = link.parent or link.before
        following = places.get(target)
        if target and (following is None or following in seen):
            # A compaction's messages may have been written again after it, which leads in a circle by design.
            breaks += not link.is_compaction
            following = next((place for place in range(at - 1, -1, -1) if place not in seen), None)
        at = following
    return Chain(frozenset(links[place].id for place in seen), breaks)


def live_branch(links: Sequence[Link], places: Mapping[str, int]) -> Chain:
    """The chain of the newest link. If it goes past the last compaction, that one counts nevertheless.

    A chain past it is a new branch if it begins with what a person said (they went back), and a fault if not: some
    programs name a wrong parent after a compaction.
    """
    chain = walk(links, places)
    last = next((place for place in range(len(links) - 1, -1, -1) if links[place].is_compaction), None)
    if last is None or links[last].id in chain.ids:
        return chain
    later = [link for link in links[last + 1 :] if link.id in chain.ids]
    if later and later[0].is_said:
        return chain
    before = walk(links[: last + 1], {id: place for id, place in places.items() if place <= last})
    return Chain(before.ids | {link.id for link in later}, chain.breaks + 1)


class Branches:
    """Records that name their parents, added in the order of the file."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._places: dict[str, int] = {}

    @property
    def last(self) -> str:
        return self._links[-1].id if self._links else ""

    @property
    def are_linear(self) -> bool:
        """Whether each record follows the one before it in the file."""
        before = ["", *(link.id for link in self._links)]
        return all(link.parent == parent for link, parent in zip(self._links, before, strict=False))

    def add(self, record_id: str, parent: str) -> None:
        """A record that was added before stays as it was."""
        if record_id and record_id not in self._places:
            self._places[record_id] = len(self._links)
            self._links.append(Link(record_id, parent))

    def live(self, newest: str = "") -> Iterator[Live]:
        """The branch of the newest record, unless the file holds no other."""
        if not self.are_linear:
            yield Live(frozenset(self.to(newest or self.last)))

    def to(self, record_id: str) -> list[str]:
        """The ids of the branch that ends with the record, in the order of the file."""
        place = self._places.get(record_id)
        if place is None:
            return []
        ids = walk(self._links, self._places, place).ids
        return [link.id for link in self._links if link.id in ids]
