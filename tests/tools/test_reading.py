"""Which commands run without asking: those that provably only read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.tools.files.workspace import Workspace
from nca.tools.programs import find_program, path_outside
from nca.tools.shell.computed import without_patterns
from nca.tools.shell.known_commands import only_harmless_keys, read_only_argv
from tests.tools.git_setups import CONFIGS, FILES, LINKS
from tests.tools.shell_strings import HARMLESS, SLY

NOW = "1200000000"
"""For git, which tells how long ago a commit was: two runs say the same whenever they are made."""
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TEST_DATE_NOW": NOW}
CONFIG = """
[core]
\trepositoryformatversion = 0
\tfilemode = true
[remote "origin"]
\turl = https://example.com/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
; a comment
[branch "main"]
\tremote = origin
[user]
\tname = "Me"
"""


def git(root: Path, *arguments: str) -> None:
    settings = ["user.name=me", "user.email=me@example.com", "init.defaultBranch=main"]
    # Newer git goes on in the background after a commit, and would change the repository while a test compares it.
    settings += ["gc.auto=0", "maintenance.auto=false"]
    who = [word for setting in settings for word in ("-c", setting)]
    at = "2005-04-07T22:13:13 +0200"
    environment = ENVIRONMENT | {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    subprocess.run(("git", *who, *arguments), cwd=root, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reading").resolve()
    root = place / "root"
    for folder in (root / "src", root / "sub", place / "beside"):
        folder.mkdir(parents=True)
    (place / "secret.txt").write_text("secret")
    (place / "beside" / "secret.txt").write_text("secret")
    (root / "notes.txt").write_text("hello world\n" * 5)
    (root / "src" / "a.py").write_text("hello\n")
    for name in ("--output=x", "-delete", "-exec"):
        (root / name).write_text("")
    (root / "outside").symlink_to(place / "beside")
    (root / "key").symlink_to(place / "secret.txt")
    git(root, "init", "-q")
    git(root, "add", "notes.txt", "src")
    git(root, "commit", "-q", "-m", "first")
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    return root


def argv(command: str, root: Path, directory: Path | None = None, env: Mapping[str, str] = ENVIRONMENT) -> object:
    workspace = Workspace(root)
    return read_only_argv(command, workspace=workspace, directory=directory or workspace.root, environment=env)


def test_the_corpus_is_large_and_of_its_own() -> None:
    assert len(set(SLY)) >= 600
    assert not set(SLY) & set(HARMLESS)


def test_nothing_slips_past(root: Path) -> None:
    assert [command for command in SLY if argv(command, root) is not None] == []


@pytest.mark.parametrize("command", HARMLESS)
def test_what_plainly_reads_runs_and_says_what_a_shell_would(command: str, root: Path) -> None:
    words = argv(command, root)
    assert isinstance(words, tuple)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    ours = subprocess.run(words, cwd=root, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    shell = subprocess.run(
        ["bash", "-c", command], cwd=root, env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert (ours.stdout, ours.returncode) == (shell.stdout, shell.returncode)


PIPED = (
    "ls",
    "head",
    "wc",
    "cat",
    "grep",
    "find",
    "tail",
    "diff",
    "cmp",
    "nl",
    "stat",
    "du",
    "pwd",
    "sed",
    "echo",
    "true",
)


def tokens(line: str) -> list[str]:
    """The words and signs of a command line, as POSIX has them."""
    found = shlex.shlex(line, posix=True, punctuation_chars=True)
    found.whitespace_split = True
    found.commenters = ""
    return list(found)


@given(
    st.sampled_from(HARMLESS),
    st.text(st.sampled_from(";&|<>$`(){}[]*?!#~\\\"'\n\r\t\0 =./-"), min_size=1, max_size=6),
    st.integers(0, 40),
)
@hypothesis_settings(max_examples=1_000, deadline=None)
def test_signs_put_into_a_harmless_command_do_not_change_its_words(
    root: Path, command: str, signs: str, place: int
) -> None:
    """Whatever still runs has the words that any shell would see, and git's own options before them."""
    changed = command[:place] + signs + command[place:]
    words = argv(changed, root)
    changed = without_patterns(changed, workspace=Workspace(root), directory=root)
    in_shell = isinstance(words, tuple) and Path(words[0]).name in ("bash", "sh")
    if isinstance(words, tuple) and in_shell and "git" not in changed:
        programs = "|".join(re.escape(str(find_program(name, ENVIRONMENT["PATH"], outside=root))) for name in PIPED)
        assert tokens(
            re.sub(f"(?:^|(?<= ))(?:{programs})(?= |$)", lambda found: Path(found[0]).name, words[2])
        ) == tokens(changed)
    elif isinstance(words, tuple) and not in_shell:
        said = [word for word in shlex.split(changed)[1:] if word != "--no-pager"]
        assert list(words[len(words) - len(said) :]) == said or words[0].endswith("git")
        assert set(said) <= set(words)


