"""Which session of a file is read, and what is said of parts that were not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.messages import Entry, Message
from nca.sessions.transfer import new_copy
from nca.transcripts.conversation_file import chosen_session, notes_of
from nca.transcripts.formats.assemble import Assembled
from nca.transcripts.formats.records import About, Format, Record, StoredSession, Unreadable
from nca.transcripts.formats.source import Source

FILE = Path("talks")
MISSING = "encrypted or missing. The messages that it replaced are all here."


class Talks(Format):
    """A format whose files hold the sessions of these keys."""

    name = title = "talks"

    def __init__(self, *keys: str, title: str = "") -> None:
        self._sessions = [StoredSession(agent="talks", path=FILE, key=key, title=title) for key in keys]

    def knows(self, source: Source) -> bool:
        return True

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        return iter(self._sessions)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return iter(())


@pytest.mark.parametrize(
    ("keys", "asked", "key"),
    [
        ([""], "", ""),
        (["a"], "", "a"),
        (["a"], "a", "a"),
        (["abc", "b"], "ab", "abc"),
        (["ab", "abc"], "ab", "ab"),
        (["a1", "b1"], "b", "b1"),
        ([], "", ""),
    ],
)
def test_the_session_that_is_meant(keys: list[str], asked: str, key: str) -> None:
    assert chosen_session(Talks(*keys), Source(str(FILE), raw=b""), asked).key == key


@pytest.mark.parametrize(
    ("keys", "asked", "says"),
    [
        ([""], "x", "holds one session and no 'x'."),
        ([], "x", "holds one session and no 'x'."),
        (["a", "b"], "", "holds 2 sessions; valid: a, b."),
        (["a", "b"], "x", "holds no session 'x'; valid: a, b."),
        (["a1", "a2", "b"], "a", "holds 2 sessions; valid: a1, a2."),
        (["a", "a"], "a", "holds 2 sessions; valid: a, a."),
    ],
)
def test_where_several_could_be_meant_they_are_listed(keys: list[str], asked: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_session(Talks(*keys), Source(str(FILE), raw=b""), asked)
    assert refused.value.message == f"{FILE}: {says}"


@pytest.mark.parametrize(
    ("count", "ends"), [(19, ", 18."), (20, ", 19."), (21, ", 19, … 1 more."), (30, ", 19, … 10 more.")]
)
def test_a_long_list_says_how_many_more_there_are(count: int, ends: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_session(Talks(*map(str, range(count))), Source(str(FILE), raw=b""), "")
    assert refused.value.message.endswith(ends)


def test_titles_stand_beside_keys_and_are_cut() -> None:
    with pytest.raises(UsageError) as refused:
        chosen_session(Talks("a", "b", title="x" * 61), Source(str(FILE), raw=b""), "")
    assert f"valid: a ({'x' * 59}…), b ({'x' * 59}…)." in refused.value.message


@pytest.mark.parametrize(
    ("parts", "summaries", "notes"),
    [
        (0, 0, ()),
        (1, 0, ("1 part could not be read: line 1 odd.",)),
        (3, 0, ("3 parts could not be read: line 1 odd; line 2 odd; line 3 odd.",)),
        (4, 0, ("4 parts could not be read: line 1 odd; line 2 odd; line 3 odd; and 1 more.",)),
        (0, 1, (f"The summary of 1 compaction is {MISSING}",)),
        (0, 2, (f"The summaries of 2 compactions are {MISSING}",)),
    ],
)
def test_notes_count_what_could_not_be_read(parts: int, summaries: int, notes: tuple[str, ...]) -> None:
    copy = new_copy([Entry(1, Message("user", "x"))], directory="/", model="m")
    unreadable = tuple(Unreadable(f"line {number}", "odd") for number in range(1, parts + 1))
    found = Assembled(copy=copy, about=About(), unreadable=unreadable, unreadable_summaries=summaries)
    assert notes_of(found) == notes
