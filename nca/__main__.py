"""Run nca with `python -m nca`."""

import sys

# Python puts the current directory first on the path; a typer.py in an untrusted project would be imported.
if not sys.flags.safe_path:
    del sys.path[0]

from nca.cli.app import main

main()