@given(
    st.lists(st.sampled_from(HARMLESS), max_size=2),
    st.sampled_from(SLY),
    st.lists(st.sampled_from(HARMLESS), max_size=2),
    st.lists(st.sampled_from([";", " ; ", "&&", " && ", " || ", " | "]), min_size=4, max_size=4),
)
@hypothesis_settings(max_examples=400, deadline=None)
def test_no_list_with_a_command_that_is_asked_about_runs_unasked(
    root: Path, before: list[str], sly: str, behind: list[str], joints: list[str]
) -> None:
    parts = [*before, sly, *behind]
    command = "".join(f"{part}{joint}" for part, joint in zip(parts, [*joints[: len(parts) - 1], ""], strict=True))
    assert argv(command, root) is None


def test_judged_from_where_the_last_command_went(root: Path) -> None:
    assert argv("cat ../notes.txt", root, root / "sub") is not None
    assert argv("cat ../../secret.txt", root, root / "sub") is None
    assert argv("ls", root, root.parent) is None
    assert argv("ls", root, root / "outside") is None


def test_going_to_where_it_runs_anyway_changes_nothing(root: Path) -> None:
    for here in (str(root), f"{root}/", "."):
        for command in ("cat notes.txt", "ls -a | head -3; pwd", "git status"):
            assert argv(f"cd {here} && {command}", root) == argv(command, root) is not None
        for sly in ("rm x", "cat ../secret.txt", "cat key", "cat *", "cd .. && cat secret.txt", "./ls", "ls > x"):
            assert argv(f"cd {here} && {sly}", root) is None, sly
    for elsewhere in (
        '"$PWD"',
        "$PWD",
        f"{root}/..",
        f"{root}/sub",
        f"{root}/sub/..",
        "outside",
        f"{root}/outside",
        "-",
    ):
        assert argv(f"cd {elsewhere} && ls", root) is None, elsewhere
    assert argv(f"cd {root} && ls ..", root, root / "sub") is None
    assert argv(f"cd {root}/sub && ls ..", root, root / "sub") is not None


def test_no_program_of_the_project_passes_for_another(root: Path, tmp_path: Path) -> None:
    evil = root / "sub" / "ls"
    evil.write_text("#!/bin/sh\ntouch pwned\n")
    evil.chmod(0o755)
    linked = tmp_path / "bin"
    linked.mkdir()
    (linked / "ls").symlink_to(evil)
    try:
        for path in (f"{root}/sub:{ENVIRONMENT['PATH']}", f"{linked}:{ENVIRONMENT['PATH']}"):
            assert argv("ls", root, env={"PATH": path}) is None
        for path in (f".:{ENVIRONMENT['PATH']}", f":{ENVIRONMENT['PATH']}", f"sub:{ENVIRONMENT['PATH']}"):
            found = argv("ls", root, root / "sub", env={"PATH": path})
            assert isinstance(found, tuple)
            assert not found[0].startswith(str(root))
        assert argv("ls", root, env={}) is None
    finally:
        evil.unlink()


GIT_READS = ("git status", "git log", "git show HEAD", "git diff", "git branch -a", "git blame a", "git ls-files")


