"""The settings as a list: every one is found, shown, edited with its own validation, and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.layers import defaults
from nca.config.loaded import LoadedSettings
from nca.config.schema import KEYS
from nca.errors import UsageError
from nca.terminal.panels.config_browser import ConfigBrowser, section_of
from nca.terminal.panels.list_panel import fitted_listing
from tests.terminal.tty import Tty, chats

DOWN, ESCAPE, TAB, CTRL_U, CTRL_S = "\x1b[B", "\x1b", "\t", "\x15", "\x13"


class Settings:
    """Settings in memory, changed as /config changes them."""

    def __init__(self) -> None:
        self.loaded = defaults()
        self.saved: list[str] = []

    def change(self, key: str, written: str, is_saving: bool) -> str:
        if written:
            self.loaded = self.loaded.with_value(key, "" if written == '""' else written, "the test")
        if is_saving:
            self.saved.append(key)
        return f"{key} is changed."

    def browser(self) -> ConfigBrowser:
        return ConfigBrowser(lambda: (self.loaded, {}), self.change, "auto")


def lines(browser: ConfigBrowser, columns: int = 100, height: int = 300) -> list[str]:
    drawn = fitted_listing(browser.listing(columns), columns, height)
    return [line.rstrip() for line in "".join(part[1] for part in drawn).split("\n")]


def chosen(browser: ConfigBrowser) -> str:
    """The name that stands before what is said about the chosen setting."""
    (row,) = [line for line in lines(browser) if line.startswith("›")]
    about = lines(browser)[lines(browser).index("─" * 100) + 1]
    assert row.removeprefix("› ").removeprefix("• ").split()[0] == about.partition(":")[0].rpartition(".")[2]
    return about.partition(":")[0]


def test_every_setting_stands_in_its_group() -> None:
    shown = lines(Settings().browser())
    for group in {section_of(name) for name in KEYS} - {""}:
        assert any(line.strip().startswith(f"{group}  ") for line in shown), group
    assert f"1 of {len(KEYS)} · " in shown[-1]
    browser = Settings().browser()
    walked = []
    for _ in KEYS:
        walked.append(chosen(browser))
        browser.move(1)
    assert sorted(walked) == sorted(KEYS)
    assert walked[0] == "model.name"
    assert {section_of(name) for name in walked[-2:]} == {""}


@given(st.sampled_from(sorted(KEYS)), st.integers(1, 200), st.integers(0, 40))
def test_a_name_is_found_by_typing_it_in_every_window(name: str, columns: int, height: int) -> None:
    browser = Settings().browser()
    browser.buffer.text = name
    while chosen(browser) != name:
        browser.move(1)
    assert all(len(line) <= columns for line in lines(browser, columns, height))


def test_a_name_that_is_typed_is_chosen_before_those_whose_description_has_it() -> None:
    browser = Settings().browser()
    for typed in ("compact_th", "auto", "context.max_tokens"):
        browser.buffer.text = typed
        assert chosen(browser).rpartition(".")[2].startswith(typed.rpartition(".")[2])
    browser.buffer.text = ""
    assert chosen(browser) == "context.max_tokens"


def test_only_what_is_changed() -> None:
    settings = Settings()
    browser = settings.browser()
    browser.keys()["tab"]()
    assert lines(browser)[0].strip() == "Nothing is changed."
    assert "Tab shows all settings." in lines(browser)
    browser.enter()
    browser.keys()["c-s"]()
    assert browser.label == "Search: "
    settings.loaded = settings.loaded.with_value("context.auto", "off", "the test")
    browser = settings.browser()
    browser.keys()["tab"]()
    assert chosen(browser) == "context.auto"
    assert any(line.startswith("› • auto") and line.endswith("the test") for line in lines(browser))
    browser.buffer.text = "no such setting"
    assert lines(browser)[0].strip() == "Nothing found."
    assert "Only changed settings are searched. Tab shows all." in lines(browser)
    browser.keys()["tab"]()
    browser.buffer.text = "compct_threshold"
    assert any(line.startswith("Did you mean context.compact_threshold?") for line in lines(browser))
    assert not any("context.auto" in line for line in lines(browser)), "nothing is said of another setting"
    assert "Tab only changed · Esc leaves" in lines(browser), "there is nothing to edit"


def test_a_value_is_checked_and_the_next_valid_one_is_a_key_away() -> None:
    settings = Settings()
    browser = settings.browser()
    browser.buffer.text = "compact_threshold"
    while chosen(browser) != "context.compact_threshold":
        browser.move(1)
    browser.enter()
    assert (browser.label, browser.buffer.text) == ("context.compact_threshold = ", "auto")
    browser.buffer.text = "7.5"
    browser.enter()
    assert "did you mean 0.75 or 7.5%?" in " ".join(lines(browser))
    assert browser.label == "context.compact_threshold = "
    browser.buffer.text = "70%"
    browser.enter()
    assert settings.loaded.value("context.compact_threshold") == 0.7
    assert (browser.label, browser.buffer.text) == ("Search: ", "compact_threshold")
    browser.keys()["c-s"]()
    assert settings.saved == ["context.compact_threshold"]
    # What is given up stays as it was.
    browser.enter()
    browser.buffer.text = "50%"
    browser.leave()
    assert settings.loaded.value("context.compact_threshold") == 0.7
    browser.buffer.text = "context.auto"
    browser.enter()
    for value in ("off", "preview", "on"):
        browser.keys()["tab"]()
        assert browser.buffer.text == value
    browser.buffer.text = "off"
    browser.keys()["c-s"]()
    assert (settings.loaded.value("context.auto"), settings.saved[-1]) == ("off", "context.auto")


@pytest.mark.parametrize("name", [key.name for key in KEYS.values() if key.value_type.row is None])
def test_what_a_setting_has_can_be_typed_again(name: str) -> None:
    settings = Settings()
    browser = settings.browser()
    browser.buffer.text = name
    while chosen(browser) != name:
        browser.move(1)
    browser.enter()
    browser.enter()
    assert settings.loaded.value(name) == defaults().value(name)
    assert browser.label == "Search: "


def test_tables_are_not_edited_in_a_line() -> None:
    browser = Settings().browser()
    browser.buffer.text = "context.section"
    browser.enter()
    assert browser.label == "Search: "
    goes_on: Callable[[], None]
    for goes_on in (partial(browser.move, 1), partial(browser.typed, "context.section")):
        browser.enter()
        assert "It holds tables" in " ".join(lines(browser))
        goes_on()
        assert "It holds tables" not in " ".join(lines(browser))


def test_what_is_refused_says_what_to_do() -> None:
    def refuse(key: str, written: str, is_saving: bool) -> str:
        raise UsageError("It cannot be saved.", advice="Make room.")

    loaded: LoadedSettings = defaults()
    browser = ConfigBrowser(lambda: (loaded, {}), refuse, "auto")
    browser.keys()["c-s"]()
    assert "It cannot be saved. Make room." in lines(browser)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    with chats(settles=True, directory=str(tmp_path)) as begin:
        yield begin


def test_settings_are_browsed_edited_and_saved_in_the_chat(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start()
    tty.command("/config")
    tty.sees(f"1 of {len(KEYS)}")
    tty.send("target_ratio\r")
    tty.sees("context.target_ratio = auto")
    tty.send(CTRL_U + "2\r")
    tty.sees("did you mean 0.2 or 2%?")
    tty.send(CTRL_U + "30%" + CTRL_S)
    tty.sees("context.target_ratio = 0.3, saved in ")
    tty.send(ESCAPE)
    tty.settle()
    assert "Search:" not in "\n".join(tty.shown())
    assert (tmp_path / ".nca" / "config.toml").read_text() == "[context]\ntarget_ratio = 0.3\n"
    tty.line("/config context.target_ratio")
    tty.sees(".nca/config.toml)")
    tty.line("exit")
    assert tty.ends() == 0
    assert b"Traceback" not in tty.raw


def test_a_value_is_cut_only_where_it_has_no_room() -> None:
    names = {name.rpartition(".")[2] for name in KEYS}
    rows = [(line[4:28].strip(), line[28:]) for line in lines(Settings().browser(), columns=40)]
    values = [(name, value) for name, value in rows if name in names]
    assert ("profile", "none") in values
    assert [value for _, value in values if value.endswith("…") and len(value) < 12] == []
