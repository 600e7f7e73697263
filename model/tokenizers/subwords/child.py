"""The child process of a foreign tokenizer: reads requests from standard input and writes answers to standard output, as JSON
lines.

Where the system has the module `resource`, the process cannot write files, and its memory and the CPU time of each request are
limited. A panic of the library is reported and ends the process; the next request gets a new one.
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
    """Answers requests until standard input ends.

    Args:
        memory: limit of this process's address space, in bytes.
    """
    bounds.limit_this_process(memory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent; when that ends, so does standard input
    with suppress(OSError, AttributeError):
        os.set_blocking(2, False)  # stderr is read only after this process has ended: a full pipe must not block it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to stderr, so stdout holds answers only
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
            # after a failed allocation the libraries may be in any state: a new process is safer
            _last(answers, {"ended": "memory"})
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split()[:30])}"}
        except BaseException as error:  # a panic in Rust is not an Exception
            _last(answers, {"ended": "died", "stderr": f"{type(error).__name__}: {' '.join(str(error).split()[:30])}"})
        _write(answers, answer)


def _answer(reader: Reader, question: dict[str, Any]) -> dict[str, Any]:
    if "ids" not in question:
        turns = "turns" in question
        answer = (
            encode_chat(reader, question) if turns else reader.encode(question["text"], question["special"], question["target"])
        )
        return {"tokens": len(answer["ids"])} if len(answer.get("ids", ())) > limits.MAX_TOKENS else answer
    text = reader.decode(question["ids"])
    return {"ended": "length"} if len(text) > limits.MAX_CHARACTERS else {"text": text}


def _write(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _last(answers: BinaryIO, answer: dict[str, Any]) -> None:
    _write(answers, answer)
    os._exit(1)  # a normal exit could wait forever for threads of the library that panicked


# --- Conversations, rendered by a chat template in the library's sandbox: it cannot reach Python from there ---------------

LONGEST_REASON = 300
"""Most characters of what a template says when it refuses a conversation: it may say anything."""


def encode_chat(reader: Reader, question: dict[str, Any]) -> dict[str, Any]:
    """The ids of a conversation, with its `text` and where each turn and the reply `starts` in it.

    Args:
        question: `turns`, pairs of role and text; `template`; `specials`, texts of special tokens by their names.

    Returns:
        `starts` is empty where the text of all does not begin with the text of the first turns, or has a turn's words elsewhere.
        Instead of all this, `refused` says why the template wrote nothing, or `ended` that it wrote or took too much.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # set before the import, so that the library never makes a request
    from transformers.utils.chat_template_utils import render_jinja_template

    turns = [{"role": role, "content": text} for role, text in question["turns"]]

    def rendered(count: int, reply: bool) -> str:
        with bounds.more_memory(limits.TEMPLATE_MEMORY):
            texts, _ = render_jinja_template(
                [turns[:count]], chat_template=question["template"], add_generation_prompt=reply, **question["specials"]
            )
        return str(texts[0])

    try:
        text = rendered(len(turns), reply=True)
    except MemoryError:
        return {"ended": "template"}
    except Exception as error:
        reason = str(error)[:LONGEST_REASON]
        return {"refused": reason if type(error).__name__ == "TemplateError" else f"{type(error).__name__}: {reason}"}
    if len(text) > limits.MAX_CHARACTERS:
        return {"ended": "length"}
    starts = [0]
    try:
        # the text of the first turns alone shows where the next one begins, if the template only appends
        for count in range(1, len(turns) + 1):
            before = rendered(count, reply=False)
            if not text.startswith(before) or turns[count - 1]["content"].strip() not in before[starts[-1] :]:
                break
            starts.append(len(before))
    except MemoryError:
        return {"ended": "template"}
    except Exception:
        starts = []
    return {**reader.encode(text, False, False), "text": text, "starts": starts if len(starts) == len(turns) + 1 else []}
