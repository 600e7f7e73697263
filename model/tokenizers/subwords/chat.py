"""Renders a conversation by a chat template, inside the child process of the tokenizer, and encodes what it wrote.

The transformers library does it in its sandbox, in which a template cannot reach Python; time and memory of the process are limited
like those of a text.
"""

import os
from typing import Any

from model.safe_loading import bounds
from model.tokenizers.subwords import limits
from model.tokenizers.subwords.readers import Reader

LONGEST_REASON = 300
"""Most characters of what a template says when it refuses a conversation: it may say anything."""


def encode(reader: Reader, question: dict[str, Any]) -> dict[str, Any]:
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
        said = str(error)[:LONGEST_REASON]
        return {"refused": said if type(error).__name__ == "TemplateError" else f"{type(error).__name__}: {said}"}
    if len(text) > limits.MAX_CHARACTERS:
        return {"ended": "length"}
    starts = [0]
    try:
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
