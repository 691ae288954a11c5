"""The child process of the embedded model: runs llama.cpp's server.

Run as a file (python -P child.py), not as a module of nca: it imports nothing of nca, and no file in the working
directory can shadow its imports. It is a separate process because loading holds Python's lock for seconds, and because
a crash of native code must not end the chat.

Standard input carries one line of JSON (process.py writes it there, because any user of the machine can read the
arguments of a process) and then stays open; when it is closed, the process exits, so it never outlives nca. Standard
output carries one line of JSON: {"url": …} or {"error": …, "kind": …}. The output of native code goes to the log file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Start the server, print its address, and wait until standard input is closed."""
    # nca handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = _take_standard_output()
    parameters: dict[str, Any] = json.loads(sys.stdin.readline())
    _send_output_to(parameters["log_path"])
    try:
        server = _serve(parameters)
    except ImportError as error:
        kind = "libgomp" if "libgomp" in str(error) else "runtime"
        _say(answer, {"kind": kind, "error": str(error)})
        os._exit(1)
    # The parent explains any error.
    except Exception as error:  # noqa: BLE001
        _say(answer, {"kind": "load", "error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _say(answer, {"url": server.listening_address})
    while sys.stdin.readline():
        continue
    # Not sys.exit: it would wait for the server's threads.
    os._exit(0)


def _serve(parameters: dict[str, Any]) -> Any:
    """Load the model and start the server. The settings are measured."""
    # Spinning threads fall from 120 to 5 tokens a second while another process is busy.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    import xllamacpp

    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    common = xllamacpp.CommonParams()
    common.model.path = parameters["model_path"]
    common.model_alias = {parameters["alias"]}
    common.n_ctx = parameters["window_tokens"]
    # It says after each batch how much it has read. What is computed at once is no larger.
    common.n_batch = 512
    # More slots would share the window.
    common.n_parallel = 1
    common.hostnames = ["127.0.0.1"]
    common.port = 0
    common.api_keys = [parameters["api_key"]]
    common.ui = False
    # Tools require the template engine.
    common.use_jinja = True
    common.chat_template = parameters["template"]  # "", as it is anyway: the one in the file
    # Report a request that does not fit instead of cutting it silently.
    common.ctx_shift = False
    common.cache_ram_mib = 0
    # Saves 0.7 of 2.2 GB of memory.
    common.no_extra_bufts = True
    common.verbosity = -1
    common.sampling.temp = parameters["temperature"]
    common.sampling.dry_multiplier = parameters["loop_penalty"]
    common.cpuparams.n_threads = max(1, cores - 1)
    common.cpuparams_batch.n_threads = cores
    return xllamacpp.Server(common)


def _take_standard_output() -> int:
    """A descriptor for the answer line; other writes to standard output go to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def _send_output_to(path: str) -> None:
    """Redirect descriptors 1 and 2 to a new log file, or discard the output if it cannot be written."""
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _say(answer: int, fact: dict[str, str]) -> None:
    os.write(answer, json.dumps(fact).encode() + b"\n")


if __name__ == "__main__":
    main()
