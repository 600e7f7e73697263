"""Worker: a child process that answers questions within resource limits and is restarted after it died.

Questions and answers are lines of JSON. The parent kills the process after a time limit; the process limits its own memory
(`bounds`). Only a few idle processes are kept.
"""

import json
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Timer
from typing import Any, Literal, TypeAlias

ROOT = Path(__file__).parents[2]

MOST_IDLE = 8
"""Most idle processes; the one that was idle longest is ended first."""

MOST_BYTES = 64 << 20
"""Most bytes of an answer."""

_MOST_STDERR = 1 << 16
"""Most bytes read from a process's standard error."""

Reason: TypeAlias = Literal["time", "memory", "died", "length", "template"]


def bare_python(code: str, *arguments: str) -> list[str]:
    """The command for a Python with the standard library only: no site-packages, no user settings.

    It keeps the bytecode of modules where this process does, else each such process would compile them anew.
    """
    return [sys.executable, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-c", code, *arguments]


class Ended(Exception):
    """The process ended, or was killed, before it answered.

    Attributes:
        reason: too slow, out of memory, too long an answer, or another cause of death.
        stderr: the end of its standard error.
    """

    def __init__(self, reason: Reason, stderr: str = "") -> None:
        self.reason, self.stderr = reason, stderr
        super().__init__(reason, stderr)


class Worker:
    """A child process, started with the first question and restarted after it died.

    Args:
        command: starts the process.
        first: the first question to each new process.
        seconds: time limit for starting and answering `first`.
    """

    def __init__(self, command: Sequence[str], first: Mapping[str, Any], seconds: float) -> None:
        self._command, self._first, self._seconds = command, first, seconds
        self._lock = Lock()
        self._alive: list[subprocess.Popen[bytes]] = []  # one or none; a list, since `finalize` must not reference the worker
        weakref.finalize(self, _end_all, self._alive)

    def ask(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to a question. One caller at a time.

        Args:
            seconds: time limit for waiting for other callers, and again for the answer.

        Raises:
            Ended: the process did not answer in time, or died; the next question starts a new one.
        """
        # whoever waits longer than a start and an answer take, waits for something that hangs
        if not self._lock.acquire(timeout=self._seconds + seconds):
            raise Ended("time")
        try:
            if self._alive and self._alive[0].poll() is not None:
                self._end()
            if not self._alive and "error" in (first := self._start()):
                self._end()
                raise Ended("died", first["error"])
            return self._exchange(question, seconds)
        finally:
            self._lock.release()
            _IDLE.put(self)

    def opened(self) -> dict[str, Any]:
        """The answer to `first`.

        Raises:
            Ended: as for `ask`.
        """
        with self._lock:
            self._end()
            answer = self._start()
        _IDLE.put(self)
        return answer

    def close(self) -> bool:
        """Ends the process unless it is busy; returns whether it was ended."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._end()
        finally:
            self._lock.release()
        return True

    @property
    def pid(self) -> int | None:
        """Process id; None: no process is running."""
        return self._alive[0].pid if self._alive else None

    def _start(self) -> dict[str, Any]:
        pipe = subprocess.PIPE
        self._alive.append(subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe))
        return self._exchange(self._first, self._seconds)

    def _exchange(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        process = self._alive[0]
        assert process.stdin is not None
        assert process.stdout is not None
        late = Event()
        timer = Timer(seconds, _stop, (process, late))
        timer.start()
        line = b""
        try:
            with suppress(OSError):  # it is dead: the line stays empty
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline(MOST_BYTES)
        finally:
            timer.cancel()
        # half a line: it was killed while it wrote, or wrote more than is read
        if late.is_set() or not line.endswith(b"\n"):
            raise Ended(*self._cause_of_end(late.is_set(), bool(line)))
        answer: dict[str, Any] = json.loads(line)
        if "ended" in answer:
            self._end()
            raise Ended(answer["ended"], answer.get("stderr", ""))
        return answer

    def _cause_of_end(self, late: bool, began: bool) -> tuple[Reason, str]:
        """Why a process ended without an answer. Libraries that run out of memory abort with a message on standard error."""
        process = self._alive[0]
        process.kill()
        process.wait()
        stderr = b"" if process.stderr is None else process.stderr.read(_MOST_STDERR)
        code, no_memory = process.returncode, b"memory allocation" in stderr or b"bad_alloc" in stderr or b"MemoryError" in stderr
        last = " ".join(stderr.decode("utf-8", "replace").split()[-20:])
        self._end()
        if late or code == -getattr(signal, "SIGXCPU", 0):
            return "time", ""
        if no_memory:
            return "memory", ""
        return ("length", "") if began else ("died", last or f"exit status {code}")

    def _end(self) -> None:
        _end_all(self._alive)


def _stop(process: subprocess.Popen[bytes], late: Event) -> None:
    late.set()
    process.kill()


def _end_all(alive: list[subprocess.Popen[bytes]]) -> None:
    while alive:
        process = alive.pop()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):  # unwritten data has no reader any more
                if stream is not None:
                    stream.close()


class _Idle:
    """Workers with a process, the most recently used last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._workers: list[weakref.ref[Worker]] = []

    def put(self, worker: Worker) -> None:
        """Marks a worker as used, and ends surplus processes."""
        with self._lock:
            known = [ref for ref in self._workers if (idle := ref()) is not None and idle is not worker and idle.pid]
            surplus, kept = known[: max(0, len(known) + 1 - MOST_IDLE)], known[max(0, len(known) + 1 - MOST_IDLE) :]
            busy = [ref for ref in surplus if (idle := ref()) is not None and not idle.close()]
            self._workers = [*busy, *kept, weakref.ref(worker)]


_IDLE = _Idle()
