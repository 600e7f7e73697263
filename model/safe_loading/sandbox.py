"""Sandbox: the child process that reads a file on standard input and writes a description to standard output.

It runs Python without site-packages (-I -S), so that no library can be imported. With the module `resource` (Linux, macOS) it
cannot write files, and its memory and time are limited; macOS seldom grants the memory limit. Windows has no such module: there
only the number of pickle instructions and the time that `reader` waits are limited.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from model.errors import HeadlightError, OverLimit, phrase
from model.safe_loading import bounds, file_type, limits, plan, state_dicts
from model.safe_loading.plan import Plan, Stored
from model.safe_loading.safetensors import read_safetensors
from model.safe_loading.tensor_checks import Checks

FORMATS: dict[str, plan.Format] = {"archive": "torch zip", "stream": "torch legacy", "safetensors": "safetensors"}


def describe(file: BinaryIO, path: str) -> Plan:
    """The plan of a file, validated against the file's size. The weights are not read.

    Args:
        file: the file, open for reading.
        path: the file's name in errors.

    Raises:
        CheckpointError: it cannot be opened; the error says why and what to do.
    """
    size = _size(file, path)
    kind = file_type.format_of(file.read(file_type.HEAD), path)
    root, stored = _reader(kind)(file, size, path)
    tables, others = state_dicts.find(root, path)
    checks = Checks(path, size, stored)
    candidates = {name: {key: checks.described(key, tensor) for key, tensor in table.items()} for name, table in tables.items()}
    # an optimizer's storages are not read: they are twice as large as the weights
    used = {tensor.storage for table in candidates.values() for tensor in table.values()}
    return Plan(FORMATS[kind], {key: stored[key] for key in stored if key in used}, candidates, tuple(others))


def _reader(kind: str) -> Callable[[BinaryIO, int, str], tuple[Any, dict[str, Stored]]]:
    """What reads files of a kind. Most files are safetensors, so what only others need is imported for them alone."""
    if kind == "safetensors":
        return read_safetensors
    from model.safe_loading.torch_legacy import read_stream
    from model.safe_loading.torch_zip import read_archive

    return read_archive if kind == "archive" else read_stream


def _size(file: BinaryIO, path: str) -> int:
    """Bytes of a file, which is read from its beginning next."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > limits.MAX_FILE:
        raise OverLimit(
            path=path, reason=phrase("it has {found:,} bytes; at most {most:,} are read", found=size, most=limits.MAX_FILE)
        )
    return size


def vocabulary(file: BinaryIO, path: str) -> str:
    """The vocabulary in a pickle as JSON; null: there is none of a known form.

    Raises:
        CheckpointError: it is unsafe or damaged, or beyond the limits.
    """
    from model.safe_loading import pickled_vocabulary

    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return json.dumps(pickled_vocabulary.find(file, size, path))


def gguf_header(file: BinaryIO, path: str) -> str:
    """The header of a GGUF file as JSON.

    Raises:
        CheckpointError: it is malformed, or beyond the limits.
    """
    from model.safe_loading import gguf

    return gguf.to_json(gguf.read_header(file, _size(file, path), path))


ANSWERS: Mapping[str, Callable[[BinaryIO, str], str]] = {
    "plan": lambda file, path: plan.to_json(describe(file, path)),
    "vocabulary": vocabulary,
    "gguf": gguf_header,
}


def limit_this_process() -> None:
    """Drops all rights that reading does not need; they cannot be regained."""
    bounds.limit_this_process(limits.MAX_MEMORY, limits.MAX_SECONDS)
    if hasattr(signal, "setitimer"):  # not on Windows
        # a file that takes long to read goes on with low priority: others are waiting
        signal.signal(signal.SIGPROF, lambda *_: os.nice(limits.NICENESS))
        signal.setitimer(signal.ITIMER_PROF, limits.AT_ONCE)


def main(path: str, what: str) -> None:
    """Writes an answer about standard input, a file called `path`, to standard output, or an error's class and fields.

    Args:
        what: `plan`, `vocabulary` or `gguf`.
    """
    limit_this_process()
    try:
        with os.fdopen(0, "rb") as file:
            answer = f'{{"{what}": {ANSWERS[what](file, path)}}}'
    except HeadlightError as error:
        answer = json.dumps(error.to_json())
    except MemoryError:
        reason = phrase("inspecting it needs more than {bytes:,} bytes of memory", bytes=limits.MAX_MEMORY)
        answer = json.dumps(OverLimit(path=path, reason=reason).to_json())
    sys.stdout.write(answer)
