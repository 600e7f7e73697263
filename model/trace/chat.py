"""What a trace says of a conversation, as its fact `chat`."""

from dataclasses import dataclass

from model.spec.validation import read
from model.trace.types import Trace

FACT = "chat"


@dataclass(frozen=True)
class ChatFacts:
    """The conversation of a run.

    Attributes:
        template: SHA-256 of the chat template, in hexadecimal.
        text: the prompt that the template made of the turns.
        starts: the first token of each turn and of the reply; empty where the template does not write turn after turn.
        reply: the text that the model wrote, without special tokens.
    """

    template: str
    text: str
    starts: tuple[int, ...]
    reply: str


def chat_of(trace: Trace) -> ChatFacts | None:
    """The conversation of a trace; None: its input was of another form.

    Raises:
        BadSetting: the fact has another form.
    """
    found = trace.model.get(FACT)
    return None if found is None else read(ChatFacts, found, f"header.model.{FACT}")
