"""python -m nca."""

import sys

# Python puts the directory one stands in first, which may be anyone's project: its typer.py would be run.
if not sys.flags.safe_path:
    del sys.path[0]

from nca.cli.app import main

main()
