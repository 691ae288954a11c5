"""What another agent's compactions lost, on a session of Claude Code with three of them."""

from __future__ import annotations

from typing import Any

import pytest

from nca.config.loaded import defaults
from nca.library.losses import CompactionLoss, losses, to_loss_page
from nca.messages import Message
from nca.sessions.transfer import SessionCopy
from nca.transcripts.formats.assemble import assemble
from nca.transcripts.formats.codex import FORMAT as CODEX
from nca.transcripts.formats.records import Compacted, Record, Said
from nca.transcripts.formats.source import Source
from tests.transcripts.formats.test_claude_code import Row, answer, boundary, call, read, result, summary, user
from tests.transcripts.formats.test_claude_code import raw as lines

NEVER = "Never touch the folder migrations."
ALWAYS = "Always run the linter before you commit."
README = "Now document it in README.md."
TABS = "From now on use tabs in Makefiles & <scripts>."
FIRST = f"Please add a cache to server.py. {NEVER}"
DETAIL = "".join(f"- Step {number}: a part of the module was looked at and changed.\n" for number in range(60))
"""As long as such summaries are."""
OUTPUT = "a line of the program's output\n" * 80


class Writing:
    """Writes the session, each record behind the one before."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @property
    def last(self) -> str | None:
        return str(self.rows[-1]["uuid"]) if self.rows else None

    def add(self, make: Any, *arguments: Any, **more: Any) -> str:
        id = f"r{len(self.rows) + 1}"
        self.rows.append(make(id, self.last, *arguments, **more))
        return id

    def work(self, path: str, count: int) -> None:
        for number in range(count):
            self.add(
                answer, call(f"{path}{len(self.rows)}", "Edit", file_path=f"/work/{path}", new_string=f"x{number}")
            )
            self.rows.append(result(f"r{len(self.rows) + 1}", str(self.last), f"{path}{len(self.rows) - 1}", OUTPUT))

    def compact(self, text: str) -> None:
        last = str(self.last)
        self.rows.append(boundary(f"r{len(self.rows) + 1}", last))
        self.add(summary, f"{text}\n\n{DETAIL}")


def session() -> SessionCopy:
    writing = Writing()
    writing.add(user, FIRST)
    writing.work("server.py", 12)
    writing.add(user, ALWAYS)
    writing.work("cache.py", 12)
    writing.compact("The user asked for a cache in server.py. The assistant added it and also cache.py.")
    writing.add(user, TABS)
    writing.work("Makefile", 12)
    writing.compact(f"A cache was added. Rules of the user: {TABS} The linter is to be run before each commit, always.")
    writing.add(user, README)
    writing.work("README.md", 12)
    writing.compact(f"All is done but the release. {TABS}")
    writing.add(user, "Release it.")
    return read(*writing.rows).copy


def found() -> list[CompactionLoss]:
    return losses(session(), defaults())


def lost(one: CompactionLoss, kind: str) -> list[str]:
    return [fact.text for fact in one.lost if fact.kind == kind and not fact.is_reworded]


def test_each_compaction_says_which_messages_it_dropped_and_nothing_that_it_kept() -> None:
    first, second, third = found()
    assert [one.number for one in (first, second, third)] == [1, 2, 3]
    assert lost(first, "words") == [FIRST, ALWAYS]
    assert lost(second, "words") == []
    assert lost(third, "words") == [README], "what was gone before is not lost again"
    words = [one.kinds["words"] for one in (first, second, third)]
    assert [(count.stated, count.before, count.after) for count in words] == [(2, 2, 0), (3, 1, 1), (4, 2, 1)]


def test_the_messages_and_files_that_were_lost_stand_with_their_numbers() -> None:
    first, second, third = found()
    words = {fact.seq: fact.text for fact in first.lost if fact.kind == "words"}
    copy = session()
    assert words == {1: FIRST, 26: ALWAYS}
    assert all(copy.entries[seq - 1].message.text == text for seq, text in words.items())
    assert first.kinds["files"].before == 2
    assert lost(first, "files") == [], "its summary names both"
    assert lost(second, "files") == ["/work/server.py", "/work/cache.py", "/work/Makefile"], "Makefiles is another word"
    assert lost(third, "files") == ["/work/README.md"]


def test_nca_in_the_same_room_keeps_the_messages_and_the_files_and_stays_in_it() -> None:
    for one in found():
        assert 0 < one.nca_tokens <= one.room_tokens
        assert all(count.with_nca == count.stated for count in one.kinds.values())
        assert all(fact.with_nca for fact in one.lost)


def test_a_fact_in_other_words_is_not_called_lost() -> None:
    writing = Writing()
    writing.add(user, "Never delete the customer table without a backup of the database.")
    writing.work("a.py", 8)
    writing.compact("Without a backup of the database, the customer table must never be deleted: delete nothing.")
    writing.add(user, "Go on.")
    (one,) = losses(read(*writing.rows).copy, defaults())
    assert [fact.is_reworded for fact in one.lost if fact.kind == "words"] == [True]
    assert one.kinds["words"].reworded == 1


def test_a_file_of_a_refused_call_is_none_that_was_changed() -> None:
    writing = Writing()
    writing.add(user, "Mend the parser.")
    writing.work("a.py", 8)
    writing.add(answer, call("refused", "Edit", file_path="/work/b.py", new_string="x"))
    refused = "[not run: the person refused it]"
    writing.rows.append(result(f"r{len(writing.rows) + 1}", str(writing.last), "refused", refused, is_error=True))
    writing.compact("They mended the parser.")
    writing.add(user, "Go on.")
    (one,) = losses(read(*writing.rows).copy, defaults())
    assert lost(one, "files") == ["/work/a.py"]


def test_an_error_is_open_until_the_same_call_is_made_again() -> None:
    writing = Writing()
    writing.add(user, "Make the tests pass.")
    for command, text, has_failed in (
        ("make test", "collected 40 items\nFAILED test_port: expected 8080", True),
        ("make lint", "E501 in server.py", True),
        ("cat log", "ERROR: the disk was full last week", False),
        ("make lint", "All checks passed", False),
    ):
        id = f"r{len(writing.rows)}"
        writing.add(answer, call(id, "Bash", command=command))
        writing.rows.append(result(f"r{len(writing.rows) + 1}", str(writing.last), id, text, is_error=has_failed))
    writing.compact("They ran the linter.")
    writing.add(user, "Go on.")
    (one,) = losses(read(*writing.rows).copy, defaults())
    assert lost(one, "errors") == ["FAILED test_port: expected 8080"]
    assert one.kinds["errors"].stated == 1


def test_a_session_without_compactions_has_no_losses() -> None:
    assert losses(read(user("u1", None, NEVER), answer("a1", "u1", "Yes.")).copy, defaults()) == []


def test_the_page_shows_the_words_escaped_and_nothing_that_runs() -> None:
    page = to_loss_page("Claude Code", session(), found())
    assert NEVER in page
    assert "use tabs in Makefiles &amp; &lt;scripts&gt;." in page
    assert "<scripts>" not in page
    assert page.count("<section ") == 3
    assert "Its summary" in page
    assert "<script" not in page
    assert page.rstrip().endswith("</html>")


def test_what_is_aside_is_no_fact_and_a_recorded_cost_counts_even_if_it_is_0() -> None:
    def one(**compaction: Any) -> CompactionLoss:
        parts: list[Record] = [
            Said(message=Message("user", FIRST)),
            Said(message=Message("user", README), is_aside=True),
            Said(message=Message("assistant", "Done.")),
            Compacted(summary="A cache was added.", **compaction),
        ]
        (found,) = losses(assemble(parts, "file").copy, defaults(), model="openai/gpt-4o")
        return found

    assert one().kinds["words"].stated == 1
    assert (one().cost, one(cost=0.25, tokens_before=9).cost, one(cost=0.0, tokens_before=9).cost) == (None, 0.25, 0.0)
    # $2.50 for a million tokens, and a little for the summary.
    assert one(tokens_before=1_000_000).cost == pytest.approx(2.5, abs=0.01)


def test_an_encrypted_summary_is_said_to_be_unknown() -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "cwd": "/work"}}
    said = [
        {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
        }
        for role, kind, text in (("user", "input_text", NEVER), ("assistant", "output_text", "Yes."))
    ]
    encrypted = {"type": "compaction", "encrypted_content": "gAAAA"}
    compacted = {"type": "compacted", "payload": {"message": "", "replacement_history": [encrypted]}}
    source = Source("file", raw=lines(meta, *said, compacted, said[0]))
    (one,) = losses(assemble(CODEX.read(source), "file").copy, defaults())
    assert one.is_unreadable
    assert one.lost == ()
    assert "cannot be known" in to_loss_page("Codex", assemble(CODEX.read(source), "file").copy, [one])
