"""Sandbox process: starts the sandbox for one file and reads its answer. No torch."""

import json
import signal
import subprocess
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from model import errors
from model.errors import CheckpointError, OpeningEnded, OverLimit, WireError, phrase
from model.safe_loading import limits, plan
from model.safe_loading.worker import ROOT, bare_python

CHILD = (
    "import sys; root, path, what = sys.argv[1:]; sys.path.insert(0, root); from model.safe_loading.sandbox import main; "
    "main(path, what)"
)

UNPACKING = "import sys; sys.path.insert(0, sys.argv[1]); from model.safe_loading.packed_trace import main; main()"


def look_into(file: IO[bytes], path: str, what: Literal["plan", "vocabulary", "gguf"]) -> dict[str, Any]:
    """The sandbox's answer about an open file: an entry called `what`.

    Raises:
        CheckpointError: the file cannot be opened; the error says why and what to do.
    """
    file.seek(0)
    # the file itself goes in as standard input: the process opens no path
    command = bare_python(CHILD, str(ROOT), plan.printable(path, 500), what)
    try:
        done = subprocess.run(command, stdin=file, capture_output=True, timeout=limits.MAX_SECONDS, check=False)
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        reason = phrase("inspecting it took more than {seconds} seconds", seconds=limits.MAX_SECONDS)
        raise OverLimit(path=path, reason=reason) from error
    except ValueError as error:
        raise _ended(path, done) from error
    if "error" in answer:
        raise errors.from_json({"error": answer["error"], "fields": answer["fields"] | {"path": path}})
    return answer


def _ended(path: str, done: "subprocess.CompletedProcess[bytes]") -> CheckpointError:
    """Why a process ended without an answer, as far as that is known."""
    if done.stderr.rstrip().endswith(b"MemoryError"):
        reason = phrase("inspecting it needs more than {bytes:,} bytes of memory", bytes=limits.MAX_MEMORY)
        return OverLimit(path=path, reason=reason)
    known = {-number.value: number.name for number in signal.Signals}
    return OpeningEnded(path=path, how=known.get(done.returncode, f"exit {done.returncode}"))


def unpacked(file: IO[bytes], path: str) -> bytes:
    """The trace in an open archive, unpacked by another process.

    Args:
        path: the file's name in errors.

    Raises:
        WireError: it is too large, too slow to unpack, or damaged.
        OpeningEnded: something else ended the process.
    """
    file.seek(0)
    slow = WireError(detail=phrase("unpacking it takes more than {seconds} seconds", seconds=limits.MAX_SECONDS))
    with TemporaryFile() as into:
        try:
            done = subprocess.run(
                bare_python(UNPACKING, str(ROOT)),
                stdin=file,
                stdout=into,
                stderr=subprocess.PIPE,
                timeout=limits.MAX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise slow from error
        if done.returncode:
            message = done.stderr.decode("utf-8", "replace").strip()
            raise errors.from_json(json.loads(message)) if message.startswith("{") else _ended(path, done)
        into.seek(0)
        return into.read()


def read_pickled_vocabulary(content: bytes, name: str) -> Any:
    """The vocabulary in the bytes of a pickle called `name`, as JSON values; None: there is none of a known form.

    Raises:
        CheckpointError: it is unsafe or damaged, or beyond the limits.
    """
    with TemporaryFile() as file:
        file.write(content)
        file.flush()
        return look_into(file, name, "vocabulary")["vocabulary"]
