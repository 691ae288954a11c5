"""Find programs on the PATH, but never inside the project: a project must not be able to supply its own `ls`.
And the environment in which commands run: without keys, in a sandbox.

Some work for one call only, without keys in their environment, and are killed with the call: work that holds Python's
lock, or a regular expression, cannot be interrupted in a thread, and nca could not leave.

With the whole environment, every command could read the provider's API key. So there is an allowlist.

If the settings ask for it (`tools.sandbox = "bwrap"`), commands run in a bubblewrap sandbox. Inside, the project is
writable and everything else read-only. There is no network and no socket of another program (/run and /tmp are
private), folders with keys are empty, and processes end with the command. If the sandbox is not available, nothing
runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from nca.errors import system_reason
from nca.models.providers import known_secrets, provider_keys
from nca.redact import Redactor
from nca.tools.tool import ToolError

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_BOOT = "import sys; sys.path += sys.argv[1:]; from {module} import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""The variables that such a program needs. Others may hold keys, and PYTHON… variables change what is imported."""


def find_program(name: str, path: str, *, outside: Path) -> Path | None:
    """The program that a PATH leads to, or None.

    Relative entries of the PATH are skipped. If the first match is in the folder `outside`, or is a link to a file
    there, the answer is None, even if another match follows: a shell would run the first one.
    """
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    found = shutil.which(name, path=os.pathsep.join(entries)) if entries else None
    if found is None:
        return None
    real = Path(os.path.realpath(found))
    return None if real.is_relative_to(outside) or Path(found).is_relative_to(outside) else Path(found)


def path_outside(path: str, *, outside: Path) -> str:
    """A PATH without relative entries and without folders of the project, for a program that starts others."""
    entries = (entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())
    kept = [entry for entry in entries if not Path(os.path.realpath(entry)).is_relative_to(outside)]
    return os.pathsep.join(kept) or os.defpath


def find_shell(path: str, *, outside: Path) -> Path | None:
    """bash if there is one, else sh."""
    installed = (Path(shell) for shell in _SHELLS if os.access(shell, os.X_OK))
    found = next(installed, None) or find_program("bash", path, outside=outside)
    return found or (Path("/bin/sh") if os.access("/bin/sh", os.X_OK) else None)


def python_command(module: str, package: str) -> tuple[str, ...]:
    """The command line that runs the function `main` of a module of nca, which imports one other package."""
    own = str(Path(__file__).resolve().parents[2])
    spec = importlib.util.find_spec(package)
    other = str(Path(spec.origin).resolve().parents[1]) if spec and spec.origin else own
    # -I: neither the working directory nor the environment can add modules.
    return (sys.executable, "-I", "-c", _BOOT.format(module=module), *dict.fromkeys((own, other)))


@contextlib.asynccontextmanager
async def started(command: Sequence[str], sent: bytes = b"", cwd: str | None = None) -> AsyncIterator[Process]:
    """Start a program, send it `sent`, and kill it at the end of the block. Raises ToolError if it does not start."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = await create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 20, env=environment, cwd=cwd
        )
    except OSError as error:
        raise ToolError(f"{Path(command[0]).name} could not be started ({system_reason(error)})") from error
    try:
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(sent)
            await process.stdin.drain()
            process.stdin.close()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one string."""
    return frozenset(text.split())


_USUAL = word_set(
    "PATH HOME USER LOGNAME SHELL TMPDIR TZ TERM COLORTERM LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE"
    " LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME"
    " XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME"
    " VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT NVM_DIR NVM_BIN JAVA_HOME GOPATH GOROOT CARGO_HOME"
    " RUSTUP_HOME SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS"
)
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
_FIXED = {
    # Nobody can answer, so no pager, no editor and no password prompt.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}
ANSWERED = ("EDITOR", "VISUAL", *_FIXED)
"""Further variables of a command that a person answers."""


def command_environment(
    env: Mapping[str, str], more: Iterable[str] = (), variables: Iterable[str] = ()
) -> dict[str, str]:
    """The variables of `env` that a command gets.

    more       further variables, from the person's own settings
    variables  NAME=VALUE, from the settings; a provider's key is removed even from these
    """
    extra = {
        name: value for name, value in (one.split("=", 1) for one in variables) if not provider_keys({name: value})
    }
    env, more = {**env, **extra}, {*more, *extra}
    every = Redactor(known_secrets(env))
    keys = provider_keys(env)
    providers = Redactor(keys)
    kept = {name: value for name, value in env.items() if _is_usual(name, value) and every.text(value) == value}
    for name in more:
        value = env.get(name)
        # A provider's key, even a short one that redaction would not touch.
        if value is not None and value.strip() not in keys.values() and "[redacted " not in providers.text(value):
            kept[name] = value
    # Every program needs a PATH, even if the person's own was removed.
    return {"PATH": os.defpath, **kept, **{name: value for name, value in _FIXED.items() if name not in more}}


def _is_usual(name: str, value: str) -> bool:
    if name.upper() in _PROXIES:
        return not _has_credentials(value)
    return name in _USUAL


def _has_credentials(address: str) -> bool:
    """Whether a proxy address carries a name or password; True if it cannot be parsed."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
    except ValueError:
        return True
    return "@" in address or bool(parts.username or parts.password)


_PROBE_SECONDS = 10
_PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".pypirc"),
    *(".npmrc", ".config/gcloud", ".config/gh", ".local/share/keyrings", ".password-store", ".mozilla"),
)
"""Files and folders in the home folder that hold keys."""
_ACTING = (".git/hooks", ".git/config", ".nca")
"""In the project: what is run or trusted later, outside the sandbox."""
_SOCKETS = ("/run", "/var/run")
"""Folders with sockets of services: a container engine or the user's session could run commands outside the sandbox."""
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
        if os.path.isdir(folder) and not os.path.islink(folder):
            options += ["--tmpfs", folder]
    for folder in _PROGRAMS:
        options += ["--ro-bind-try", folder, folder]
    for path in private:
        if os.path.isdir(path) and not root.is_relative_to(path.resolve()):
            options += ["--tmpfs", str(path)]
        elif os.path.isfile(path):
            options += ["--ro-bind", "/dev/null", str(path)]
    options += ["--bind", str(root), str(root)]
    repository = root / ".git"
    if os.path.isdir(repository) and not os.path.islink(repository):
        # A mount point cannot be renamed, so the folder cannot be replaced.
        options += ["--bind", str(repository), str(repository)]
        if not os.path.exists(repository / "hooks"):
            options += ["--tmpfs", str(repository / "hooks")]
    for name in _ACTING:
        if os.path.exists(root / name):
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
