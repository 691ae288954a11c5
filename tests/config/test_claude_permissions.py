"""Claude Code's rules that deny or ask hold without trust, and none is taken for less than it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.claude_permissions import Decision, HeldRule, allowing, restricting
from nca.config.layers import load
from nca.config.loaded import LoadedSettings
from nca.config.tables import TOOLS, PermissionRule
from nca.humanize import UsualNotice
from nca.tools.permissions import about, matching, widened
from nca.tools.tool import Permission


class Place:
    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "project"
        for folder in (self.home, self.project):
            (folder / ".claude").mkdir(parents=True)

    def write(self, permissions: Any, name: str = ".claude/settings.json", *, own: bool = False) -> None:
        text = permissions if isinstance(permissions, str) else json.dumps({"permissions": permissions})
        ((self.home if own else self.project) / name).write_text(text)

    def load(self, *, is_trusted: bool = False) -> LoadedSettings:
        env = {"HOME": str(self.home), "NCA_HOME": str(self.home / "nca")}
        return load(project=self.project, env=env, trusts=lambda what: is_trusted)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_all_files_hold_at_once_and_each_is_said_in_a_line(place: Place) -> None:
    place.write({"deny": ["Read(./.env)", "Bash(rm:*)", "WebFetch"], "allow": ["Bash"]})
    place.write({"deny": ["Read(a)"], "ask": ["Bash(git push:*)"]}, ".claude/settings.local.json")
    place.write({"ask": ["WebFetch(domain:example.com)"]}, own=True)
    loaded = place.load()
    assert sorted(loaded.notes) == [
        "1 ask rule of ~/.claude/settings.json holds here.",
        "1 deny rule and 1 ask rule of .claude/settings.local.json hold here.",
        "3 deny rules of .claude/settings.json hold here.",
        f"Settings of this project wait for your trust: permissions.allow ({place.project}/.claude/settings.json); it"
        " is not trusted (`nca config trust` shows them and asks, and a no ends this line; --trust accepts them for one"
        " run).",
    ]
    assert len(loaded.settings.permissions.deny) == 4
    assert len(loaded.settings.permissions.ask) == 2
    assert loaded.settings.permissions.allow == ()
    assert loaded.value("permissions.deny") == ()


def test_what_only_says_what_holds_is_usual_and_what_is_unclear_is_not(place: Place) -> None:
    place.write({"deny": ["Bash(rm:*)", "Nonsense(x)"], "ask": ["Bash(git push:*)"], "allow": ["Bash(make)"]})
    usual, unclear = place.load(is_trusted=True).notes
    assert usual == "1 deny rule, 1 ask rule and 1 allow rule of .claude/settings.json hold here."
    assert isinstance(usual, UsualNotice)
    assert "is not clear to nca" in unclear
    assert not isinstance(unclear, UsualNotice)


def asked_about(loaded: LoadedSettings) -> set[str]:
    return {rule.tool for rule in loaded.settings.permissions.ask}


def test_no_layer_takes_them_away(place: Place) -> None:
    place.write({"deny": ["Bash"]})
    loaded = place.load().with_value("permissions.deny", [], "set in this chat").for_model("openai/x")
    assert [str(rule) for rule in loaded.settings.permissions.deny] == ["Bash in .claude/settings.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not whole JSON"),
        ("", "it is not whole JSON"),
        ('{\n"permissions": no}', "line 2 is not JSON"),
        ("[]", "not a JSON object"),
        ('{"permissions": []}', "permissions is not a JSON object"),
        ('{"permissions": {"deny": "Bash"}}', "permissions.deny is not a list"),
        ('{"permissions": {"ask": [5]}}', "a rule of permissions.ask is not text"),
        ("\xff", "it is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_in_one_line_and_asks(place: Place, text: str, said: str) -> None:
    (place.project / ".claude" / "settings.json").write_bytes(text.encode("latin-1"))
    loaded = place.load(is_trusted=True)
    (note,) = loaded.notes
    assert said in note
    assert "settings.json" in note
    assert "nca asks about every call that acts or shows a file" in note
    assert all(rule.is_for_all for rule in loaded.settings.permissions.ask)
    assert asked_about(loaded) == {"*", "read_file", "grep", "glob", "list_directory", "shell"}


@pytest.mark.parametrize(
    "text",
    [
        '{ // never\n "permissions": {"deny": ["Bash(rm:*)"]} }',
        '{ "permissions": {"deny": ["Bash(rm:*)",]}, }',
        '\ufeff{ /* "permissions": {} */ "permissions": {"deny": ["Bash(rm:*)" /* , */] } }',
    ],
)
def test_a_file_may_have_comments_and_last_commas(place: Place, text: str) -> None:
    place.write(text)
    loaded = place.load()
    assert loaded.notes == ("1 deny rule of .claude/settings.json holds here.",)
    assert loaded.settings.permissions.ask == ()


def test_what_allows_and_cannot_be_read_only_does_not_hold(place: Place) -> None:
    place.write({"allow": "Bash", "deny": ["Bash(rm:*)"]})
    loaded = place.load(is_trusted=True)
    assert any("permissions.allow is not a list" in note for note in loaded.notes)
    assert loaded.settings.permissions.ask == ()


@pytest.mark.parametrize(
    "written",
    [
        "Read(!x)",
        "Task(Explore)",
        "Skill(deploy)",
        "Bash(rm",
        "rm -rf",
        "",
        "Nonsense(x)",
        "Nons*",
        "WebFetch(https://example.com/*)",
        "mcp__server__tool(x)",
        "Read(*a*a*a*a*a*b)",
        "Read(.)",
        "Read(a\\)",
    ],
)
def test_what_cannot_be_translated_asks_and_is_named(place: Place, written: str) -> None:
    place.write({"deny": [written]})
    loaded = place.load()
    assert loaded.settings.permissions.deny == ()
    assert loaded.settings.permissions.ask
    assert any("not clear to nca" in note and written[:60] in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("Read(.)", {"read_file", "grep", "glob", "list_directory", "shell"}),
        ("Read(.env", {"*", "read_file", "grep", "glob", "list_directory", "shell"}),
        ("Nonsense(x)", {"*"}),
    ],
)
def test_a_denial_that_may_be_about_reading_asks_about_each_way_to_read(
    place: Place, written: str, tools: set[str]
) -> None:
    place.write({"deny": [written]})
    assert asked_about(place.load()) == tools


@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_a_star_in_a_tool_s_name_denies_no_less_than_the_name(name: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(name)))
    end = data.draw(st.integers(begin, len(name)))
    what = data.draw(st.sampled_from(["", "(*)", "(x)", "(domain:x)", "(!x)"]))
    plain, starred = (
        restricting("deny", f"{one}{what}", "f", Path("/base")) for one in (name, f"{name[:begin]}*{name[end:]}")
    )

    def calls(held: HeldRule, *decisions: Decision) -> set[tuple[str, str, str]]:
        rules = widened(tuple(rule for decision in decisions for rule in held.of(decision)))
        needs = {"shell": "execute", "edit_file": "write", "write_file": "write", "task": "execute"}
        return {
            (tool, rule.paths, rule.pattern)
            for tool in TOOLS.values()
            for rule in about(rules, tool, cast(Permission, needs.get(tool, "read")))
        }

    def is_in(call: tuple[str, str, str], found: set[tuple[str, str, str]]) -> bool:
        return call in found or (call[0], "", "") in found

    assert all(is_in(call, calls(starred, "deny")) for call in calls(plain, "deny"))
    assert all(is_in(call, calls(starred, "deny", "ask")) for call in calls(plain, "ask"))


@pytest.mark.parametrize("written", ["WebSearch", "WebSearch(x)", "ExitPlanMode"])
def test_what_nca_has_no_tool_for_holds_by_itself(place: Place, written: str) -> None:
    place.write({"deny": [written]})
    assert place.load().notes == ("1 deny rule of .claude/settings.json holds here.",)


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ("Bash", {PermissionRule("shell")}),
        ("Bash(*)", {PermissionRule("shell")}),
        ("bash(npm run test:*)", {PermissionRule("shell", pattern="npm run test *")}),
        ("WebFetch(domain:example.com)", {PermissionRule("fetch_url", pattern="example.com")}),
        ("mcp__a__b", {PermissionRule("mcp__a__b")}),
        ("mcp__a", {PermissionRule("mcp__a"), PermissionRule("mcp__a__*")}),
        ("mcp__a__*", {PermissionRule("mcp__a__*")}),
        ("Read(./.env)", {PermissionRule("*", paths=".env")}),
        ("Read(~/.ssh/**)", {PermissionRule("*", paths="~/.ssh/**")}),
        ("Read(//etc/passwd)", {PermissionRule("*", paths="/etc/passwd")}),
        ("Read(/src/*.py)", {PermissionRule("*", paths="/base/src/*.py")}),
        (
            "Read(*.{pem,key})",
            {PermissionRule("*", paths=path) for path in ("*.{pem,key}", "*.pem", "*.key")},
        ),
        ("Edit(src/**)", {PermissionRule(tool, paths="src/**") for tool in ("edit_file", "write_file")}),
        ("Write", {PermissionRule("write_file")}),
        ("Ba*", {PermissionRule("shell")}),
        ("Ba*(rm:*)", {PermissionRule("shell", pattern="rm *")}),
        ("web*", {PermissionRule("fetch_url")}),
        ("Write*", {PermissionRule("write_file")}),
        ("*Fetch", {PermissionRule("*Fetch"), PermissionRule("fetch_url")}),
        ("*", {PermissionRule("*")}),
    ],
)
def test_the_rules_of_each_form(written: str, rules: set[PermissionRule]) -> None:
    from dataclasses import replace

    found = restricting("deny", written, "f", Path("/base"))
    assert found.is_exact
    assert {replace(rule, origin="") for rule in found.of("deny")} == rules


@pytest.mark.parametrize(
    ("written", "is_exact"),
    [
        ("Read(src/**)", True),
        ("Grep", True),
        ("Read(//etc/**)", False),
        ("Read(~/notes)", False),
        ("Bash(a; b)", False),
    ],
)
def test_a_rule_that_allows_reading_below_the_directory_needs_none_of_nca(written: str, is_exact: bool) -> None:
    found = allowing(written, "f", "")
    assert (found.rules, found.is_exact) == ((), is_exact)


@given(st.text(max_size=40) | st.from_regex(r"(Read|Edit|Bash|WebFetch|mcp__a__b|\w{3})\([^)]{0,20}\)", fullmatch=True))
def test_no_rule_is_without_effect_or_unsaid(written: str) -> None:
    found = restricting("deny", written, "f", Path("/base"))
    for rule in found.of("deny"):
        matching([rule], "x", {"/work/a", "host"}, Path("/work"), ["make x"])
    assert found.rules or found.is_exact
    assert found.is_exact or found.of("ask")
