"""Download the small embedded model for the tests. If that is not possible, say why; the tests are then skipped.

usage: test_weights.py DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

from nca.errors import NcaError
from nca.models.embedded import weights
from nca.models.embedded.known import SMOLLM


def main(directory: Path) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    try:
        path = weights.get(SMOLLM.name, directory=directory, progress=lambda _: None)
    except NcaError as error:
        print(f"The tests of the embedded model will be skipped: {error}", file=sys.stderr)
        return 0
    print(f"{SMOLLM.title}: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
