"""Facts of what a compaction hides, looked for in what is left."""

from __future__ import annotations

from nca.context.retention import KeptFacts
from nca.context.view import Marker, View
from nca.messages import Entry
from tests.context.logs import history_of
from tests.context.samples import assistant, compacted, step, talk, user


def test_facts_are_kept_where_they_still_stand_somewhere() -> None:
    log = [user("Look."), *step("a", "text", path="src/a.py"), *step("b", "text", path="src/b.py"), assistant(), user()]
    history = history_of(log)
    gone = View((Marker("m", ((2, 5),), "[src/a.py was here]"),), 6)
    assert KeptFacts(history, View(), gone).count() == (1, 2)
    assert KeptFacts(history, View(), View()).count() == (0, 0)


def test_many_facts_are_looked_for_as_few_are() -> None:
    wide = [user("Look."), *(m for n in range(300) for m in step(f"c{n}", "text", path=f"src/a{n:03}.py")), user()]
    shown = "".join(f"[src/a{n:03}.py]" for n in range(0, 300, 3)) + "x" * 9_000
    history = history_of(wide)
    gone = View((Marker("m", ((2, 601),), shown),), 602)
    assert KeptFacts(history, View(), gone).count() == (100, 300)


def test_what_is_said_later_is_no_part_of_the_count() -> None:
    history = history_of([user("Look."), *step("a", "text", path="src/a.py"), *talk(8, 60), user("And now?")])
    counted = compacted(history, 900)
    assert counted.facts is not None
    assert (counted.kept_facts, counted.total_facts) == counted.facts.count()
    gone = View((Marker("m", ((2, history.head - 1),), "[out]"),), history.head)
    late = KeptFacts(history, View(), gone)
    history.append(Entry(history.head + 1, assistant("src/a.py again")))
    assert late.count() == (0, 1)
