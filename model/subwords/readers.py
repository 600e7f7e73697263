"""The libraries that cut texts, inside the child process: each is imported when a file of its kind is opened."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer

from model.subwords import limits


class Reader(Protocol):
    """Rules that were read, ready to cut."""

    def describe(self, size: int) -> dict[str, Any]:
        """What the parent must know: `tokens`, pairs of id and text below `size`; `special`, ids that stand for no text; `unknown`,
        the id of what is unknown; `byte_level`, whether texts are bytes written as signs."""

    def encode(self, text: str, special: bool) -> dict[str, Any]:
        """The `ids` of a text, and where the library tells it the `offsets` of each in the text, else its `pieces`.

        Args:
            special: whether what the rules put around a text is added.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special ones left out."""


def read(question: dict[str, Any]) -> Reader:
    """The rules that a question names.

    Raises:
        Exception: they cannot be read; of whatever class the libraries have.
    """
    return Rules(Path(question["path"]).read_bytes() if "path" in question else question["rules"].encode())


class Rules:
    """A tokenizer.json. Whatever it says, it neither cuts a text short nor pads it: a text that is too long is refused in words."""

    def __init__(self, content: bytes) -> None:
        if len(content) > limits.MAX_FILE:
            raise ValueError(f"it is larger than {limits.MAX_FILE:,} bytes")
        self._data = json.loads(content.decode("utf-8"))
        if not isinstance(self._data, dict):
            raise ValueError("it holds no JSON object")
        try:
            self._library = Tokenizer.from_buffer(content)
        except Exception as error:
            raise ValueError(f"the tokenizers library says: {error}") from error
        self._library.no_truncation()
        self._library.no_padding()

    def describe(self, size: int) -> dict[str, Any]:
        """See Reader."""
        model = self._data.get("model") or {}
        token = model.get("unk_token")
        unknown = self._library.token_to_id(token) if isinstance(token, str) else model.get("unk_id")
        return {
            "tokens": [(id_, token) for token, id_ in self._library.get_vocab().items() if id_ < size],
            "special": [id_ for id_, added in self._library.get_added_tokens_decoder().items() if added.special],
            "unknown": unknown if type(unknown) is int else None,
            "byte_level": '"ByteLevel"' in json.dumps([self._data.get("pre_tokenizer"), self._data.get("decoder")]),
        }

    def encode(self, text: str, special: bool) -> dict[str, Any]:
        """See Reader."""
        found = self._library.encode(text, add_special_tokens=special)
        return {"ids": found.ids, "offsets": found.offsets} if len(found.ids) <= limits.MAX_TOKENS else {"ids": found.ids}

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids), skip_special_tokens=True))
