"""The process that looks into a file: takes it as standard input, describes it on standard output, can do nothing else.

It runs Python without site-packages (-I -S), so that no library can be imported whatever happens. Where the system has the module
`resource` (Linux, macOS) it may write no file, and its memory and time are limited; macOS seldom grants the limit on memory. On
Windows there is no such module: there the number of a pickle's instructions and the time that `reading` waits are the limits.
"""

import json
import os
import sys
from typing import BinaryIO

from model.errors import HeadlightError, OverLimit
from model.safe_loading import bounds, file_type, limits, plan, state_dicts
from model.safe_loading.plan import Plan
from model.safe_loading.safetensors import read_safetensors
from model.safe_loading.tensor_checks import Checks
from model.safe_loading.torch_legacy import read_stream
from model.safe_loading.torch_zip import read_archive

READERS = {"archive": read_archive, "stream": read_stream, "safetensors": read_safetensors}
FORMATS: dict[str, plan.Format] = {"archive": "torch zip", "stream": "torch legacy", "safetensors": "safetensors"}


def describe(file: BinaryIO, path: str) -> Plan:
    """What is in a file, checked against its size; no byte of its weights is read.

    Args:
        file: the file, open for reading.
        path: what it is called in a sentence.

    Raises:
        CheckpointError: it cannot be opened; the sentence says why and what to do.
    """
    size = file.seek(0, os.SEEK_END)
    if size > limits.MAX_FILE:
        raise OverLimit(path=path, what="its size", found=f"{size:,} bytes", allowed=f"{limits.MAX_FILE:,}")
    file.seek(0)
    kind = file_type.format_of(file.read(file_type.HEAD), path)
    root, stored = READERS[kind](file, size, path)
    tables, beside = state_dicts.find(root, path)
    checks = Checks(path, size, stored)
    candidates = {name: {key: checks.described(key, tensor) for key, tensor in table.items()} for name, table in tables.items()}
    used = {tensor.storage for table in candidates.values() for tensor in table.values()}
    return Plan(FORMATS[kind], {key: stored[key] for key in stored if key in used}, candidates, tuple(beside))


def limit_this_process() -> None:
    """Gives up what is not needed for reading, for good."""
    bounds.limit_this_process(limits.MAX_MEMORY, limits.MAX_SECONDS)


def main(path: str) -> None:
    """Describes standard input, called `path`, on standard output: a plan, or an error by its class and its fields."""
    limit_this_process()
    try:
        with os.fdopen(0, "rb") as file:
            answer = f'{{"plan": {plan.to_json(describe(file, path))}}}'
    except HeadlightError as error:
        answer = json.dumps({"error": type(error).__name__, "fields": error.fields})
    except MemoryError:
        found, most = "not enough", f"{limits.MAX_MEMORY:,} bytes"
        fields = {"path": path, "what": "the memory for looking into it", "found": found, "allowed": most}
        answer = json.dumps({"error": OverLimit.__name__, "fields": fields})
    sys.stdout.write(answer)
