"""Random damage to a store, and what SQLite can still read of it."""

from __future__ import annotations

import os
import random
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import msgspec

from nca.messages import Message, Usage
from nca.sessions import Learned, Store
from nca.sessions.paths import HEADER_BYTES, log_of
from tests.sessions.samples import MANUAL, calling, hiding, pin, result, said

PAGE_BYTES = 4096
_WORD = re.compile(rb"W[0-9]{6}[0-9A-F]{4}")
_ROWS = "SELECT CAST(body AS BLOB) FROM messages"


def busy_store(folder: Path) -> None:
    """Two stores of the same sessions: `closed`, and `killed` as a killed process leaves it, with its log."""
    path = folder / "open" / "sessions.db"
    with Store.open(path) as store:
        _fill(store, range(2))
        store.save_learned("m", Learned(1.5, 1000, 2, 1.0))
        (folder / "closed").mkdir()
        store.back_up(folder / "closed" / "sessions.db")
        _fill(store, range(2, 4))
        shutil.copytree(path.parent, folder / "killed")


def _fill(store: Store, numbers: range) -> None:
    for number in numbers:
        with store.create(directory="/work", model="m", name=f"number {number}") as session:
            for turn in range(40):
                asked, answered = said(f"{number}/{turn} " + "word " * turn * 5, f"answer {number}/{turn}")
                call = f"{number}-{turn}"
                session.log.append([asked, calling(call), result(call, f"result {call} " * 40), answered])
                if turn % 15 == 14:
                    session.views.commit(hiding(turn * 4, f"s{number}-{turn}"), MANUAL)
                session.usage.record((turn + 1) * 4, "m", Usage(100, 10, cost=0.01), session.views.current_id)
            pin(session, 5)
            session.log.save_partial("half")


class Words:
    """Words that occur once and can be told from damaged ones."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, count: int) -> str:
        self._taken += count
        return " ".join(map(_word, range(self._taken - count, self._taken)))


def _word(number: int) -> str:
    return f"W{number:06}{zlib.crc32(b'%d' % number) & 0xFFFF:04X}"


def words_in(content: bytes) -> set[str]:
    """The words that can be read in any bytes."""
    found = (match[0].decode() for match in _WORD.finditer(content))
    return {word for word in found if word == _word(int(word[1:7]))}


def words_of_files(path: Path) -> set[str]:
    """The words that can be read in a database file and its log, whatever SQLite makes of them."""
    return set[str]().union(*(words_in(file.read_bytes()) for file in (path, log_of(path)) if file.exists()))


def worded_store(folder: Path) -> None:
    """As `busy_store`, with messages of words that occur once: short ones, and some of 50 KB."""
    path, words = folder / "open" / "sessions.db", Words()
    with Store.open(path) as store:
        for number in range(4):
            if number == 2:
                (folder / "closed").mkdir()
                store.back_up(folder / "closed" / "sessions.db")
            with store.create(directory="/work", model="m", name=f"number {number}") as session:
                session.log.append(said("Hello.", "Hello."))
                for turn in range(40):
                    count = 4200 if turn in (7, 33) else turn * 2 + 1
                    asked, answered = said(f'{turn} é "quoted"\n{words.take(count)}', f"Yes {words.take(14)}")
                    call = f"{number}-{turn}"
                    session.log.append([asked, calling(call), result(call, words.take(30)), answered])
                    if turn % 15 == 14:
                        session.views.commit(hiding(turn * 4, f"s{number}-{turn}"), MANUAL)
        shutil.copytree(path.parent, folder / "killed")


@contextmanager
def unnoticed(path: Path) -> Iterator[None]:
    """Damage in here leaves no trace on the file, so that no opening looks for it."""
    before = path.stat()
    yield
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _flips(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    places = [chance.randrange(len(content)) for _ in range(chance.choice((1, 1, 2, 8, 64)))]
    for place in places:
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"bits flipped at {places}"


def _bytes(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place, length = chance.randrange(len(content)), chance.choice((1, 16, 512, 3000))
    content[place : place + length] = chance.randbytes(len(content[place : place + length]))
    path.write_bytes(content)
    return f"{length} bytes at {place}"


def _cut(path: Path, chance: random.Random) -> str:
    size = int(path.stat().st_size * chance.choice((chance.random(), 0.98, 0.999)))
    with path.open("r+b") as file:
        file.truncate(size)
    return f"cut to {size}"


def _zeroed(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    pages = [chance.randrange(len(content) // PAGE_BYTES + 1) for _ in range(chance.choice((1, 1, 2, 5)))]
    for page in pages:
        content[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(len(content[page * PAGE_BYTES :][:PAGE_BYTES]))
    path.write_bytes(content)
    return f"pages {pages} zeroed"


def _header(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place = chance.randrange(100)
    content[place] ^= chance.randrange(1, 256)
    path.write_bytes(content)
    return f"header byte {place} is {content[place]}"


DAMAGES: tuple[Callable[[Path, random.Random], str], ...] = (_flips, _bytes, _cut, _zeroed, _header)


def damage(path: Path, chance: random.Random) -> str:
    """Damage the file or its log in one way; gives what was done."""
    target = log_of(path) if log_of(path).exists() and chance.random() < 0.5 else path
    return f"{target.name}: {chance.choice(DAMAGES)(target, chance)}"


def readable(path: Path, sound: bytes, folder: Path) -> set[str]:
    """The texts of all messages that SQLite can read: of the file as it is, padded, and with a sound header."""
    found: set[str] = set()
    for number, mend in enumerate((None, _padded, _with_header)):
        copy = folder / f"readable-{number}.db"
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        if mend:
            mend(copy, sound)
        with suppress(apsw.Error), closing(apsw.Connection(str(copy))) as connection:
            for sql in (f"{_ROWS} ORDER BY rowid", f"{_ROWS} ORDER BY rowid DESC"):
                _read(connection, sql, found)
            for first in range(0, 700, 10):
                _read(connection, f"{_ROWS} WHERE rowid BETWEEN {first} AND {first + 9}", found)
    return found


def _read(connection: apsw.Connection, sql: str, found: set[str]) -> None:
    with suppress(apsw.Error):
        for (body,) in connection.execute(sql):
            with suppress(msgspec.DecodeError):
                text = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
                found.add(msgspec.json.decode(text, type=Message).text)


def _padded(path: Path, sound: bytes) -> None:
    if path.stat().st_size < len(sound):
        with path.open("r+b") as file:
            file.truncate(len(sound))


def _with_header(path: Path, sound: bytes) -> None:
    header = bytearray(sound[:HEADER_BYTES])
    # Where the count of changes is not the one that the count of pages is for, SQLite goes by the file's size.
    header[24:28], header[92:96] = b"\0\0\0\1", b"\0\0\0\2"
    with path.open("r+b") as file:
        file.write(header)
