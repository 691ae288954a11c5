"""What a rule that allows a command covers: exactly this command, and the plain options of a few programs.

A rule must mean what it says: "always" for `sed -n 1,5p a.txt` must not let `sed -n '1e touch X'` run. So a rule names
the whole command. Only for the commands listed below does it name the program, because there the arguments change
often: it then covers the listed options and files of the project, and nothing else.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nca.tools.files.workspace import Workspace
from nca.tools.shell.command_words import pipeline, versionless, word_set
from nca.tools.shell.read_only_commands import Options, read_only_argv, stays_inside

_FILTERS = frozenset({"head", "tail", "grep", "wc"})
"""Models pipe long output into these. With options that only read, they add nothing to the command before them."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Commands, one or more spellings, whose listed options change nothing about what they can do.

    why  why a rule for one of them covers any of the options and any files of the project
    """

    commands: tuple[str, ...]
    why: str
    options: Options


_TESTS = "A test runner runs the project's own code anyway. The options choose tests, stop early, and say more or less."
_LINTS = "A linter reads code, as the project's own configuration says. The options choose rules and the report."
_KNOWN = (
    _Known(
        ("pytest", "python -m pytest", "uv run pytest", "poetry run pytest", "hatch run pytest", "pdm run pytest"),
        f"{_TESTS} Not -p, -c, -o and -W, which load other code, nor --basetemp and --junitxml, which write files.",
        Options(
            "qvxsl",
            "kmnr",
            word_set(
                "--verbose --quiet --exitfirst --showlocals --lf --last-failed --ff --failed-first --nf --sw --stepwise"
                " --co --collect-only --no-header --no-summary --tb= --maxfail= --durations= --color="
            ),
        ),
    ),
    _Known(
        ("cargo test", "cargo check", "cargo clippy", "cargo build", "cargo bench"),
        f"{_TESTS} Not --config and --manifest-path, which name other programs and projects, nor --fix.",
        Options(
            "qv",
            "pj",
            word_set(
                "--release --all --workspace --lib --bins --tests --examples --all-targets --all-features --locked"
                " --no-default-features --offline --frozen --no-fail-fast --no-run --doc --quiet --verbose --package"
                " --package= --test --test= --features --features= --jobs= -- --nocapture --test-threads= --ignored"
                " --exact --show-output"
            ),
        ),
    ),
    _Known(
        ("go test", "go vet"),
        f"{_TESTS} Not -exec, -toolexec and -vettool, which name programs, nor -o and -coverprofile, which write.",
        Options(words=word_set("-v -race -short -failfast -cover -run -run= -bench= -count= -timeout=")),
    ),
    _Known(
        ("jest", "npx jest", "vitest run", "npx vitest run"),
        f"{_TESTS} Not -c, --globalSetup and --reporters, which load other code, nor -u and --outputFile, which write.",
        Options("it", "", word_set("--verbose --silent --bail --ci --runInBand --testNamePattern=")),
    ),
    _Known(
        ("rspec", "bundle exec rspec"),
        f"{_TESTS} Not -r and -f NAME, which load other code, nor -o, which writes files.",
        Options("", "e", word_set("--fail-fast --dry-run --color --no-color --format=progress --format=documentation")),
    ),
    _Known(
        ("phpunit",),
        f"{_TESTS} Not -c, -d and --bootstrap, which load other code, nor --log-junit and the like, which write.",
        Options(words=word_set("--filter --filter= --testdox --stop-on-failure --no-coverage --colors=never")),
    ),
    _Known(
        ("mix test",),
        f"{_TESTS} Not -r and --formatter, which load other code.",
        Options(words=word_set("--trace --failed --stale --seed= --max-failures=")),
    ),
    _Known(
        ("ruff check", "uv run ruff check", "python -m ruff check"),
        f"{_LINTS} Not --fix, --output-file and --add-noqa, which write files, nor --config.",
        Options(
            "qvn",
            "",
            word_set(
                "--quiet --statistics --diff --no-fix --no-cache --preview --exit-zero --select= --extend-select="
                " --ignore= --output-format="
            ),
        ),
    ),
    _Known(
        ("mypy", "python -m mypy", "uv run mypy"),
        f"{_LINTS} Not --config-file and --python-executable, which run programs, nor the options for reports.",
        Options(
            "v",
            "",
            word_set(
                "--strict --pretty --no-error-summary --show-error-codes --ignore-missing-imports --no-incremental"
            ),
        ),
    ),
    _Known(
        ("flake8", "python -m flake8", "pylint", "python -m pylint"),
        f"{_LINTS} Not --config, --load-plugins and --init-hook, which load other code, nor --output-file.",
        Options(
            "qvE",
            "",
            word_set(
                "--count --statistics --max-line-length= --select= --ignore= --extend-ignore= --disable= --enable="
                " --errors-only --score="
            ),
        ),
    ),
    _Known(
        ("eslint", "npx eslint"),
        f"{_LINTS} Not -c, --rulesdir and --plugin, which load other code, nor --fix and -o, which write files.",
        Options(words=word_set("--quiet --no-color --max-warnings= --ext=")),
    ),
)
_BY_WORDS = {tuple(command.split()): known for known in _KNOWN for command in known.commands}


def rule_names(
    command: str, *, workspace: Workspace, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """What an allow rule may name to cover the command. The first is the rule to offer; empty if none covers it.

    Besides that: the exact words, and its first words with ` *` behind them, which a person may write for "with any
    arguments". Only a simple command has names, alone or piped into filters. None has a program given by its absolute
    path, because a rule could mistake that for a file.
    """
    first, *filters = pipeline(command) or (None,)
    if first is None or first.words[0].startswith("/"):
        return ()
    for one in filters:
        line = shlex.join(one.words)
        argv = read_only_argv(line, workspace=workspace, directory=directory, environment=environment)
        if one.words[0] not in _FILTERS or argv is None:
            return ()
    words = first.words
    known = _known_command(words, workspace, directory)
    any_arguments = (f"{shlex.join(words[:count])} *" for count in range(1, len(words) + 1))
    return (*([known] if known else []), shlex.join(words), *any_arguments)


def _known_command(words: tuple[str, ...], workspace: Workspace, directory: Path) -> str:
    """The listed command that these words call with nothing but listed options and files of the project, or ""."""
    folder, slash, program = words[0].rpartition("/")
    program = versionless(program)
    for count in range(len(words), 0, -1):
        known = _BY_WORDS.get((program, *words[1:count]))
        if known is not None:
            rest = words[count:]
            is_plain = all(_is_plain(word, known.options) for word in rest) and stays_inside(rest, workspace, directory)
            return shlex.join((folder + slash + program, *words[1:count])) if is_plain else ""
    return ""


def _is_plain(word: str, options: Options) -> bool:
    """Whether it is a listed option, or may be a file: not a variable, nor a file of arguments (`@more`)."""
    return options.takes(word) if word.startswith("-") else "=" not in word and not word.startswith(("@", "+"))
