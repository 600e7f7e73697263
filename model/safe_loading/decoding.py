"""Images and sounds that somebody sends are decoded in a process of its own, which can write no files, in bounded memory and time.

The process reads the file on standard input and writes one line of JSON to standard output, then the decoded numbers. Unlike the
sandbox of weights it has site-packages, for the one library that decodes.
"""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, TypeAlias

from model import errors
from model.errors import CheckpointError, HeadlightError, phrase
from model.safe_loading import bounds, limits, plan
from model.safe_loading.worker import ROOT

Refusal: TypeAlias = type[CheckpointError]
"""The error of a file that is not read. Fields: path, reason."""

Decode: TypeAlias = Callable[[BinaryIO, str], tuple[dict[str, Any], bytes]]
"""What an open file of a name holds: facts, as JSON values, and numbers."""


def child_of(module: str) -> str:
    """The program of the process: it calls `main` of a module."""
    return f"import sys; root, path = sys.argv[1:]; sys.path.insert(0, root); from {module} import main; main(path)"


def decoded_apart(program: str, data: bytes, name: str, refusal: Refusal, most: int) -> tuple[dict[str, Any], bytes]:
    """What a process of its own decodes of a file: facts and numbers.

    Args:
        program: of the process, as `child_of` makes it.
        data: the bytes of the file.
        name: its name in errors.
        refusal: the error of a file of its kind.
        most: most bytes of a file.

    Raises:
        CheckpointError: it is not read; the error says why.
    """
    if len(data) > most:
        raise refusal(path=name, reason=phrase("it has {found:,} bytes; at most {most:,} are read", found=len(data), most=most))
    command = [sys.executable, "-I", "-c", program, str(ROOT), plan.printable(name, 500)]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=limits.MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        reason = phrase("opening it took more than {seconds} seconds", seconds=limits.MAX_SECONDS)
        raise refusal(path=name, reason=reason) from error
    # one line of facts, then nothing but numbers
    line, ended, numbers = done.stdout.partition(b"\n")
    if done.returncode or not ended:
        raise refusal(path=name, reason=phrase("the process that opened it ended with status {status}", status=done.returncode))
    reply: dict[str, Any] = json.loads(line)
    if "error" in reply:
        raise errors.from_json({"error": reply["error"], "fields": reply["fields"] | {"path": name}})
    return reply, numbers


def answer(decode: Decode, path: str, refusal: Refusal) -> None:
    """Writes what the file on standard input, called `path`, holds to standard output, or an error's class and fields."""
    bounds.limit_this_process(limits.MAX_MEMORY, limits.MAX_SECONDS)
    numbers = b""
    try:
        reply, numbers = decode(io.BytesIO(sys.stdin.buffer.read()), path)
    except HeadlightError as error:
        reply = error.to_json()
    except MemoryError:
        reason = phrase("opening it needs more than {bytes:,} bytes of memory", bytes=limits.MAX_MEMORY)
        reply = refusal(path=path, reason=reason).to_json()
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n" + numbers)
