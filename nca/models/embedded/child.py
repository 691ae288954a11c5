"""The embedded model's process: llama.cpp's server, and nothing else.

Run as a file (python -P child.py), not as a module of nca: it needs nothing of nca, and nothing in the working
directory can pose as one of its imports. It is a process of its own because loading holds Python's lock for seconds,
and because native code that crashes must not take the chat along.

Standard input carries one line of JSON (Parameters), then stays open: its end is the end of this process, so it
never outlives nca, however nca ends. Standard output carries one line of JSON: {"url": …} or {"error": …, "kind": …}.
What native code prints goes to the log file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, TypedDict


class Parameters(TypedDict):
    """The API key comes this way and not as an argument, which every user of the machine could read."""

    model_path: str
    alias: str
    template: str
    window_tokens: int
    temperature: float
    loop_penalty: float
    api_key: str
    log_path: str


def main() -> None:
    """Load, say where the server is, and wait for standard input to end."""
    # Ctrl-C in the terminal is for nca.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = _take_standard_output()
    parameters: Parameters = json.loads(sys.stdin.readline())
    _send_output_to(parameters["log_path"])
    try:
        server = _serve(parameters)
    except ImportError as error:
        kind = "libgomp" if "libgomp" in str(error) else "runtime"
        _say(answer, {"kind": kind, "error": str(error)})
        os._exit(1)
    # Whatever keeps llama.cpp from loading is told to the parent, which knows how to say it.
    except Exception as error:  # noqa: BLE001
        _say(answer, {"kind": "load", "error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _say(answer, {"url": server.listening_address})
    while sys.stdin.readline():
        continue
    # Not sys.exit: the server's threads may be in the middle of an answer nobody waits for.
    os._exit(0)


def _serve(parameters: Parameters) -> Any:
    """The running server, the model loaded. Its values were measured; each line says why where it is not plain."""
    # Threads of llama.cpp that spin while they wait fall from 120 to 5 tokens a second beside any other busy process.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    import xllamacpp

    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    common = xllamacpp.CommonParams()
    common.model.path = parameters["model_path"]
    common.model_alias = {parameters["alias"]}
    common.n_ctx = parameters["window_tokens"]
    # More slots would each get a share of the window.
    common.n_parallel = 1
    common.hostnames = ["127.0.0.1"]
    common.port = 0
    common.api_keys = [parameters["api_key"]]
    common.ui = False
    # Tools need the template engine.
    common.use_jinja = True
    if parameters["template"]:
        common.chat_template = parameters["template"]
    # What does not fit is an error, never a silent cut.
    common.ctx_shift = False
    common.cache_ram_mib = 0
    # 1.5 instead of 2.2 GB of memory.
    common.no_extra_bufts = True
    common.verbosity = -1
    common.sampling.temp = parameters["temperature"]
    common.sampling.dry_multiplier = parameters["loop_penalty"]
    common.cpuparams.n_threads = max(1, cores - 1)
    common.cpuparams_batch.n_threads = cores
    return xllamacpp.Server(common)


def _take_standard_output() -> int:
    """A descriptor for our one line; what else is written to standard output goes the way of the errors."""
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def _send_output_to(path: str) -> None:
    """Descriptors 1 and 2 to the log, a new one each time; nowhere where it cannot be written."""
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
