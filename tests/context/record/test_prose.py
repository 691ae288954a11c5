"""What of a model's prose goes to the ledger, what is stale, and what nobody said."""

from __future__ import annotations

import pytest

from nca.context.record.ledger import DECISIONS, RULES
from nca.context.record.prose import harvested, is_complete, marked, within, without_stale

PROSE = """### Pending and next step
Run the whole suite.

### Constraints and rules the user set
- Nunca edites schema.sql.
- Answer in three sentences.

### Decisions and findings
- Approach B, because A breaks for '%.0f'.
- None

### Current work
Editing src/time.py."""


def test_rules_and_decisions_that_the_model_names_go_to_the_ledger() -> None:
    prose, ledger = harvested(PROSE, {RULES: ["3\tAnswer in at most three sentences."]})
    assert ledger == {
        RULES: ["0\tNunca edites schema.sql."],
        DECISIONS: ["0\tApproach B, because A breaks for '%.0f'."],
    }
    assert "schema.sql" not in prose
    assert prose.startswith("### Pending and next step\nRun the whole suite.")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The server listens on port 8080.", "The server listens on port 9090."),
        ("Use tabs in the templates.", "Do not use tabs in the templates."),
        ("Ce module garde son cache.", "Ce module ne garde pas son cache."),
        ("The parser lives in src/parse.py.", "The parser lives in src/read.py."),
        ("テンプレートではタブを使う。", "テンプレートではタブを使わない。"),
    ],
)
def test_a_statement_that_revises_an_earlier_one_is_kept(before: str, after: str) -> None:
    _, ledger = harvested(f"### Decisions and findings\n- {after}", {DECISIONS: [f"0\t{before}"]})
    assert ledger == {DECISIONS: [f"0\t{after}"]}


def test_a_section_without_items_stays_prose() -> None:
    text = "### Decisions and findings\nThe cache was stale."
    assert harvested(text, {}) == (text, {})


def test_what_an_older_record_said_of_its_moment_goes() -> None:
    text = without_stale(PROSE)
    assert "Run the whole suite" not in text
    assert "Editing" not in text
    assert "Approach B" in text


def test_names_that_nobody_said_are_marked() -> None:
    covered = "Edit src/humanize/time.py for HUM-4127 on port 8431."
    text = "src/humanize/time.py and src/made/up.py, HUM-4127 and HUM-9999, 8431 and 8432."
    assert marked(text, covered) == (
        "src/humanize/time.py and src/made/up.py (?), HUM-4127 and HUM-9999 (?), 8431 and 8432 (?)."
    )
    assert marked("Nothing special here.", "") == "Nothing special here."


def test_two_numbers_with_a_slash_between_them_are_no_path() -> None:
    assert marked("It took 0.571/0.657 s.", "0.571 s, then 0.657 s") == "It took 0.571/0.657 s."


def test_a_reply_that_was_cut_must_have_what_matters() -> None:
    assert is_complete(PROSE, ("pending",))
    assert not is_complete("### Goal and intent\nTo fix it.", ("pending",))


def test_the_newest_prose_that_fits_stays() -> None:
    assert within(["old " * 40, "new"], 10) == "new"
    assert within(["old", "new"], 10) == "old\n\nnew"


def test_of_a_prose_that_is_too_long_alone_the_beginning_stays() -> None:
    assert within(["old", "new " * 400], 60).startswith("new new")
    assert within(["old", "new " * 400], 10) == ""
