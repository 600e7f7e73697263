"""Wrappers of the tokenizer libraries, inside the child process. Each library is imported when a file of its kind is opened."""

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer

from model.tokenizers.subwords import limits


class Reader(Protocol):
    """A tokenizer that was read and can encode texts."""

    def describe(self, size: int) -> dict[str, Any]:
        """Facts about a tokenizer that the parent process needs.

        Returns:
            `tokens`: pairs of id and text, for ids below `size`; `special`: ids of the special tokens; `unknown`: id of the unknown
            token; `byte_level`: whether the texts of tokens are bytes, each written as one character; perhaps `failure`: why the
            files beside tokenizer.json were not read.
        """

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """The `ids` of a text, with the `offsets` of each token in the text where the library tells them, else with its `pieces`.

        Args:
            special: whether the special tokens that the tokenizer puts around a text are added.
            target: whether the text is in the target's language; few tokenizers make a difference.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens."""


def read(question: dict[str, Any]) -> Reader:
    """Reads the tokenizer that a request names.

    Raises:
        KeyError: the request names none.
        Exception: it cannot be read; the class is the library's.
    """
    match question:
        case {"folder": folder, "class": name}:
            return _reader_of_folder(folder, name)
        case {"pieces": content}:
            return SentencePieces(base64.b64decode(content))
        case {"rules": rules}:
            return Rules(rules.encode())
        case {"path": path, "beside": folder, "config": config}:
            return _reader_of_library(Path(path), folder, config)
        case {"path": path}:
            return Rules(Path(path).read_bytes())
    raise KeyError("neither a folder nor a file is named")


def _reader_of_folder(folder: str, name: str) -> Reader:
    """The tokenizer that class `name` of the transformers library makes from a folder. No code in the folder is executed."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # set before the import, so that the library never makes a request
    import transformers
    from sentencepiece import SentencePieceProcessor

    for path in Path(folder).iterdir():
        if path.suffix in (".model", ".spm"):
            SentencePieceProcessor(model_file=str(path))  # raises for a damaged file, which the library would take for another kind
    made = getattr(transformers, name).from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return _reader(made)


def _reader_of_library(path: Path, folder: str, config: dict[str, Any]) -> Reader:
    """The tokenizer that the transformers library makes from a folder; from its tokenizer.json alone, where it fails.

    Its classes differ in what they take from tokenizer.json and what from the files beside it, so nothing of that is repeated here.

    Args:
        path: tokenizer.json.
        config: of the network, by whose architecture the library chooses the class.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # set before the import, so that the library never makes a request
    from transformers import CONFIG_MAPPING, AutoTokenizer

    try:
        made = AutoTokenizer.from_pretrained(
            folder,
            config=CONFIG_MAPPING[config["model_type"]].from_dict(config),
            local_files_only=True,
            trust_remote_code=False,
        )
        return _reader(made)
    except MemoryError:
        raise
    except Exception as error:
        return Rules(path.read_bytes(), failure=f"{type(error).__name__}: {' '.join(str(error).split()[:30])}")


def _reader(made: Any) -> Reader:
    """A tokenizer of the transformers library."""
    # classes written in Python have no tokenizer.json to hand over
    if not hasattr(made, "backend_tokenizer"):
        return Pieces(made)
    return Rules(made.backend_tokenizer.to_str().encode(), bool(made.split_special_tokens))


class Rules:
    """A tokenizer.json. Its truncation and padding are switched off: a text that is too long is refused with an error instead.

    Args:
        content: of the file.
        splits_special: whether the text of a special token in a text is cut like any other.
        failure: what the library said that could not read the files beside it; empty: nothing.
    """

    def __init__(self, content: bytes, splits_special: bool = False, failure: str = "") -> None:
        self._failure = failure
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
        self._library.encode_special_tokens = splits_special

    def describe(self, size: int) -> dict[str, Any]:
        """See Reader."""
        model = self._data.get("model") or {}
        token = model.get("unk_token")
        unknown = self._library.token_to_id(token) if isinstance(token, str) else model.get("unk_id")
        return {
            "tokens": [(id_, token) for token, id_ in self._library.get_vocab().items() if id_ < size],
            "special": [id_ for id_, added in self._library.get_added_tokens_decoder().items() if added.special],
            "unknown": unknown if type(unknown) is int else None,
            "failure": self._failure,
            "byte_level": '"ByteLevel"' in json.dumps([self._data.get("pre_tokenizer"), self._data.get("decoder")]),
        }

    def encode(self, text: str, special: bool, target: bool) -> dict[str, Any]:
        """See Reader."""
        encoding = self._library.encode(text, add_special_tokens=special)
        return (
            {"ids": encoding.ids, "offsets": encoding.offsets} if len(encoding.ids) <= limits.MAX_TOKENS else {"ids": encoding.ids}
        )

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids), skip_special_tokens=True))


class Pieces:
    """A tokenizer of the transformers library that is written in Python around SentencePiece, which gives no offsets."""

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
        """See Reader. Pieces are empty where the ids of the bare text are not one run within the ids with special tokens."""
        target = target and hasattr(self._library, "spm_target")  # others only add the token of a language
        key = "text_target" if target else "text"
        ids, plain = (self._library(**{key: text}, add_special_tokens=added)["input_ids"] for added in (special, False))
        pieces, around = self._pieces(text, target), len(ids) - len(plain)
        # where the bare text's ids begin among those with special tokens
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
    """A SentencePiece model, with the ids that the model itself gives."""

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
        """See Reader. A SentencePiece model puts no special tokens around a text."""
        pieces = self._library.encode(text, out_type=str)
        return {"ids": self._library.encode(text), "pieces": [piece.replace("▁", "") for piece in pieces]}

    def decode(self, ids: Sequence[int]) -> str:
        """See Reader."""
        return str(self._library.decode(list(ids)))
