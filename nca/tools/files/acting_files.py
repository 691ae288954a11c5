"""Files that other programs run, or that agents obey, once they are there: no mode but `auto` writes them unasked.

To add one, put its name into the table. A name stands for a file or folder at any depth, with all below it; `a/b` for
`b` in a folder `a`; `*.x` for every name that ends so.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_TABLE = {
    "git and other version control run the hooks and programs that it names": (
        ".git .hg .svn .jj .husky .githooks .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml"
        " .lefthook.yaml"
    ),
    "an editor runs what is in it when the folder is opened": (
        ".vscode .idea .zed .vs .fleet .devcontainer *.code-workspace .nvim.lua .nvimrc .vimrc .exrc .dir-locals.el"
        " .dir-locals-2.el"
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
        ".envrc .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .mise.toml"
        " mise.toml .tool-versions"
    ),
    "a debugger runs it": ".gdbinit .lldbinit",
    "package managers and build tools run the programs that it names": (
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .cargo/config.toml .cargo/config .bazelrc"
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
_NAMES = {tuple(name.casefold().split("/")): why for why, names in _TABLE.items() for name in names.split()}
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
