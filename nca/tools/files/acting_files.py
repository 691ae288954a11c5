"""Files that other programs run, or that agents obey, once they are there: no mode but `auto` writes them unasked.

To add one, put its name into the table. A name stands for a file or folder at any depth, with all below it; `a/b` for
`b` in a folder `a`; `*.x` for every name that ends so. `a.json#key` stands for what a file of this name has under that
key of its object: only a change of that is asked about, and of a file that cannot be read.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

_TABLE = {
    "git and other version control run the hooks and programs that it names": (
        ".git .gitattributes .gitmodules .hg .svn .jj .husky .githooks .pre-commit-config.yaml lefthook.yml"
        " lefthook.yaml .lefthook.yml .lefthook.yaml"
    ),
    "an editor runs what is in it when the folder is opened": (
        ".vscode .idea .run .theia .zed .vs .fleet .devcontainer *.code-workspace *.sublime-project"
        " .nvim.lua .nvimrc .vimrc .exrc .dir-locals.el .dir-locals-2.el"
    ),
    "an agent runs the hooks and servers that it names": (
        ".claude .cursor .gemini .codex .roo .kiro .windsurf .continue .amazonq .opencode .aider.conf.yml .mcp.json"
        " .agents opencode.json"
    ),
    "programs that you start obey it, where the project is your home directory": (
        ".ssh .gnupg .gitconfig .config .netrc .pypirc .aws .kube .docker .xprofile .xsessionrc .pam_environment"
        " .inputrc .local/bin"
    ),
    "a shell runs it": (
        ".envrc .direnv .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin"
        " .mise.toml mise.toml .tool-versions"
    ),
    "a debugger runs it": ".gdbinit .lldbinit .pdbrc",
    "package managers and build tools run the programs that it names": (
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs package.json5 package.yaml .cargo/config.toml .cargo/config .bazelrc"
    ),
    # Not the dependencies: to install them is a command, which asks.
    "it changes what package managers run": " ".join(
        f"package.json#{key}"
        for key in (
            # Commands; what npx runs by name; the package manager itself, fetched and run in the given version.
            *("scripts", "bin", "wireit", "packageManager", "devEngines"),
            # Whose scripts run at an installation: folders and dependencies.
            *("workspaces", "trustedDependencies", "dependenciesMeta", "pnpm"),
        )
    ),
    "it changes what git's hooks run": " ".join(
        f"package.json#{key}"
        for key in ("husky", "lint-staged", "nano-staged", "simple-git-hooks", "gitHooks", "pre-commit", "pre-push")
    ),
    "Python runs it when it starts, or pytest before the tests": "sitecustomize.py usercustomize.py *.pth conftest.py",
    "a server runs it, often with secrets": (
        ".github/workflows .github/actions .gitlab-ci.yml .circleci .travis.yml Jenkinsfile azure-pipelines.yml"
    ),
    "make runs it": "Makefile GNUmakefile",
    "agents take what it says for your own instructions": (
        "AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .cursorrules .windsurfrules .clinerules"
        " .goosehints .github/copilot-instructions.md .github/instructions"
    ),
}
"""The reason, for a person who is asked, and the names."""
_ALL = {name: why for why, names in _TABLE.items() for name in names.split()}
_NAMES = {tuple(name.casefold().split("/")): why for name, why in _ALL.items() if "#" not in name}
_KEYS = {(*name.split("#"),): why for name, why in _ALL.items() if "#" in name}
_ENDINGS = {name[0][1:]: why for name, why in _NAMES.items() if name[0].startswith("*")}


def why_asked(parts: Sequence[str]) -> str:
    """Why a person should be asked before a file of the project is written; "" if there is no reason.

    parts  the components of its path in the project
    """
    plain = plain_parts(parts)
    for at, part in enumerate(plain):
        ending = next((why for end, why in _ENDINGS.items() if part.endswith(end)), "")
        if why := _NAMES.get((part,)) or _NAMES.get(plain[at : at + 2]) or ending:
            return why
    return ""


def why_change_asked(parts: Sequence[str], before: str, after: str) -> str:
    """Why a person should be asked before a file's text is changed so; "" if there is no reason.

    before  "" for a new file
    """
    name = plain_parts(parts)[-1]
    keys = {key: why for (file, key), why in _KEYS.items() if file == name}
    if not keys:
        return ""
    old, new = _members(before) or _Members([]), _members(after)
    if new is None:
        return "nca cannot read its JSON, and a program that can may run what it names"
    return next((why for key, why in keys.items() if old.get(key) != new.get(key)), "")


class _Members(dict[str, list[Any]]):
    """The members of a JSON object. A name that comes twice has all its values: readers differ in which they take."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        for name, value in pairs:
            self.setdefault(name, []).append(value)


def _members(text: str) -> _Members | None:
    """None for what is no JSON object, such as one with comments."""
    try:
        value = json.loads(text.removeprefix("\ufeff") or "{}", object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, _Members) else None


def plain_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Path components as lax file systems compare them.

    HFS and NTFS may ignore case, characters without width, trailing dots and blanks, and a stream name after a colon
    (git protects its own folder against the same).
    """
    plain = []
    for part in parts:
        visible = "".join(char for char in part if unicodedata.category(char) != "Cf")
        plain.append(unicodedata.normalize("NFKC", visible).casefold().split(":")[0].rstrip(". ") or part)
    return tuple(plain)
