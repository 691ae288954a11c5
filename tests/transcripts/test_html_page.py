"""A session as HTML: one file, all text inert, hidden messages and compactions in their places."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.view import Stub, Summary, Verbatim, View
from nca.messages import Entry, Message, Role, ToolCall, Usage
from nca.sessions import Store
from nca.sessions.transfer import FIRST_VIEW, ViewCopy, new_copy
from nca.sessions.usage import BESIDE, UNREPORTED
from nca.sessions.views import CompactionRecord, SummaryPlace
from nca.transcripts.export_formats import to_markdown
from nca.transcripts.html_page import to_html
from nca.transcripts.timeline import STACK
from tests.terminal.render.test_theme import contrast
from tests.transcripts.samples import HOSTILE, RECORD, full

_TAGS = (
    "html head meta title style body h1 h2 dl dt dd figure svg text line polyline polygon rect a g circle main article"
    " span pre details summary p b section table tr th td"
    # What Markdown may give.
    " div h3 h4 h5 h6 ul ol li blockquote code em strong s hr br thead tbody"
)
_ATTRIBUTES = (
    "lang charset http-equiv content name id class href viewbox role aria-label x y x1 x2 y1 y2 cx cy r points"
    " text-anchor width height open rel title start style dir"
)
TAGS, ATTRIBUTES = frozenset(_TAGS.split()), frozenset(_ATTRIBUTES.split())


class Reader(HTMLParser):
    """What a browser would make of it: tags, attributes, ids, links and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.text = ""
        self.at_first = ""
        """The text that is there before anything is opened."""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                self.links.add(value or "")
            if name == "style":
                assert value in ("text-align:left", "text-align:center", "text-align:right")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        begun = self.open.pop()
        assert begun == tag, f"<{begun}> is ended by </{tag}>"

    def handle_data(self, data: str) -> None:
        self.text += data
        inside = pairwise([*self.open, ""])
        if all(tag != "details" or below == "summary" for tag, below in inside):
            self.at_first += data


def check(page: str) -> Reader:
    """Nothing runs, nothing is loaded, every tag is ours and closed."""
    reader = Reader(page)
    assert reader.open == []
    assert reader.tags <= TAGS
    assert reader.attributes <= ATTRIBUTES
    outside = {link for link in reader.links if link.startswith(("http://", "https://", "mailto:"))}
    assert all(link.startswith("#") and link[1:] in reader.ids for link in reader.links - outside)
    assert page.count('rel="noreferrer"') >= len(outside)
    assert len(set(reader.ids)) == len(reader.ids)
    assert not set(page) & {chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x202E)}
    assert page.index("Content-Security-Policy") < page.index("<title>")
    assert "default-src 'none'" in page
    return reader


def test_hostile_text_stays_text() -> None:
    page = to_html(full())
    reader = check(page)
    assert "<script" not in page
    assert "<img" not in page
    assert "alert(1)</script>" in reader.text
    assert "␛]0;owned␇␛[2J<U+009B>31m<U+202E>gnp.exe␀" in reader.text


@given(st.text(st.characters(codec=None)))
def test_any_text_stays_text(text: str) -> None:
    messages = [Message("user", text), Message("assistant", text, reasoning=text), Message("tool", text, name=text)]
    entries = [Entry(seq, message) for seq, message in enumerate(messages, 1)]
    check(to_html(new_copy(entries, directory=text, name=text, model=text)))


def test_compactions_and_what_they_hid_are_visible() -> None:
    page = to_html(full("text"))
    reader = check(page)
    for seq in range(1, 10):
        assert f'id="m{seq}"' in page
    assert "Messages 1–2 · the model sees summary s1 instead" in reader.text
    assert "3 · tool text · error · the model sees a placeholder" in reader.text
    assert "Message 4 · hidden from the model by marker t1" in reader.text
    assert "5 · user pinned" in reader.text
    assert 'id="c1"' in page
    assert "900 → 300 tokens, kept 1 of 1 rules, 2 of 3 of your messages · 0.0 s, $0.5000" in reader.text
    assert "· undone" in reader.text
    assert "Summary s1 of messages 1–2, by" in reader.text
    assert page.count('href="#s1"') == 1
    assert page.count('href="#c1"') == 2
    assert '<svg viewBox="0 0 960 280"' in page
    assert page.count('class="mark') == 2
    assert "Usage of each request" in reader.text


