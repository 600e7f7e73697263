"""The libraries that cut texts, inside the child process: each is imported when a file of its kind is opened."""

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer

from model.tokenizers.subwords import limits


class Reader(Protocol):
    """Rules that were read, ready to cut."""

    def describe(self, size: int) -> dict[str, Any]:
        """What the parent must know: `tokens`, pairs of id and text below `size`; `special`, ids that stand for no text; `unknown`,
        the id of what is unknown; `byte_level`, whether texts are bytes written as signs."""

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """The `ids` of a text, and where the library tells it the `offsets` of each in the text, else its `pieces`.

        Args:
            special: whether what the rules put around a text is added.
            target: whether it is a text of the language that is written; few rules make a difference.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special ones left out."""


def read(question: dict[str, Any]) -> Reader:
    """The rules that a question names.

    Raises:
        Exception: they cannot be read; of whatever class the libraries have.
    """
    match question:
        case {"folder": folder, "class": name}:
            return _of_folder(folder, name)
        case {"pieces": content}:
            return SentencePieces(base64.b64decode(content))
        case {"rules": rules}:
            return Rules(rules.encode())
        case {"path": path}:
            return Rules(Path(path).read_bytes())
    raise KeyError("neither a folder nor a file is named")


def _of_folder(folder: str, name: str) -> Reader:
    """The tokenizer that the transformers library's class `name` makes of a folder's files. Nothing in them is executed."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported: nothing is ever looked up outside this machine
    import transformers
    from sentencepiece import SentencePieceProcessor

    for path in Path(folder).iterdir():
        if path.suffix in (".model", ".spm"):
            SentencePieceProcessor(model_file=str(path))  # the library would take a damaged one for something else
    made = getattr(transformers, name).from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return Rules(made.backend_tokenizer.to_str().encode()) if hasattr(made, "backend_tokenizer") else Pieces(made)


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

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """See Reader."""
        found = self._library.encode(text, add_special_tokens=special)
        return {"ids": found.ids, "offsets": found.offsets} if len(found.ids) <= limits.MAX_TOKENS else {"ids": found.ids}

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids), skip_special_tokens=True))


class Pieces:
    """A tokenizer of the transformers library that is written in Python around SentencePiece, which tells no offsets."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def describe(self, size: int) -> dict[str, Any]:
        """See Reader."""
        languages: dict[int, str] = getattr(self._library, "id_to_lang_token", {})
        texts = languages | {id_: token for token, id_ in self._library.get_vocab().items()}
        return {
            "tokens": [(id_, token) for id_, token in texts.items() if id_ < size],
            "special": [*self._library.all_special_ids, *languages],
            "unknown": self._library.unk_token_id,
            "byte_level": False,
        }

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """See Reader. Pieces are told where the library's ids of the bare text stand in one row in what it adds around them."""
        target = target and hasattr(self._library, "spm_target")  # others only add a language, which `before` of a target holds
        key = "text_target" if target else "text"
        ids, plain = (self._library(**{key: text}, add_special_tokens=added)["input_ids"] for added in (special, False))
        pieces, around = self._pieces(text, target), len(ids) - len(plain)
        before = next((n for n in range(around + 1) if ids[n : n + len(plain)] == plain), None)
        if before is None or len(pieces) != len(plain):
            return {"ids": ids, "pieces": [""] * len(ids)}
        return {"ids": ids, "pieces": [*[""] * before, *pieces, *[""] * (around - before)]}

    def _pieces(self, text: str, target: bool) -> list[str]:
        if target:
            self._library._switch_to_target_mode()
        try:
            return [piece.replace("▁", "") for piece in self._library.tokenize(text)]
        finally:
            if target:
                self._library._switch_to_input_mode()

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids), skip_special_tokens=True))


class SentencePieces:
    """A SentencePiece model, whose own ids count."""

    def __init__(self, content: bytes) -> None:
        from sentencepiece import SentencePieceProcessor

        self._library = SentencePieceProcessor(model_proto=content)

    def describe(self, size: int) -> dict[str, Any]:
        """See Reader."""
        ids = range(min(size, self._library.get_piece_size()))
        unknown = self._library.unk_id()
        return {
            "tokens": [(id_, self._library.id_to_piece(id_)) for id_ in ids],
            "special": [id_ for id_ in ids if self._library.is_control(id_)],
            "unknown": None if unknown < 0 else unknown,
            "byte_level": False,
        }

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """See Reader. The rules put nothing around a text."""
        pieces = self._library.encode(text, out_type=str)
        return {"ids": self._library.encode(text), "pieces": [piece.replace("▁", "") for piece in pieces]}

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids)))
