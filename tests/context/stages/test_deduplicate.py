"""Earlier reads become pointers only if a later read in the view shows as much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings, DeduplicateSettings, PruneSettings
from nca.context.draft import Draft
from nca.context.file_reads import file_uses, says_no_more
from nca.context.request import resolve
from nca.context.stages.deduplicate import CHANGED, POINTER, deduplicate
from nca.context.stages.prune import CLEARED
from nca.context.view import Stub
from nca.messages import Message
from tests.context.logs import history_of, logs
from tests.context.samples import assistant, call, calling, compacted, draft_of, result, some, step, user

TEXT = "def f(x):\n    return x + 1\n" * 20
ALWAYS = DeduplicateSettings(minimum_ratio=0.0)


def read(id: str, text: str = TEXT, *, is_error: bool = False, **arguments: Any) -> list[Message]:
    return step(id, text, is_error=is_error, **{"path": "a.py", **arguments})


def edit(id: str, **arguments: Any) -> list[Message]:
    return step(id, "ok", "edit_file", **{"path": "a.py", **arguments})


def stubs(messages: list[Message], settings: DeduplicateSettings = ALWAYS, *, target: int = 0) -> dict[int, str]:
    draft = draft_of(messages)
    deduplicate(draft, settings, target_tokens=target)
    return shown(draft)


def shown(draft: Draft) -> dict[int, str]:
    return {item.seq: item.text for item in draft.view().items if isinstance(item, Stub)}


def test_the_text_and_number_of_the_spec() -> None:
    assert POINTER == "[File {path} - refer to latest read below]"
    assert ContextSettings().deduplicate.minimum_ratio == 0.3


def test_all_but_the_latest_read_point_to_it() -> None:
    log = [user(), *read("a"), *read("b", path="./src/../a.py"), *read("c", path="other.py"), *read("d"), user()]
    assert stubs(log) == dict.fromkeys((3, 5), "[File a.py - refer to latest read below]")


@pytest.mark.parametrize(
    ("earlier", "later", "is_covered"),
    [
        ({"offset": 5, "limit": 10}, {}, True),
        ({"offset": 5, "limit": 10}, {"offset": 5, "limit": 10}, True),
        ({"view_range": [5, 9]}, {"view_range": [1, -1]}, True),
        ({}, {"offset": 5}, False),
        ({}, {"limit": 500}, False),
        ({"offset": 5, "limit": 10}, {"offset": 6, "limit": 10}, False),
        ({"view_range": [1, 50]}, {"view_range": [60, 90]}, False),
    ],
)
def test_only_where_the_later_range_covers_the_earlier(
    earlier: dict[str, Any], later: dict[str, Any], is_covered: bool
) -> None:
    assert bool(stubs([user(), *read("a", **earlier), *read("b", **later), user()])) == is_covered


def test_an_edit_in_between_is_said() -> None:
    log = [user(), *read("a"), *edit("b"), *read("c"), user()]
    assert stubs(log) == {3: "[File a.py - refer to latest read below; the file changed in between: recall expand=3]"}
    assert CHANGED.format(path="a.py", seq=3) == stubs(log)[3]
    elsewhere = [user(), *read("a"), *edit("b", path="z.py"), *read("c"), *edit("d"), user()]
    assert stubs(elsewhere) == {3: POINTER.format(path="a.py")}


def test_an_edit_before_the_latest_read_is_said_to_all_that_point_to_it() -> None:
    log = [user(), *read("a"), *read("b"), *edit("c"), *read("d"), user()]
    assert stubs(log) == {seq: CHANGED.format(path="a.py", seq=seq) for seq in (3, 5)}


def test_the_view_command_of_an_editor_is_a_read_and_its_others_are_edits() -> None:
    def viewed(id: str, **arguments: Any) -> list[Message]:
        return step(id, TEXT, "str_replace_editor", command="view", path="a.py", **arguments)

    replaced = step("b", "ok", "str_replace_editor", command="str_replace", path="a.py", old_str="x", new_str="y")
    log = [user(), *viewed("a", view_range=[1, 20]), *replaced, *viewed("c"), user()]
    assert stubs(log) == {3: CHANGED.format(path="a.py", seq=3)}


def test_a_failed_later_read_does_not_count_and_a_failed_earlier_one_stays() -> None:
    assert stubs([user(), *read("a"), *read("b", "no such file " * 20, is_error=True), user()]) == {}
    log = [user(), *read("a", "no such file " * 20, is_error=True), *read("b"), user()]
    assert stubs(log) == {}


def test_a_later_read_that_is_a_stub_itself_does_not_count() -> None:
    draft = draft_of([user(), *read("a"), *read("b"), user()])
    (later,) = (block for block in draft.blocks() if 5 in block.seqs)
    draft.put_stub(later, 5, CLEARED, "prune")
    deduplicate(draft, ALWAYS, target_tokens=0)
    assert shown(draft) == {5: CLEARED}


@pytest.mark.parametrize(
    "notice",
    ["\n[Output truncated from 90000 bytes to 51200 bytes]", "[a.py: lines 1-40 of 900; continue with offset=41]\n"],
)
def test_a_later_read_that_shows_less_than_was_asked_does_not_count(notice: str) -> None:
    cut = notice + TEXT if notice.startswith("[") else TEXT + notice
    assert stubs([user(), *read("a", offset=500, limit=50), *read("b", cut), user()]) == {}


def test_acts_from_30_percent_of_the_file_read_tokens_on() -> None:
    small, large = TEXT[:280], TEXT * 3
    log = [user(), *read("a", small), *read("b", small), *read("c", large, path="other.py"), user()]
    assert stubs(log, DeduplicateSettings()) == {}
    assert list(stubs(log)) == [3]
    even = [user(), *read("a"), *read("b"), user()]
    assert list(stubs(even, DeduplicateSettings())) == [3]


def test_copies_go_at_once_and_older_texts_until_the_target_is_met() -> None:
    log = [user(), *read("a", "Old. " * 200), *read("b"), *read("c"), user()]
    whole = draft_of(log).tokens
    assert list(stubs(log, target=whole)) == [5]
    assert list(stubs(log, target=0)) == [3, 5]


@pytest.mark.parametrize(
    ("earlier", "is_copy"),
    [
        (TEXT, True),
        ("[a.py: lines 1-20 of 40; continue with offset=21]\n" + TEXT, True),
        ("[tool.lint]\n" + TEXT, False),
        ("[1, 2, 3]", False),
    ],
)
def test_a_copy_has_no_line_of_its_own(earlier: str, is_copy: bool) -> None:
    assert says_no_more(earlier, TEXT + "# the end\n") is is_copy


def test_it_leaves_pins_alone() -> None:
    draft = draft_of([user(), *read("a"), *read("b"), *read("c"), user()], pins={3})
    deduplicate(draft, ALWAYS, target_tokens=0)
    assert list(shown(draft)) == [5]


@some
@given(
    st.lists(st.sampled_from(["same", *(f"{number}.py" for number in range(6))]), min_size=4, max_size=14),
    st.integers(2_500, 9_000),
    st.sampled_from([("prune", "deduplicate", "summarize", "truncate"), ("summarize",)]),
)
def test_no_file_is_shown_twice_while_another_is_cut(paths: list[str], window: int, stages: tuple[str, ...]) -> None:
    log = [user("Look at the files.")]
    for place, path in enumerate(paths):
        text = "\n".join(f"line {number} of {path} and its words" for number in range(60))
        log += [*read(f"r{place}", text, path=path), assistant(f"Seen {place}."), user(f"And {place}?")]
    settings = ContextSettings(stages=stages, prune=PruneSettings(protect_tokens=0, keep_results=0))
    history = history_of(log)
    compacted(history, window, settings=settings)
    shown = "\n".join(message.text for message in resolve(history))
    whole = {path: shown.count(f"line 30 of {path} ") for path in set(paths)}
    if any(count == 0 for count in whole.values()):
        assert max(whole.values()) <= 1


def test_reads_in_one_parallel_batch() -> None:
    batch = [calling(call("a", path="a.py"), call("b", path="a.py")), result("a", TEXT), result("b", TEXT)]
    assert list(stubs([user(), *batch, user()])) == [3]


def test_prose_about_a_file_is_no_read() -> None:
    said = Message("assistant", f"I read a.py:\n{TEXT}")
    assert stubs([user(), said, said, *read("b"), user()]) == {}


@some
@given(logs())
def test_what_a_pointer_points_to_is_there(messages: list[Message]) -> None:
    draft = draft_of(messages)
    before = draft.tokens
    deduplicate(draft, ALWAYS, target_tokens=0)
    found = shown(draft)
    assert draft.tokens <= before
    reads = {use.seq: use for use in file_uses(draft.history.entries) if not use.is_write}
    for seq in found:
        assert any(
            later.seq > seq and later.path == reads[seq].path and later.covers(reads[seq]) and later.seq not in found
            for later in reads.values()
        )


def test_a_pointer_never_points_to_a_read_that_is_shown_no_longer() -> None:
    """The later read is pruned in the same compaction, or truncated away by the next one."""
    log = [user("Start")]
    for number in range(12):
        log += [calling(call(f"c{number}", path="a.py")), result(f"c{number}", f"line {number} " * 200)]
    log += [assistant("Done."), user("Go on"), assistant("Yes."), user("And now?")]
    settings = ContextSettings(
        stages=("deduplicate", "prune", "truncate"), prune=PruneSettings(protect_tokens=0, keep_results=0)
    )
    history = history_of(log)
    compacted(history, 4_000, settings=settings)
    compacted(history, 2_000, settings=settings)
    texts = [message.text for message in resolve(history) if message.role == "tool"]
    assert any("refer to latest read below" in text for text in texts) <= any(text.startswith("line") for text in texts)


def test_a_read_that_failed_without_a_mark_replaces_no_good_one() -> None:
    assert stubs([user(), *read("a"), *read("b", "Error: cannot read a.py"), assistant()]) == {}