@pytest.fixture(scope="module")
def two_repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and another repository beside it."""
    place = tmp_path_factory.mktemp("repositories").resolve()
    for name in ("project", "other"):
        (place / name).mkdir()
        git(place / name, "init", "-q", "--template=")
        (place / name / "a").write_text(name)
        git(place / name, "add", "a")
        git(place / name, "commit", "-q", "-m", name)
        git(place / name, "tag", "v1")
        (place / name / ".git" / "info").mkdir()
    return place


@pytest.fixture
def project(two_repositories: Path, tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "place"
    shutil.copytree(two_repositories, place)
    assert all(argv(command, place / "project") is not None for command in GIT_READS)
    return place / "project"


def test_there_are_enough_tricks() -> None:
    assert len(CONFIGS) + len(LINKS) + len(FILES) + 5 >= 140


def test_a_configuration_that_names_programs_is_asked_about() -> None:
    harmless = [trick for trick, text in CONFIGS.items() if only_harmless_keys(f"{CONFIG}{text}".encode())]
    assert harmless == ["too long"]


def test_no_git_command_runs_unasked_with_such_a_configuration(project: Path) -> None:
    config = project / ".git" / "config"
    usual = config.read_text()
    for trick, text in CONFIGS.items():
        config.write_text(usual + text, newline="")
        assert [command for command in GIT_READS if argv(command, project) is not None] == [], trick


def test_no_git_command_runs_unasked_where_a_link_or_a_file_leads_elsewhere(project: Path) -> None:
    repository = project / ".git"
    commit = next(path for path in sorted((repository / "objects").glob("??/*")))
    known = {"objects/{a commit}": commit, "objects/{a folder}": commit.parent}
    for name in LINKS:
        path = known.get(name, repository / name)
        there = project.parent / "other" / ".git" / path.relative_to(repository)
        kept = path.with_name("kept")
        if path.exists():
            path.rename(kept)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(there)
        assert [command for command in GIT_READS if argv(command, project) is not None] == [], name
        path.unlink()
        if kept.exists():
            kept.rename(path)
    for name, text in FILES.items():
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(text)
        assert [command for command in GIT_READS if argv(command, project) is not None] == [], name
        (repository / name).unlink()
    assert argv("git status", project) is not None


def test_a_repository_of_other_things_than_files_or_too_large_to_look_at_is_asked_about(project: Path) -> None:
    repository = project / ".git"
    os.mkfifo(repository / "refs" / "pipe")
    assert argv("git log", project) is None
    (repository / "refs" / "pipe").unlink()
    for name in ("hooks", "lfs", "modules"):
        (repository / name).mkdir()
        (repository / name / "link").symlink_to("/etc")
    assert argv("git log", project) is not None, "git does not read these"
    (repository / "objects" / "many").mkdir()
    for number in range(20_000):
        os.mknod(repository / "objects" / "many" / str(number))
    assert argv("git log", project) is None


def test_no_planted_program_runs_whatever_the_own_configuration_says(project: Path) -> None:
    """Signatures, filters and pagers of the person's own settings, with a folder of the project on the PATH."""
    planted = project / "bin"
    planted.mkdir()
    for name in ("gpg", "gpgsm", "ssh-keygen", "less", "pager", "ssh", "git-lfs", "textconv", "git-evil", "sh", "vi"):
        (planted / name).write_text(f"#!/bin/bash\necho {name} >> {project}/pwned\n")
        (planted / name).chmod(0o755)
    signed = subprocess.run(("git", "cat-file", "commit", "HEAD"), cwd=project, capture_output=True, check=True).stdout
    head, _, message = signed.partition(b"\n\n")
    head += b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    write = ("git", "hash-object", "-t", "commit", "-w", "--stdin")
    made = subprocess.run(write, cwd=project, input=head + b"\n\n" + message, capture_output=True, check=True).stdout
    git(project, "update-ref", "HEAD", made.decode().strip())
    home = project.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[log]\n\tshowSignature = true\n[pretty]\n\tsigned = %G? %GK %h\n[format]\n\tpretty = signed\n"
        '[core]\n\tpager = less\n[pager]\n\tlog = less\n[filter "lfs"]\n\tclean = git-lfs\n\tprocess = git-lfs x\n'
        '[diff "x"]\n\ttextconv = textconv\n\tcommand = git-lfs\n'
    )
    (project / ".gitattributes").write_text("a filter=lfs diff=x\n")
    os.utime(project / "a", (1, 1))
    environment = {"PATH": f"{planted}:bin:.:{ENVIRONMENT['PATH']}", "HOME": str(home)}
    subprocess.run(("git", "log", "-p"), cwd=project, env=environment, capture_output=True)
    ran = project / "pwned"
    assert set(ran.read_text().split()) >= {"gpg", "git-lfs"}, "without care they do"
    ran.unlink()
    os.utime(project / "a", (2, 2))
    cleaned = {**environment, "PATH": path_outside(environment["PATH"], outside=project)}
    for command in (*GIT_READS, "git log -p --pretty=signed", "git show --stat", "git log --pretty=fuller"):
        words = argv(command, project, env=environment)
        assert isinstance(words, tuple)
        subprocess.run(words, cwd=project, env=cleaned, capture_output=True, stdin=subprocess.DEVNULL)
        assert not ran.exists(), command


