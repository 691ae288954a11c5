"""Stand for a command that is forked elsewhere: `python -IS stand_in.py SOCKET MODULE ARGUMENTS`.

It gives its streams, directory and environment to the process that forks (`forking`), and is from then on only what its
own parent sees of the command: it hands signals on, takes the command along when it is killed, and ends as the command
ends. Nothing is imported here that takes time.
"""

import os
import signal
import sys
from array import array
from socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


def main() -> None:
    path, module, *words = sys.argv[1:]
    with socket(AF_UNIX) as forking:
        forking.connect(path)
        for number in SIGNALS:
            signal.signal(number, lambda number, _: forking.send(bytes([number])))
        variables = [f"{name}={value}" for name, value in os.environ.items()]
        order = b"\0".join(map(os.fsencode, (str(len(words)), module, *words, *variables)))
        given = array("i", (0, 1, 2, os.open(".", os.O_RDONLY)))
        forking.sendmsg([len(order).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, given)])
        forking.sendall(order)
        # Whoever reads the command's output must not wait for the end of this process.
        for stream in range(3):
            os.close(stream)
        told = forking.recv(16)
    code = int(told or b"1")
    if code < 0:
        if -code in SIGNALS:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


if __name__ == "__main__":
    main()
