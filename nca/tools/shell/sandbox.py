"""Run commands in a bubblewrap sandbox, if the settings ask for it (`tools.sandbox = "bwrap"`).

Inside, the project is writable and everything else read-only. There is no network and no socket of another program
(/run and /tmp are private), folders with keys are empty, and processes end with the command. If the sandbox is not
available, nothing runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from nca.tools.programs import find_program
from nca.tools.tool import ToolError

_PROBE_SECONDS = 10
_PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".pypirc"),
    *(".npmrc", ".config/gcloud", ".config/gh", ".local/share/keyrings", ".password-store", ".mozilla"),
)
"""Files and folders in the home folder that hold keys."""
_ACTING = (".git/hooks", ".git/config", ".nca")
"""In the project: what is run or trusted later, outside the sandbox."""
_SOCKETS = ("/run", "/var/run")
"""Where services listen. A container engine or the user's session could run commands outside the sandbox."""
_PROGRAMS = ("/run/current-system", "/run/wrappers")
"""The programs of NixOS."""


def sandboxed(
    argv: Sequence[str], *, root: Path, directory: Path, environment: Mapping[str, str], private: Sequence[Path] = ()
) -> tuple[str, ...]:
    """The command line that runs `argv` in the sandbox. Raises ToolError if that is not possible.

    private  further paths to hide, such as nca's own data
    """
    bwrap = find_program("bwrap", environment.get("PATH", ""), outside=root)
    if bwrap is None:
        raise ToolError(f"{_ASKED}, but there is no bwrap on the PATH; install bubblewrap, or turn it off")
    if problem := _problem(str(bwrap)):
        raise ToolError(f"{_ASKED}, but it does not work here ({problem}); nothing was run")
    home = Path(environment.get("HOME", "/nonexistent"))
    return (str(bwrap), *_options(root, directory, [*(home / name for name in _PRIVATE), *private]), "--", *argv)


def is_available(path: str, root: Path) -> bool:
    """Whether a bubblewrap on this PATH works here. It is started to find out, once for each program."""
    bwrap = find_program("bwrap", path, outside=root)
    return bwrap is not None and not _problem(str(bwrap))


_ASKED = 'tools.sandbox is "bwrap"'


def _options(root: Path, directory: Path, private: Sequence[Path]) -> list[str]:
    options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108  its own
    for folder in _SOCKETS:
        if Path(folder).is_dir() and not Path(folder).is_symlink():
            options += ["--tmpfs", folder]
    for folder in _PROGRAMS:
        options += ["--ro-bind-try", folder, folder]
    for path in private:
        if path.is_dir() and not root.is_relative_to(path.resolve()):
            options += ["--tmpfs", str(path)]
        elif path.is_file():
            options += ["--ro-bind", "/dev/null", str(path)]
    options += ["--bind", str(root), str(root)]
    repository = root / ".git"
    if repository.is_dir() and not repository.is_symlink():
        # A mount point cannot be renamed, so the folder cannot be replaced.
        options += ["--bind", str(repository), str(repository)]
        if not (repository / "hooks").exists():
            options += ["--tmpfs", str(repository / "hooks")]
    for name in _ACTING:
        if (root / name).exists():
            options += ["--ro-bind", str(root / name), str(root / name)]
    alone = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    return [*options, *alone, "--die-with-parent", "--setenv", "TMPDIR", "/tmp", "--chdir", str(directory)]  # noqa: S108


@lru_cache(maxsize=4)
def _problem(bwrap: str) -> str:
    """Why bubblewrap does not work here, or "". Many systems forbid user namespaces."""
    probe = [bwrap, "--ro-bind", "/", "/", "--unshare-user", "--unshare-net", "--unshare-pid", "--", "/bin/true"]
    try:
        ended = subprocess.run(  # noqa: S603  only the program's path varies
            probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    said = ended.stderr.decode("utf-8", "replace").strip().split("\n")[0]
    return (said or f"exit code {ended.returncode}") if ended.returncode else ""
