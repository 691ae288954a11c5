"""Write `.nca/config.toml.example` and `docs/configuration.md` from the schema. A test compares them with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from nca.compat.names import FOREIGN_NAMES, ForeignName
from nca.config.example import render_example, sections, table_head, toml_value
from nca.config.loaded import profile
from nca.config.schema import KEYS, PROFILES, Key, about_section, walk

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE_FILE = ROOT / ".nca" / "config.toml.example"
REFERENCE_FILE = ROOT / "docs" / "configuration.md"
_REFERENCE_HEAD = """\
# Configuration

This page is written from `nca/config/schema.py` by `python scripts/configuration.py`.

## Where settings come from

Later sources win:

1. the defaults below
2. the profile, if one is set (`profile = "cowagent"`, see below)
3. your own file, `~/.config/nca/config.toml` (with `NCA_HOME` set: `$NCA_HOME/config.toml`)
4. the project's file, `.nca/config.toml`, or the file given with `--config FILE`
5. tables in both files for the model in use: `[for."anthropic/*".context]`
6. the environment: `NCA_` and the key, with two underscores for a dot, such as
   `NCA_CONTEXT__PRUNE__PROTECT_TOKENS=20000`; an empty variable counts as unset
7. flags, such as `--compact-threshold 0.7`
8. `/config KEY VALUE` in the chat, for this session

`nca config show` lists every value and its origin (`nca config show context`: of a group), `nca config get KEY`
prints one value, `nca config path` the paths of both files. `nca config set KEY VALUE` writes to the project's
file, or to yours with `--user`; `nca config unset KEY` removes it there, as the value `default` does.
`nca config init` writes the commented example. `show` and `get` show the values for the model in use; `show` also
lists the tables for models. Saving keeps everything else in the file, even comments; if a comment would be lost, nca
first copies the file to `config.toml.bak`.

The project is the folder where nca starts. In a sub-folder of a repository, nca ignores the file of a folder above; a
line names it, and `--config` uses it. A sub-folder with its own file is its own project.

nca refuses an unknown key or an invalid value in one line with the file, the line, the key and what is valid (exit code
2), and does not change the file. Files are UTF-8 and at most 1 MiB.

Numbers can be written as `80_000` in TOML, and as `80k` or `80,000` in the environment and in `/config`.
A share can be written as `0.8`, `80` or `"80%"`. A percentage below 10 needs its sign: `"7.5%"`. nca refuses a bare
number above 1 and below 10, because `7.5` is more likely a slip for `0.75`.

nca ignores a setting marked *yours only* in a project's file, with a note: a project that you cloned must not redirect
your requests or your keys. For the same reason, a file named by a project's settings must be inside the project. A
setting marked *once trusted* counts in a project's file once you
[trust the project](permissions.md#trust-of-a-project). The others are harmless; `nca/config/harmless.toml` says why.

`NCA_HOME` moves your file and nca's data to one folder. It and other `NCA_` variables without two underscores are not
settings.

## For one model

`[for."PATTERN".model]` and `[for."PATTERN".context]` hold settings for models whose name matches. `*` matches
anything; a name matches with or without its provider's prefix. All settings of `model` and `context` are allowed except
`model.name`.

```toml
[for."anthropic/*".context]
compact_threshold = 0.9

[for."qwen*".context.prune]
protect_tokens = 4_000
```

## Settings
"""
_TABLE_HEAD = "| key | default | valid | meaning | environment |\n| --- | --- | --- | --- | --- |\n"
_FIELDS_HEAD = "| key | default | valid | meaning |\n| --- | --- | --- | --- |\n"
_REFERENCE_PROFILES = """\
## Profiles

A profile replaces nca's defaults by the numbers, stages and texts of another program; what you set yourself wins. Set
`profile = "NAME"` at the top of a file, `NCA_PROFILE=NAME` in the environment, `--profile NAME` on the command line, or
`/config profile NAME` in the chat. A profile does not choose the model that writes summaries (`model.summarizer`).
Settings that a profile does not name keep their defaults.

| key | """
_REFERENCE_FOREIGN = """\
## Names from other programs

The names of other programs for the same settings, and nca's own older ones, are accepted in TOML, in the environment
and in `/config`. Case, `_` and `-` are ignored; nca replies with its name of today. If both are set in the same place,
that one wins.
`contextCompaction` may be inside `conversationMemory`.

| name | nca's name |
| --- | --- |
"""


def render_reference() -> str:
    """The text of `docs/configuration.md`."""
    parts = [_REFERENCE_HEAD]
    for section, keys in sections():
        title = f"### `[{section}]`\n\n{about_section(section)}." if section else "### Above all tables"
        parts.append(f"\n{title}\n\n{_TABLE_HEAD}")
        parts += [f"{_reference_row(key)} {_variable(key)} |\n" for key in keys]
        for key in keys:
            if key.value_type.row is not None:
                parts.append(f"\n#### `{table_head(key)}`\n\n{key.about}\n\n{_FIELDS_HEAD}")
                parts += [f"{_reference_row(field)}\n" for field in walk(key.value_type.row)]
    parts += ["\n", _REFERENCE_PROFILES, *_profile_rows()]
    parts += ["\n", _REFERENCE_FOREIGN]
    parts += [_foreign_row(foreign) for foreign in FOREIGN_NAMES]
    return "".join(parts)


def main() -> None:
    """Write both files."""
    if sys.argv[1:]:
        sys.exit("usage: python scripts/configuration.py")
    for file, text in ((EXAMPLE_FILE, render_example()), (REFERENCE_FILE, render_reference())):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")


def _reference_row(key: Key) -> str:
    unit = f" {key.unit}" if key.unit else ""
    return f"| `{key.name}` | `{toml_value(key.default)}`{unit} | {key.value_type.valid} | {key.about}{_whose(key)} |"


def _whose(key: Key) -> str:
    """What a project's file may not do with it; "" for the fields of a table, which go with their table."""
    if key.user_only:
        return " *Yours only.*"
    return f" *{key.trust_note.capitalize()}.*" if key.name in KEYS and key.trust_note else ""


def _variable(key: Key) -> str:
    """Its environment variable; none for tables, which are only valid in files."""
    return "" if key.value_type.row is not None else f"`NCA_{key.name.upper().replace('.', '__')}`"


def _profile_rows() -> Iterator[str]:
    """One table, with a row for each key and a column for each profile."""
    profiles = [profile(name) for name in PROFILES]
    yield " | ".join(f"`{name}`" for name in PROFILES) + " |\n|" + " --- |" * (len(PROFILES) + 1) + "\n"
    for key in KEYS:
        if any(key in values for values in profiles):
            shown = [f"`{toml_value(values[key])}`" if key in values else "" for values in profiles]
            yield f"| `{key}` | " + " | ".join(shown) + " |\n"


def _foreign_row(foreign: ForeignName) -> str:
    shown = [f"`{name}`" for name in foreign.names if not name.startswith("conversationMemory.contextCompaction.")]
    part = f" (the {foreign.part} of `provider/model`)" if foreign.part else ""
    return f"| {' · '.join(shown)} | `{foreign.key}`{part} |\n"


if __name__ == "__main__":
    main()
