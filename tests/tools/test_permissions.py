"""Permission modes and rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.config.tables import PermissionRule, is_file_pattern
from nca.tools.permissions import about, asking, decide, matching, may_hide, names_of, reading_rule, refusal, widened
from nca.tools.tool import Approval


@pytest.mark.parametrize(
    ("mode", "read", "write", "execute"),
    [
        ("ask", "allow", "ask", "ask"),
        ("accept-edits", "allow", "allow", "ask"),
        ("plan", "allow", "deny", "deny"),
        ("auto", "allow", "allow", "allow"),
    ],
)
def test_what_each_mode_lets_a_tool_do(mode: str, read: str, write: str, execute: str) -> None:
    assert [decide(mode, one) for one in ("read", "write", "execute")] == [read, write, execute]


def test_a_refusal_says_why() -> None:
    assert "only allows reading" in refusal("plan", "write", "deny")
    assert "nobody can give it" in refusal("ask", "execute", "ask")


@pytest.mark.parametrize(
    ("subject", "about", "speaks"),
    [
        ("", "/work/a", True),
        ("/work/a", "/work/a", True),
        ("a", "/work/a", True),
        ("./a", "/work/a", True),
        ("sub/../a", "/work/a", True),
        ("/work/a", "/work/ab", False),
        ("/work/**", "/work/a/b", True),
        ("/work/**", "/work-evil/a", False),
        ("src/**", "/work/src/a", True),
        ("src/**", "/work/src-evil/a", False),
        ("src/**", "/elsewhere/src/a", False),
        ("../**", "/other", True),
        ("/**", "/etc/passwd", True),
        ("**", "/work/a", False),
        ("*", "/work/a", False),
        ("/work/.*", "/work/ab", False),
        ("git", "git", True),
        ("git", "git push", False),
        ("git/**", "git", False),
        ("example.org", "example.org", True),
        ("example.org", "evil-example.org", False),
    ],
)
def test_a_rule_is_exact_or_all_below(subject: str, about: str, speaks: bool) -> None:
    found = matching([PermissionRule("tool", subject)], "tool", {about}, Path("/work"))
    assert (found is not None) is speaks


def test_a_rule_speaks_of_its_tool_and_its_directory() -> None:
    def speaks(rule: PermissionRule) -> bool:
        return matching([rule], "shell", {"make"}, Path("/work")) is not None

    assert speaks(PermissionRule("*", "make"))
    assert speaks(PermissionRule("shell", "make", "/work"))
    assert speaks(PermissionRule("shell", "make", "/work/"))
    assert not speaks(PermissionRule("shel", "make"))
    assert not speaks(PermissionRule("shell", "make", "/work/sub"))
    assert not speaks(PermissionRule("shell", "make", "/"))


@pytest.mark.parametrize(
    ("paths", "about", "speaks"),
    [
        (".env", "/work/.env", True),
        (".env", "/work/sub/.env", True),
        (".env", "/other/.env", False),
        (".env", "/work/.environment", False),
        ("*.pem", "/work/a/b.pem", True),
        ("secrets/**", "/work/secrets/a/b", True),
        ("secrets/**", "/work/secrets-more/a", False),
        ("secrets/", "/work/secrets/a", True),
        ("src/*.py", "/work/src/a.py", True),
        ("src/*.py", "/work/src/a/b.py", False),
        ("**/x", "/work/a/b/x", True),
        ("/etc/**", "/etc/a", True),
        ("/etc", "/etc/a", True),
        ("../other/*", "/other/a", True),
        ("~", str(Path("~/a").expanduser()), True),
        ("~/.ssh/", str(Path("~/.ssh/id").expanduser()), True),
        ("a/../b/c", "/work/b/c", True),
        (".env", ".env", False),
    ],
)
def test_paths_are_patterns_of_gitignore(paths: str, about: str, speaks: bool) -> None:
    found = matching([PermissionRule("tool", paths=paths)], "tool", {about}, Path("/work"))
    assert (found is not None) is speaks


def test_two_slashes_begin_no_other_path() -> None:
    rules = [PermissionRule("*", subject="/work/secret/**")]
    assert matching(rules, "tool", names_of("//work/secret/a", Path("/work")), Path("/work")) is not None


def test_paths_hold_for_a_file_by_all_its_names(tmp_path: Path) -> None:
    root = Path(tmp_path.resolve())
    (root / "real").mkdir()
    (root / "real" / "file").write_text("x")
    (root / "link").symlink_to("real")
    (root / "one").symlink_to("real/file")
    (root / "[a]*").mkdir()
    for paths in ("link/**", "link/file", "one", "real/f*"):
        rules = [PermissionRule("*", paths=f"./{paths}" if "/" not in paths else paths)]
        assert reading_rule(rules, root / "real" / "file", root) is not None, paths
    rules = [PermissionRule("*", paths="inner/x")]
    assert reading_rule(rules, root / "[a]*" / "inner" / "x", root / "[a]*") is not None
    assert reading_rule(rules, root / "a" / "inner" / "x", root / "[a]*") is None


any_path = st.text(st.characters() | st.sampled_from("~/.*\0\ud800\udcff"), min_size=1, max_size=30)
"""What a model, or the JSON of other programs' settings, may hold: zero bytes and halves of surrogate pairs too."""


