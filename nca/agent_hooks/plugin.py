"""A plugin of nca's for an agent that has no hooks. By its last line nca knows that the file is as it was written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from nca.errors import ConfigError

_PROGRAM = Path(__file__).with_name("plugin.js")
_COMMAND, _VARIABLES = "const COMMAND = ", "const VARIABLES = "
_LAST = re.compile(r"// nca-plugin ([0-9a-f]{64})\n\Z")


def plugin_text(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """The file. Its program runs `command` with these variables besides its own."""
    text = _PROGRAM.read_text(encoding="utf-8")
    text = text.replace(f"{_COMMAND}[]", f"{_COMMAND}{json.dumps(command)}", 1)
    text = text.replace(f"{_VARIABLES}{{}}", f"{_VARIABLES}{json.dumps(variables)}", 1)
    return f"{text}// nca-plugin {_digest(text)}\n"


def command_of(file: Path, text: str) -> list[str]:
    """What a plugin of nca's runs. Raises ConfigError if somebody else wrote the file, or has changed it."""
    last = _LAST.search(text)
    if last is None or last[1] != _digest(text[: last.start()]):
        raise ConfigError(
            f"{file}: nca did not write it so; nothing was changed.", advice="Move it away, or remove it yourself."
        )
    line = next(line for line in text.splitlines() if line.startswith(_COMMAND))
    return [str(word) for word in json.loads(line.removeprefix(_COMMAND))]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
