"""Run a program in the foreground of the terminal, in a process group of its own, as a shell does.

Ctrl-C then reaches the program and not `make` as well, which would end with an error whatever the program does.
Usage: foreground.py DIRECTORY PROGRAM [ARGUMENT …]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main(directory: str, program: str, *arguments: str) -> int:
    """The program's exit code, in the form that shells use; 0 where the person left it with Ctrl-C."""
    command = [str(Path(program).absolute()), *arguments]
    try:
        os.chdir(Path(directory).expanduser())
    except OSError as error:
        print(f"DIR={directory}: {(error.strerror or str(error)).lower()}; name a folder.", file=sys.stderr)
        return 2
    if not sys.stdin.isatty() or os.tcgetpgrp(0) != os.getpgrp():
        os.execvp(command[0], command)
    # Whoever is not in the foreground is stopped by this signal when it takes the terminal back.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    own, child = os.getpgrp(), os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    for number in PASSED_ON:
        signal.signal(number, lambda received, _: os.kill(child, received))
    while True:
        status = os.waitpid(child, os.WUNTRACED)[1]
        os.tcsetpgrp(0, own)
        if not os.WIFSTOPPED(status):
            break
        # Ctrl-Z: make stops too, until the shell continues all of it.
        os.killpg(own, signal.SIGSTOP)
        os.tcsetpgrp(0, child)
        os.killpg(child, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(status)
    return 0 if code in (130, -signal.SIGINT) else code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
