"""No path leads a tool out of its root: names, links of every kind, and links added meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.tools.files.edit import EditFile, WriteFile
from nca.tools.files.read import ListDirectory, ReadFile
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.grep_and_glob import Glob, Grep
from nca.tools.tool import ToolError, ToolOutcome

SECRET = "needle of the outside"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A root `work` beside `work-evil`, `outside` and a file; every kind of link lies in the root."""
    for folder in ("work/src", "work-evil", "outside/inner"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("work-evil/a.txt", "outside/a.txt", "outside/inner/a.txt", "secret.txt"):
        (tmp_path / name).write_text(SECRET)
    (tmp_path / "work/a.txt").write_text("inside\n")
    root = tmp_path / "work"
    (root / "file-link").symlink_to(tmp_path / "outside/a.txt")
    (root / "relative-link").symlink_to("../secret.txt")
    (root / "folder-link").symlink_to(tmp_path / "outside")
    (root / "chain").symlink_to("folder-link")
    (root / "dangling").symlink_to(tmp_path / "outside/new.txt")
    (root / "dangling-folder").symlink_to(tmp_path / "nowhere")
    (root / "src/up").symlink_to("../..")
    (root / "root-link").symlink_to("/")
    (root / "loop").symlink_to("loop")
    return tmp_path


def everything(folder: Path) -> dict[str, str]:
    """All that lies outside of the root, with its content."""
    places = [folder / "secret.txt", *(folder / "outside").rglob("*"), *(folder / "work-evil").rglob("*")]
    return {str(path): path.read_text() if path.is_file() else "folder" for path in sorted(places)}


OUTSIDE = [
    "../secret.txt",
    "../outside/a.txt",
    "src/../../secret.txt",
    "./../secret.txt",
    "../work-evil/a.txt",
    "/etc/passwd",
    "{base}/work-evil/a.txt",
    "{base}/work/../secret.txt",
    "file-link",
    "relative-link",
    "folder-link/a.txt",
    "folder-link/inner/a.txt",
    "folder-link/../secret.txt",
    "chain/a.txt",
    "src/up/secret.txt",
    "src/up/outside/a.txt",
    "dangling",
    "dangling-folder/x.txt",
    "root-link/etc/passwd",
    "loop",
    "loop/a.txt",
    "a\0.txt",
    "../secret.txt\0",
    "",
    "n" * 5_000,
    "../" * 2_000 + "etc/passwd",
]


async def run(tool: str, root: Path, name: str) -> ToolOutcome:
    workspace, files_read = Workspace(root), FilesRead()
    # As if it had been read: nothing but the path is in the way.
    for path in (root.parent / "secret.txt", *root.parent.rglob("a.txt")):
        files_read.note(path, path.read_bytes())
    match tool:
        case "read":
            return await ReadFile(workspace, files_read).call(name)
        case "write":
            return await WriteFile(workspace, files_read).call(name, "new")
        case "edit":
            return await EditFile(workspace, files_read).call(name, "needle", "new")
        case "list":
            return await ListDirectory(workspace).call(name)
        case "grep":
            return await Grep(workspace).call("needle", name)
        case "glob":
            return await Glob(workspace).call("*", name)
    raise AssertionError(tool)


@pytest.mark.parametrize("tool", ["read", "write", "edit", "list", "grep", "glob"])
@pytest.mark.parametrize("name", OUTSIDE)
async def test_nothing_outside_is_read_or_written(base: Path, tool: str, name: str) -> None:
    before = everything(base)
    with pytest.raises((ToolError, OSError)) as caught:
        await run(tool, base / "work", name.replace("{base}", str(base)))
    assert SECRET not in str(caught.value)
    assert everything(base) == before


@pytest.mark.parametrize("tool", ["grep", "glob", "list"])
async def test_a_search_follows_no_link(base: Path, tool: str) -> None:
    outcome = await run(tool, base / "work", ".")
    assert SECRET not in outcome.text
    assert "inner" not in outcome.text


async def test_links_inside_the_root_are_followed_and_kept(base: Path) -> None:
    root = base / "work"
    (root / "good").symlink_to("a.txt")
    (root / "new-link").symlink_to("src/made.txt")
    workspace, files_read = Workspace(root), FilesRead()
    await ReadFile(workspace, files_read).call("good")
    await EditFile(workspace, files_read).call("good", "inside", "changed")
    assert (root / "good").is_symlink()
    assert (root / "a.txt").read_text() == "changed\n"
    tool = WriteFile(workspace, files_read)
    approval = tool.approval({"path": "new-link", "content": "x"})
    assert approval.path == str(root / "src/made.txt")
    assert approval.warning == "new-link leads through a link; src/made.txt is written."
    await tool.call("new-link", "x")
    assert (root / "new-link").is_symlink()
    assert (root / "src/made.txt").read_text() == "x"


OWN = [
    ".nca/config.toml",
    ".nca",
    ".NCA/config.toml",
    ".Nca/x",
    "src/.nca/config.toml",
    ".nca./config.toml",
    ".nca /config.toml",
    ".n\u200dca/config.toml",
    ".nca::$INDEX_ALLOCATION/config.toml",
    "src/../.nca/mcp.toml",
    "settings-link/config.toml",
    "home/.config/nca/config.toml",
    "home/.config/NCA/new.toml",
]


@pytest.mark.parametrize("name", OWN)
async def test_settings_are_never_written_even_where_there_are_none_yet(base: Path, name: str) -> None:
    root = base / "work"
    (root / "settings-link").symlink_to(".nca")
    tool = WriteFile(Workspace(root, [root / "home/.config/nca"]), FilesRead())
    arguments = {"path": name, "content": "x"}
    with pytest.raises(ToolError, match="nca's own settings"):
        tool.approval(arguments)
    with pytest.raises(ToolError, match="nca's own settings"):
        await tool.call(**arguments)
    assert not (root / ".nca").exists()
    assert not (root / "home").exists()


ACTING = {
    "git and other": ".git/hooks/pre-commit .GIT/config src/.husky/x .hg/x .jj/x .pre-commit-config.yaml lefthook.yml"
    " .gitattributes src/.gitattributes .gitmodules",
    "an editor": ".vscode/tasks.json .idea/x .zed/x .vs/x .fleet/x a.code-workspace .nvim.lua .exrc .dir-locals.el"
    " .run/x.run.xml .theia/tasks.json a.sublime-project src/B.Sublime-Project",
    "an agent": ".claude/x .cursor/mcp.json .gemini/x .codex/x .roo/mcp.json .kiro/x .mcp.json .agents/x",
    "a shell": ".envrc .direnv/x .bashrc src/.profile .zshrc .mise.toml",
    "programs that you start": ".ssh/authorized_keys .gitconfig .config/fish/config.fish .local/bin/ls .netrc",
    "a debugger": ".gdbinit .lldbinit .pdbrc src/.pdbrc",
    "package managers": ".npmrc src/.yarnrc.yml .pnpmfile.cjs .cargo/config.toml .CARGO/Config.toml package.yaml",
    "Python": "sitecustomize.py tests/conftest.py a.pth",
    "a server": ".github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile",
    "make": "Makefile src/makefile GNUmakefile",
    "agents take": "AGENTS.md src/CLAUDE.md agents.md GEMINI.md .cursorrules .github/copilot-instructions.md",
}


@pytest.mark.parametrize(("who", "name"), [(who, name) for who, names in ACTING.items() for name in names.split()])
def test_what_others_run_or_obey_needs_more_than_writing(base: Path, who: str, name: str) -> None:
    tool = WriteFile(Workspace(base / "work"), FilesRead())
    assert tool.needs({"path": name}) == "execute"
    assert tool.approval({"path": name, "content": "x"}).warning.startswith(f"You are asked because {who} ")


@pytest.mark.parametrize(
    "name",
    ["src/git.py", "../x", "cargo/config.toml", ".cargo/x", ".github/x", "x.github/workflows", "makefile.py", "a.txt"],
)
def test_other_files_need_no_more_than_writing(base: Path, name: str) -> None:
    assert WriteFile(Workspace(base / "work"), FilesRead()).needs({"path": name}) == "write"


@pytest.fixture
def swapping(base: Path) -> Iterator[None]:
    """A folder of the root that is a link to the outside half of the time, while the test runs."""
    real, kept = base / "work/real", base / "work/kept"
    real.mkdir()
    (real / "a.txt").write_text("inside\n")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            real.rename(kept)
            with contextlib.suppress(FileExistsError):
                real.symlink_to(base / "outside")
                real.unlink()
            while kept.exists():
                # Meanwhile a tool may have made the folder anew, inside the root.
                shutil.rmtree(real, ignore_errors=True)
                with contextlib.suppress(OSError):
                    kept.rename(real)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.parametrize("tool", ["read", "write", "edit", "list"])
async def test_a_link_put_in_between_the_check_and_the_opening_leads_nowhere(
    base: Path, swapping: None, tool: str
) -> None:
    before = everything(base)
    workspace, files_read = Workspace(base / "work"), FilesRead()
    for path in (base / "outside/a.txt", base / "work/real/a.txt"):
        files_read.note(path, b"inside\n")
    for _ in range(400):
        try:
            match tool:
                case "read":
                    text = (await ReadFile(workspace).call("real/a.txt")).text
                case "list":
                    text = (await ListDirectory(workspace).call("real")).text
                case "edit":
                    files_read.note(base / "work/real/a.txt", b"inside\n")
                    text = (await EditFile(workspace, files_read).call("real/a.txt", "inside", "inside")).text
                case _:
                    files_read.note(base / "work/real/a.txt", b"inside\n")
                    text = (await WriteFile(workspace, files_read).call("real/a.txt", "inside\n")).text
        except (ToolError, OSError):
            continue
        assert SECRET not in text
        assert "inner" not in text
    assert everything(base) == before


@pytest.mark.parametrize("tool", ["read", "write", "list", "grep"])
def test_a_path_that_was_judged_is_opened_without_following_links(base: Path, tool: str) -> None:
    """The same, without luck: the swap happens exactly between the two."""
    root = base / "work"
    (root / "real").mkdir()
    (root / "real/a.txt").write_text("inside\n")
    workspace = Workspace(root)
    path = workspace.resolve("real/a.txt")
    (root / "real").rename(root / "kept")
    (root / "real").symlink_to(base / "outside")
    match tool:
        case "read":
            with pytest.raises(ToolError):
                workspace.open(path, "real/a.txt")
        case "list" | "write":
            with pytest.raises(OSError), workspace.folder(path.parent, create=tool == "write"):
                pass
        case _:
            from nca.tools.search_worker import walk

            assert list(walk(str(root), "real")) == []
            assert list(walk(str(root), "real/a.txt")) == []
    assert sorted(path.name for path in (base / "outside").iterdir()) == ["a.txt", "inner"]