@given(any_path, any_path)
@example("~backup.txt", "~nosuch/**")
@example("~\0", "~\ud800")
@example("\ud800", "\0/a")
@example("\udcff", "~\udcff/a")
@example("///**", "//a")
def test_any_text_is_a_path(path: str, rule: str) -> None:
    names = names_of(path, Path("/work"))
    assert all(Path(name).is_absolute() for name in names)
    matching([PermissionRule("*", subject=rule)], "read_file", names, Path("/work"))
    if is_file_pattern(rule):
        matching([PermissionRule("*", paths=rule)], "read_file", names, Path("/work"))
    for subject in (path, names[-1]):
        assert matching([PermissionRule("*", subject=subject)], "read_file", names, Path("/work")) is not None


@pytest.mark.parametrize(
    ("pattern", "command", "speaks"),
    [
        ("rm *", "rm", True),
        ("rm *", "rm -rf x", True),
        ("rm *", "sudo rm x", True),
        ("rm *", "rmdir x", False),
        ("rm*", "rmdir x", True),
        ("make", "make", True),
        ("make", "make x", False),
        ("git  *  main", "git push origin main", True),
        ("a?c", "abc", False),
        ("[ab]", "a", False),
    ],
)
def test_a_pattern_is_for_the_words_of_a_command(pattern: str, command: str, speaks: bool) -> None:
    rules = [PermissionRule("shell", pattern=pattern)]
    assert (matching(rules, "shell", set(), Path("/work"), [command]) is not None) is speaks


def test_in_a_command_that_only_reads_no_other_word_is_a_program() -> None:
    rules = [PermissionRule("shell", pattern="rm *")]
    for command, speaks in (("grep rm x", False), ("rm x", True)):
        found = matching(rules, "shell", set(), Path("/work"), [command], only_reads=True)
        assert (found is not None) is speaks


@pytest.mark.parametrize(
    ("rule", "tool", "name", "speaks"),
    [
        (PermissionRule("read_file", "secret"), "grep", "secret", True),
        (PermissionRule("read_file", "secret"), "shell", "secret/a/b", True),
        (PermissionRule("read_file", "secret/**"), "any", "secret/a", True),
        (PermissionRule("read_file", "secret"), "grep", "secret-not", False),
        (PermissionRule("edit_file", "src"), "write_file", "src/a", True),
        (PermissionRule("write_file", "src"), "edit_file", "src", True),
        (PermissionRule("edit_file", paths="*.pem"), "write_file", "a/b.pem", True),
        (PermissionRule("edit_file", "src"), "read_file", "src/a", False),
        (PermissionRule("shell", "src"), "shell", "src/a", False),
    ],
)
def test_a_rule_that_denies_holds_for_all_that_its_writer_means(
    rule: PermissionRule, tool: str, name: str, speaks: bool
) -> None:
    found = matching(widened((rule,)), tool, {f"/work/{name}"}, Path("/work"))
    assert (found is not None) is speaks


@pytest.mark.parametrize("tool", ["edit_file", "write_file"])
def test_a_command_that_names_a_file_which_may_not_be_edited_is_asked_about(tool: str) -> None:
    rules = asking((PermissionRule(tool, "src"),), (PermissionRule("read_file", "a"),))
    for name, speaks in (("src/b", True), ("a", True), ("other", False)):
        assert (matching(rules, "shell", {f"/work/{name}"}, Path("/work")) is not None) is speaks
    # Not about one that only reads, and where all edits are denied, not about all commands.
    assert not about(asking((PermissionRule(tool, "src"),), ()), "shell", "read")
    assert not about(asking((PermissionRule(tool),), ()), "shell", "execute")


@pytest.mark.parametrize(
    ("rule", "computed", "may"),
    [
        (PermissionRule("shell", pattern="ls *"), None, True),
        (PermissionRule("shell", pattern="ls *"), frozenset({"ls"}), True),
        (PermissionRule("shell", pattern="ls *"), frozenset({"cat"}), False),
        (PermissionRule("shell", pattern="ls *"), frozenset(), False),
        (PermissionRule("shell", pattern="no-such-program *"), frozenset({"cat"}), True),
        (PermissionRule("read_file", "ls"), frozenset({"cat"}), True),
        (PermissionRule("shell", "ls", for_changes=True), frozenset({"cat"}), True),
        (PermissionRule("shell"), None, False),
    ],
)
def test_what_a_rule_is_about_may_hide_where_a_shell_computes_words(
    rule: PermissionRule, computed: frozenset[str] | None, may: bool
) -> None:
    assert may_hide(rule, Approval(command="x", computed=computed)) is may
    assert not may_hide(rule, Approval(path="/work/a", computed=computed))


def test_a_pattern_full_of_wildcards_takes_no_time() -> None:
    rules = [PermissionRule("shell", pattern="*a" * 60 + "b")]
    assert matching(rules, "shell", set(), Path("/work"), ["a" * 4_000]) is None


def test_a_tool_s_name_may_hold_a_star() -> None:
    rules = [PermissionRule("mcp__a__*")]
    assert matching(rules, "mcp__a__b", set(), Path("/work")) is not None
    assert matching(rules, "mcp__ab__b", set(), Path("/work")) is None
