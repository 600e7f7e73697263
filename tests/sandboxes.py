"""The sandbox of model/safe_loading without its start, which takes 0.1 s for each of hundreds of files.

One process starts as the sandbox does, imports what that imports, never reads a file, and forks for each. A fork has what a sandbox
has: a process of its own, and its limits from the first byte. How the sandbox itself starts and ends is tested in
tests/model/safe_loading/test_opening_process.py, whose sandboxes are others, and start as ever.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from threading import Lock
from types import SimpleNamespace
from typing import IO, Any

from model.safe_loading import limits, sandbox_process
from model.safe_loading.worker import ROOT, bare_python
from tests.patience import HANG_S

FORKING = """
import json, os, signal, socket, sys
sys.path.insert(0, sys.argv[1])
from model.safe_loading import gguf, pickled_vocabulary
from model.safe_loading.sandbox import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
asked = socket.socket(fileno=0)
while True:
    arguments, files, _flags, _from = socket.recv_fds(asked, 2**16, 2)
    if not arguments:
        break
    if os.fork() == 0:
        asked.detach()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        try:
            main(*json.loads(arguments))
            sys.stdout.flush()
        finally:
            os._exit(0)
    for file in files:
        os.close(file)
"""


def spare() -> None:
    """From now on sandboxes as they are by default are forks."""
    if sys.platform != "linux":
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    usual, child, seconds, lock = bare_python(FORKING, str(ROOT)), sandbox_process.CHILD, limits.MAX_SECONDS, Lock()
    forking = subprocess.Popen(usual, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    theirs.close()

    def run(command: list[str], stdin: IO[bytes], timeout: float, **same: Any) -> subprocess.CompletedProcess[bytes]:
        if child not in command or timeout != seconds:
            return subprocess.run(command, stdin=stdin, timeout=timeout, **same)
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            with lock:
                socket.send_fds(ours, [json.dumps(command[-2:]).encode()], [stdin.fileno(), writing])
            os.close(writing)
            return subprocess.CompletedProcess(command, 0, answer.read())

    def end() -> None:
        ours.close()
        forking.wait(HANG_S)

    atexit.register(end)
    vars(sandbox_process)["subprocess"] = SimpleNamespace(run=run, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
