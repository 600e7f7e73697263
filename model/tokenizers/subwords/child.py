"""The child process of a foreign tokenizer: reads questions from standard input, answers on standard output, a line of JSON each.

Where the system has the module `resource` it may write no file, and its memory and the processor time of each question are limited.
A panic of the library is answered and ends the process: whoever asks next gets a fresh one.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from model.safe_loading import bounds
from model.tokenizers.subwords import limits
from model.tokenizers.subwords.readers import Reader, read


def main(memory: int) -> None:
    """Answers until standard input ends.

    Args:
        memory: bytes of address space that this process may take.
    """
    bounds.limit_this_process(memory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end is the end of standard input
    with suppress(OSError, AttributeError):
        os.set_blocking(2, False)  # nobody reads what is said there before this process has ended: a full pipe must not stop it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    reader: Reader | None = None
    for line in sys.stdin.buffer:
        question = json.loads(line)
        bounds.allow_seconds(question["seconds"])
        try:
            if reader is None:
                reader = read(question)
                answer = reader.describe(question["size"])
            else:
                answer = _answer(reader, question)
        except MemoryError:
            _last(answers, {"ended": "memory"})
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split()[:30])}"}
        except BaseException as error:  # the panic of a library in Rust is no Exception
            _last(answers, {"ended": "died", "said": f"{type(error).__name__}: {' '.join(str(error).split()[:30])}"})
        _write(answers, answer)


def _answer(reader: Reader, question: dict[str, Any]) -> dict[str, Any]:
    if "text" in question:
        answer = reader.encode(question["text"], question["special"], question["target"])
        return {"tokens": len(answer["ids"])} if len(answer["ids"]) > limits.MAX_TOKENS else answer
    text = reader.decode(question["ids"])
    return {"ended": "length"} if len(text) > limits.MAX_CHARACTERS else {"text": text}


def _write(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _last(answers: BinaryIO, answer: dict[str, Any]) -> None:
    _write(answers, answer)
    os._exit(1)  # threads of the library may hang in what panicked
