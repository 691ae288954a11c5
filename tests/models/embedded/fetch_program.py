"""Download a test model in a process: fetch_program.py MODEL FOLDER SOURCE."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from nca.errors import NcaError
from nca.models.embedded.download import SOURCES, Progress, fetch


def show(progress: Progress) -> None:
    print(progress.stage, flush=True)  # noqa: T201 - the test reads it


def main() -> int:
    model, folder = pickle.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
    source = next(one for one in SOURCES if one == sys.argv[3])
    try:
        fetch(model, folder, source=source, progress=show, env={**os.environ, "PYTHONPATH": ""})
    except NcaError as error:
        print(error)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
