"""python -m nca."""

from nca.cli.app import main

main()
