"""What a path of a workspace holds, and how that changed."""

from __future__ import annotations

import stat
from typing import Literal, TypeVar

import msgspec

from nca.errors import StoreDamaged

T = TypeVar("T")


BACKGROUND = "background command"
"""Who changed what is found between commands once a command has left something running: it, or a person."""
RWX = 0o777
SPECIAL_BITS = {stat.S_ISUID: "setuid", stat.S_ISGID: "setgid", stat.S_ISVTX: "sticky"}
"""The bits of a mode that let whoever runs a file act as somebody else, or rule a whole folder."""


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """What is at a path. The default: nothing.

    sha256  of the content, or of a link's target; "" if it is not stored
    mode    the permission bits of a file or folder
    why     why the content is not stored, such as "larger than 5 MiB"; "" if it is
    """

    kind: Literal["absent", "file", "link", "folder", "other"] = "absent"
    sha256: str = ""
    mode: int = 0
    size: int = 0
    why: str = ""

    def missing(self, mode: int) -> str:
        """The special bits of this state that `mode` lacks, as a person calls them: "setuid, sticky"; or ""."""
        return ", ".join(name for bit, name in SPECIAL_BITS.items() if self.mode & bit & ~mode)

    def is_same(self, other: FileState) -> bool:
        return (self.kind, self.sha256, self.mode, self.size) == (other.kind, other.sha256, other.mode, other.size)


ABSENT = FileState()


class Known(msgspec.Struct, frozen=True, array_like=True):
    """A path as it was last seen.

    signature  as long as it stays, so does the state; 0: look again in any case
    """

    state: FileState
    signature: int


class Change(msgspec.Struct, frozen=True):
    """A change of one path.

    actor     the tool that made it, or `rewind`
    is_mixed  somebody else may have had a part in it
    is_unnamed  it was found after a command that does not mention it: it may be somebody else's
    number    its place in the journal; 0: not recorded yet
    seq       the newest message of the log when it began
    """

    path: str
    actor: str
    before: FileState
    after: FileState
    is_mixed: bool = False
    is_done: bool = True
    rewind: int | None = None
    number: int = 0
    seq: int = 0
    is_unnamed: bool = False


def pack(value: object) -> bytes:
    return msgspec.json.encode(value)


def unpack(raw: bytes, kind: type[T], what: str) -> T:
    """Raises StoreDamaged, which names `what` was read."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeError, TypeError) as error:
        raise StoreDamaged(f"Cannot read {what}: {error}") from error