def test_compactions_are_numbered_one_after_the_other_and_requests_beside_say_so() -> None:
    text = "Decide about the rounding of prices. " * 10
    with Store.open(None) as store:
        session = store.create(directory="/", model="m")
        session.log.append([Message("user", text), Message("assistant", "Done."), Message("user", "Go on.")])
        for stage in ("summarize", "collapse", "expand", "summarize"):
            session.views.commit(View(), msgspec.structs.replace(RECORD, stages=(stage,)))
        for seq in (2, BESIDE, UNREPORTED):
            session.usage.record(seq, "m", Usage(700, 20), 0)
        copy = store.copy_of(session.info.id)
        named = msgspec.structs.replace(copy, info=msgspec.structs.replace(copy.info, name="prices"))
        page, forked, markdown = to_html(copy), store.copy_of(store.fork(session.info.id).id), to_markdown(copy)
    reader = check(page)
    assert re.findall(r"Compaction (\S+) ", reader.text) == ["1", "2"]
    assert re.findall(r'href="#c\d+">(\S+)</a> ', page) == ["1", "2"]
    assert re.findall(r"compaction (\S+):", page) == ["1", "2"]
    assert re.findall(r"\*\*Compaction (\S+)\*\*", markdown) == ["1", "2"]
    rows = re.findall(r"<tr><td>(.*?)</td>", page)
    assert rows == ["2", "none: a summary, a task or /btw", "none: an answer that broke off"]
    titles = [re.findall("<h1[^>]*>(.*)</h1>", to_html(one))[0] for one in (copy, forked, named)]
    begun = text[: len(titles[0]) - 1]
    assert len(begun) > 100
    assert titles == [f"{begun}…", f"(fork) {begun}…", "prices"]


def test_what_was_compacted_away_is_one_line_until_it_is_opened() -> None:
    entries = [Entry(seq, Message("user", f"question {seq}")) for seq in range(1, 8)]
    summary = Summary("s1", ((1, 2), (4, 4)), "# Summed up\n\n- first\n- then")
    view = ViewCopy(1, 0, (SummaryPlace(1), Verbatim(3, 3), Stub(5, "[cleared]", "prune")), 7, aside=((6, 6),))
    record = CompactionRecord(trigger="auto", view_before=0, view_after=1, id="c1", at=1.0)
    copy = msgspec.structs.replace(
        new_copy(entries, directory="/"),
        views=(FIRST_VIEW, view),
        head_view=1,
        summaries=(summary,),
        compactions=(record,),
    )
    page = to_html(copy)
    reader = check(page)
    main = reader.at_first[reader.at_first.index("Messages 1–2 ·") :]
    assert re.findall(r"question \d", main) == ["question 3", "question 7"]
    assert "Messages 1–2 · the model sees summary s1 instead" in main
    assert "Message 4 · the model sees summary s1 instead" in main
    assert "5 · user the model sees a placeholder" in main
    assert "Message 6 · not part of the conversation: taken back" in main
    # The summary is there once, with what it replaces; the compaction and the second stretch lead to it.
    assert page.count('<h3 dir="auto">Summed up</h3>') == 1
    assert page.count('<li dir="auto">first</li>') == 1
    assert page.count('href="#s1"') == 2


