"""What `python -c CODE ARGUMENTS` does, as a module that can be forked (`forks.standing_code`)."""

import sys

if __name__ == "__main__":
    code = sys.argv.pop(1)
    sys.argv[0] = "-c"
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