def test_a_usual_configuration_is_no_reason_to_ask() -> None:
    assert only_harmless_keys(CONFIG.encode())
    assert only_harmless_keys(CONFIG.replace("\n", "\r\n").encode())
    assert only_harmless_keys(b"")
    assert not only_harmless_keys(b"\xff\xfe")


def test_a_monitor_that_slipped_in_would_not_run(tmp_path: Path) -> None:
    """Between the judgement and the run: the options given to git hold by themselves."""
    git(tmp_path, "init", "-q")
    words = argv("git status", tmp_path)
    assert isinstance(words, tuple)
    for key, value in (
        ("core.fsmonitor", "touch pwned;"),
        ("core.pager", "touch pwned"),
        ("diff.external", "touch pwned"),
    ):
        git(tmp_path, "config", key, value)
    unguarded = subprocess.run(("git", "status"), cwd=tmp_path, env=ENVIRONMENT, capture_output=True)
    assert (tmp_path / "pwned").exists(), unguarded
    (tmp_path / "pwned").unlink()
    subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    assert not (tmp_path / "pwned").exists()


def test_only_a_whole_repository_of_the_project(tmp_path: Path) -> None:
    above = tmp_path / "above"
    root = above / "root"
    root.mkdir(parents=True)
    assert argv("git status", root) is None
    git(above, "init", "-q")
    assert argv("git status", root) is None, "it reads what is beside the project"
    assert argv("git status", above, root) is not None

    git(root, "init", "-q")
    assert argv("git status", root) is not None
    (root / ".gitmodules").write_text("")
    assert argv("git status", root) is None
    assert argv("git log", root) is not None
    repository = root / ".git"
    for name in ("commondir", "config.worktree", "objects/info/alternates"):
        (repository / name).write_text("x")
        assert argv("git log", root) is None
        (repository / name).unlink()
    (repository / "index").symlink_to("/etc/passwd")
    assert argv("git log", root) is None
    (repository / "index").unlink()
    (repository / "config").unlink()
    assert argv("git log", root) is None

    repository.rename(tmp_path / "elsewhere")
    repository.symlink_to(tmp_path / "elsewhere")
    assert argv("git log", root) is None
    repository.unlink()
    repository.write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    assert argv("git log", root) is None
    repository.unlink()
    for name in ("objects", "refs"):
        (root / name).mkdir()
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    assert argv("git log", above, root) is None, "git would take the folder itself for a repository"


@pytest.mark.parametrize("command", ["git log -p", "git show", "git diff HEAD~1", "git status", "git log --stat"])
def test_no_settings_of_a_repository_inside_the_project_count(tmp_path: Path, command: str) -> None:
    """The person wants to see what changed in submodules: git would run another git in them."""
    root = tmp_path / "project"
    inner = root / "inner"
    inner.mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[diff]\n\tsubmodule = diff\n[status]\n\tsubmoduleSummary = true\n")
    for folder in (root, inner):
        git(folder, "init", "-q")
    for number in range(2):
        (inner / "a.txt").write_text(f"{number}\n")
        for folder in (inner, root):
            git(folder, "add", ".")
            git(folder, "commit", "-q", "-m", str(number))
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(tmp_path / 'was-here'))}\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv"):
        git(inner, "config", key, str(evil))
    (inner / ".git" / "info" / "attributes").write_text("* diff=x\n")
    environment = ENVIRONMENT | {"HOME": str(home)}
    words = argv(command, root, env=environment)
    assert isinstance(words, tuple)
    subprocess.run(words, cwd=root, env=environment, check=True, capture_output=True)
    assert not (tmp_path / "was-here").exists()