def test_what_a_call_wrote_is_code_of_its_file() -> None:
    arguments = '{"path": "a.py", "content": "def f():\\n    return 1\\n"}'
    calls = (ToolCall("c", "write_file", arguments), ToolCall("d", "odd", "[1"), ToolCall("e", "odd", "[" * 900))
    page = to_html(new_copy([Entry(1, Message("assistant", None, calls))], directory="/"))
    check(page)
    assert '<span class="keyword">def</span> <span class="function">f</span>' in page
    assert '<pre dir="auto">\n[1</pre>' in page


def test_no_address_of_the_outside_is_in_it() -> None:
    page = to_html(full("text"))
    assert not [word for word in ("http:", "https:", "//", "url(", "@import") if word in page]


def test_an_empty_session_is_a_page_too() -> None:
    check(to_html(new_copy([], directory="/")))


@pytest.mark.parametrize("size", [1_999, 2_001])
def test_a_long_result_opens_with_a_click(size: int) -> None:
    page = to_html(new_copy([Entry(1, Message("tool", "x" * size, tool_call_id="c"))], directory="/"))
    assert ("characters</summary>" in page) == (size > 2_000)
    assert HOSTILE not in page


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("lines", [200, 5_000])
def test_a_message_of_thousands_of_lines_is_one_line_until_it_is_opened(role: Role, lines: int) -> None:
    text = "\n".join(f"line {number} <b>" for number in range(lines))
    page = to_html(new_copy([Entry(1, Message(role, text))], directory="/"))
    assert ("<summary>line 0 &lt;b&gt; · 5,000 lines, " in page) == (lines > 200)
    assert f"line {lines - 1} &lt;b&gt;" in page


@pytest.mark.parametrize(("chars", "is_folded"), [(12_000, False), (12_001, True)])
def test_a_message_of_thousands_of_characters_is_folded(chars: int, is_folded: bool) -> None:
    page = to_html(new_copy([Entry(1, Message("user", "x" * chars))], directory="/"))
    assert (f"{chars:,} characters</summary>" in page) == is_folded


def test_a_long_file_in_a_call_and_many_compactions_are_folded() -> None:
    call = ToolCall("c", "write_file", json.dumps({"path": "a.py", "content": "x = 1\n" * 900}))
    records = [CompactionRecord(trigger="manual", stages=("summarize",), view_after=0)] * 104
    copy = new_copy(
        [Entry(1, Message("user", "Hi")), Entry(2, Message("assistant", tool_calls=(call,)))], directory="/"
    )
    for count in (8, 104):
        page = to_html(msgspec.structs.replace(copy, compactions=tuple(records[:count])))
        assert page.count("<li>") == count
        assert ("<details><summary>104 compactions</summary>" in page) == (count > 8)
    assert "x = 1 · 901 lines" in page


def _palettes() -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """The named colours of the page on a light and on a dark screen."""
    light, _, dark = to_html(full()).partition("prefers-color-scheme: dark")

    def named(css: str) -> dict[str, tuple[int, ...]]:
        found = re.findall(r"--(\w+): #([0-9a-f]{3,6})", css)
        codes = {name: code if len(code) == 6 else "".join(2 * digit for digit in code) for name, code in found}
        return {name: tuple(bytes.fromhex(code)) for name, code in codes.items()}

    return named(light), named(dark)


def test_every_kind_of_tokens_has_a_colour_of_its_own_in_the_chart() -> None:
    page = to_html(full())
    colours = {kind: re.search(rf"svg \.{kind} {{ fill: var\(--(\w+)\)", page) for kind in STACK}
    assert [kind for kind, found in colours.items() if found is None] == []
    assert len({found[1] for found in colours.values() if found}) == len(STACK)


@pytest.mark.parametrize("palette", _palettes(), ids=("light", "dark"))
def test_coloured_text_can_be_read_on_both_backgrounds_of_the_page(palette: dict[str, tuple[int, ...]]) -> None:
    texts = ("text", "accent", "mark", "keyword", "string", "gone")
    found = {(text, back): contrast(palette[text], palette[back]) for text in texts for back in ("back", "soft")}
    assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}
