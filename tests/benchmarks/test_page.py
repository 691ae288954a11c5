"""The page, its pictures and README's table, made from the figures alone."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from benchmarks.bars import bars
from benchmarks.behind import behind
from benchmarks.figures import DOCS, FIGURES
from benchmarks.page import details, page, pictures
from benchmarks.publish import BEGIN, END, README, readme_table, renewed
from tests.benchmarks.samples import compaction, figures, grown_figures, stated


def test_the_page_says_what_was_measured_and_what_was_not() -> None:
    text = details(figures())
    assert "not measured: npm is not there" in text
    assert "| other <trim> | 0 of 1 |" in text
    assert "more than 60 s" in text
    assert "Not run: there are no weights" in text
    assert "## Estimates against" not in text
    assert "2026-01-02" in text
    assert "| nca | 5.00% | 3 | 3 | 0 | 0 | 67% | 67% | 67% | 67% |" in text
    assert "| all | default | default | 3.00% | 3.50% | 12.00% | 70 | 100.0% | 90.0% | 80.0% | 20.0% | 99.9% |" in text


def test_the_first_page_has_new_sessions_and_the_details_all() -> None:
    run = figures()
    run["headline"].append(stated("nca", "nca", session="used before", person=[10, 10]))
    first, rest = page(run), details(run)
    assert "1 sessions of this release were new to nca" in first
    assert "say what has changed since, and list the sessions" in first
    assert "| nca | 90% | 50% | – | 100% | 0 of 10 | 0 | 5.0% |" in first
    assert "used before" not in first
    assert "A law was added." not in first
    assert "### First contact: played\n\nA law was added." in rest
    assert "### Sessions used for development: used before\n\nA rule was added." in rest
    assert "| nca | 100.0% | 90.0% | 0 of 10 |" not in rest
    assert "| nca | 80.0% | 40.0% | 20.0% · – |" in first
    assert "| nca | 80.0% | 40.0% | 80.0% | – | 40.0% | 20.0% · – | 1 of 2 | 100% |" in rest
    assert "nca still lists 3 at 32k" in first
    assert "| nca | 3 |" in rest
    assert "Measured on 2026-01-02." in first
    later = {**run, "renewed": {"effects": "2026-02-03"}}
    assert "Measured from 2026-01-02 to 2026-02-03." in page(later)
    assert "Measured again: effects on 2026-02-03." in details(later)


def test_the_first_page_has_one_row_of_each_kind_in_which_others_are_ahead() -> None:
    run = figures()
    for number in range(12):
        run["headline"].append(stated("other", f"other {number}", cost_ratio=0.01))
        run["times"].append({**run["times"][2], "messages": 2_000 + number, "label": f"other {number}"})
        run["times"].append({**run["times"][1], "messages": 2_000 + number})
    first = page(run)
    assert first.count("| cost with a cache") == first.count("| check of 1,000 messages |") == 1
    assert "check of 2,0" not in first
    assert f"[all {len(list(behind(run)))} rows]" in first
    assert "Why: " not in first


def test_the_first_page_names_two_of_those_who_are_ahead_and_the_details_all() -> None:
    run = figures()
    run["times"] += [{**run["times"][2], "label": f"other {number}"} for number in range(4)]
    named = ("other <trim> 0.01 ms; other 0 0.01 ms", "; other 1 0.01 ms; other 2 0.01 ms; other 3 0.01 ms.")
    assert f"| check of 1,000 messages | 0.02 ms in a session | {named[0]}; 3 more |" in page(run)
    assert "".join(named) in details(run)


def test_the_first_page_says_why_nca_is_not_first_in_what_is_fetched_again() -> None:
    run = figures()
    assert "nca is not first here" not in page(run)
    run["next_steps"][1] |= {"lacking": [0, 2], "of_target": 1.0}
    assert "nca is not first here" in page(run)


def test_who_is_ahead_because_it_misses_its_target_is_in_the_details_alone() -> None:
    better = figures()
    better["compactions"][1] = compaction("other", "other", user_turns=[5, 5], is_met=False)
    assert "user's turns kept" not in page(better)
    assert "**user's turns kept**" in details(better)
    better["compactions"][1]["is_met"] = True
    assert "| user's turns kept | 80% | other 100% |" in page(better)


def test_where_a_peer_is_ahead_is_said_and_nothing_else() -> None:
    assert [line.partition(",")[0] for line in behind(figures())] == ["**check of 1"]
    better = figures()
    better["compactions"][1] = compaction("other", "other", user_turns=[5, 5], is_met=False)
    lines = list(behind(better))
    assert "**user's turns kept**, nca 80%: other 100% but meets 0 of 1 targets (nca: 1 of 1)." in lines
    level = figures()
    level["times"] = level["times"][:1]
    assert "ahead or level" in page(level)


def test_a_compaction_from_dicts_is_behind_as_long_as_another_is_faster() -> None:
    run = figures()
    run["times"][2] |= {"cold_seconds": 0.001}
    lines = list(behind(run))
    assert any("from dicts, the first**, nca 4 ms by `nca.compact`: other <trim> 1 ms" in line for line in lines)
    assert not any("from dicts, again" in line for line in lines)


def test_a_session_compacted_twice_counts_once_and_each_session_has_one_vote() -> None:
    run = figures()
    named = {"session": "a long one", "kind": "coding"}
    early = compaction("nca", "nca", material="at 5", facts={"paths touched": [0, 90]}, is_met=False, **named)
    late = compaction("nca", "nca", material="at 9", facts={"paths touched": [50, 100]}, **named)
    run["compactions"] = [{**run["compactions"][0], "session": "generated 100", "kind": "generated"}, early, late]
    text = details(run)
    assert "| nca | 2 of 2 | 0 of 0 | 2 of 2 | 54% |" in text
    assert "| nca | 90 · 100 · 80, 1 of 1 | 50 · – · 80, 1 of 1 | 70 · 100 · 80, 2 of 2 |" in text


def test_lost_words_are_said_to_be_lost_where_they_are_larger_than_the_target() -> None:
    crowded = figures()
    crowded["compactions"].append(
        compaction("nca", "nca", material="a long one", user_tokens=2_000, user_turns=[1, 9], facts={})
    )
    text = details(crowded)
    assert "In 1 of 2 sessions (a long one)" in text
    assert "keeps 2 of 2 rules and 4 of 5 turns" in text
    assert "a program's output" not in details(figures())


def test_goals_are_met_or_not_by_what_was_measured() -> None:
    run = {**figures(), "growth": grown_figures()}
    shared = {"peer": "", "messages": 10_000, "of_target": 1.1, "has_model": False}
    run["times"] += [
        {**shared, "label": "nca, in a session", "seconds": 0.006},
        {**shared, "label": "nca", "cold_seconds": 0.3},
        {**shared, "label": "NeuroLink, stages 1, 2, 4", "seconds": 0.012, "cold_seconds": 0.06},
    ]
    run["growth"]["lengths"].append({**run["growth"]["lengths"][-1], "messages": 1_000_000, "search_cpu": 0.002})
    text = details(run)
    assert "| check, at any length | 0.05 ms | 0.02 ms | yes |" in text
    assert "| stages 1, 2, 4 of 10,000 messages in a session | 3 ms | 6 ms | **no** |" in text
    assert "in a session, beside NeuroLink's three stages | 1 × | 6 ms against 12 ms: 0.50 × | yes |" in text
    assert "the first call, beside NeuroLink's three stages | 4 × | 300 ms against 60 ms: 5.00 × | **no** |" in text
    assert "| at most the target | 1.10 × | **no** |" in text
    assert "all stages: size of the result | at most the target | 1.10 × | **no** |" in text
    assert "| search in a session of 1,000,000 messages | 60 ms | 3 ms (2 ms of the processor) | yes |" in text
    assert "| a turn at 1,000 messages compared with one at 100 | 1.5 × | 2.00 × | **no** |" in text
    assert "| resume of 100,000 messages | 500 ms | 100 ms | yes |" in text
    assert "| 1,000 | 8 ms | 10 ms | 0.01 ms | 20 ms | 3 ms | 0.2 KB per message | 3 MB |" in text
    assert "| nothing changed | 50 ms | 40 ms |" in text
    assert "growth-time.svg" in text
    assert "## How cost grows" not in details(figures())


def test_pictures_are_svg_with_a_bar_for_each() -> None:
    made = pictures(figures())
    assert set(made) == {
        "bench-first-contact.svg",
        "bench-next-steps.svg",
        "bench-facts.svg",
        "bench-words.svg",
        "bench-time-1000.svg",
        "bench-check.svg",
    }
    for name, picture in made.items():
        root = ElementTree.fromstring(picture)
        shown = 1 if name == "bench-next-steps.svg" else 2
        ground_and_bars = len(root.findall("{http://www.w3.org/2000/svg}rect"))
        assert ground_and_bars == 1 + shown, "the other's next steps are twice as large as the target"
    both = page(figures()) + details(figures())
    assert all(f"pictures/{name}" in both for name in made)


def test_bars_are_as_long_as_their_values() -> None:
    def lengths(*values: float, is_log: bool = False) -> list[float]:
        root = ElementTree.fromstring(bars("t", [("n", value, "") for value in values], is_log=is_log))
        return [float(one.attrib["width"]) for one in root.findall("{http://www.w3.org/2000/svg}rect")[1:]]

    half, whole = lengths(1, 2)
    assert whole == pytest.approx(2 * half)
    low, middle, high = lengths(1, 10, 100, is_log=True)
    assert low == 0
    assert high == pytest.approx(2 * middle)
    assert lengths(0, 0) == [0, 0]
    with pytest.raises(ValueError, match="nothing"):
        bars("t", [])


def test_readme_s_table_is_renewed_between_its_markers() -> None:
    text = renewed(f"before\n{BEGIN}\nold\n{END}\nafter", figures())
    assert text.startswith("before\n")
    assert text.endswith("\nafter")
    assert "| nca | 90% | 50% | – | 100% | 0 of 10 | 0 | 5.0% |" in text
    assert "old" not in text
    with pytest.raises(ValueError, match="markers"):
        renewed("nothing", figures())
    without = {**figures(), "headline": []}
    assert renewed(f"{BEGIN}\nold\n{END}", without) == f"{BEGIN}\nold\n{END}"
    assert "First contact" not in page(without)


def test_readme_s_table_is_that_of_the_committed_figures() -> None:
    committed = json.loads(FIGURES.read_text(encoding="utf-8"))
    readme = README.read_text(encoding="utf-8")
    assert renewed(readme, committed) == readme
    assert readme_table(committed).count("\n") >= 8


def test_the_committed_page_is_that_of_the_committed_figures() -> None:
    committed = json.loads(FIGURES.read_text(encoding="utf-8"))
    shown = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert shown == page(committed)
    assert (DOCS / "benchmarks-details.md").read_text(encoding="utf-8") == details(committed)
    for name, picture in pictures(committed).items():
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == picture
