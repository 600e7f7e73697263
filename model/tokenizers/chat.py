"""Chat templates: what makes one prompt of a conversation, and what a conversation became.

A template is a program of whoever published the model, in the language of Jinja. It is rendered only in the tokenizer's process
(`model/tokenizers/subwords/child.py`), by the sandbox of the transformers library.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from model.errors import phrase
from model.requests.inputs import Chat
from model.trace.types import Tokens

NO_TEMPLATE = phrase("this model has no chat template, it continues a text")


@dataclass(frozen=True)
class ChatTemplate:
    """A model's chat template.

    Attributes:
        source: the template.
        specials: texts of the special tokens that it may write, by the names that the library has for them, such as `bos_token`.
    """

    source: str
    specials: tuple[tuple[str, str], ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the template, in hexadecimal."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Rendered:
    """A conversation as the model reads it.

    Attributes:
        tokens: its tokens, those that begin the reply included.
        text: its text.
        starts: the first token of each turn and of the reply; empty where the template does not write turn after turn.
        template: SHA-256 of the template that made it.
    """

    tokens: Tokens
    text: str
    starts: tuple[int, ...]
    template: str


@runtime_checkable
class ReadsChats(Protocol):
    """A tokenizer that can have a chat template."""

    @property
    def template(self) -> ChatTemplate | None:
        """The template; None: there is none."""

    def render(self, chat: Chat, name: str) -> Rendered:
        """The strip `name` of a conversation, up to where the reply begins.

        Raises:
            BadChat: there is no template, or it refuses the conversation.
            TooManyTokens, TokenizerFailed: template or tokenizer went beyond their limits.
        """
