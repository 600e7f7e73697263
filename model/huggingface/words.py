"""The tokenizer of a Hugging Face folder, behind the protocol of our own: each token is shown as the text that it stands for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from tokenizers import Tokenizer as Library

from model.errors import DamagedFile, EmptyText, TokenOutOfRange
from model.foreign import ForeignSpec
from model.huggingface.folder import TOKENIZER, Folder, read_json
from model.tokenizers import Tokenizer
from model.trace import Tokens
from model.vocabularies import IdTokenizer, Specials


def _bytes_by_sign() -> dict[str, int]:
    """The byte that each sign of a byte-level vocabulary stands for.

    A byte that can be printed is its own sign; the others, in order, are the signs from U+0100 on.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTES: Mapping[str, int] = MappingProxyType(_bytes_by_sign())
BLANK = "▁"
"""What stands for a blank in vocabularies of SentencePiece."""


@dataclass(frozen=True)
class LibraryTokenizer:
    """A tokenizer of the tokenizers library.

    Attributes:
        library: the library's.
        size: ids that the network's embedding has; the vocabulary may know fewer.
        specials: ids that stand for no text, besides those that the library says so of.
        byte_level: whether its tokens are bytes written as signs.
        before: of a target: the ids that decoding begins with.
    """

    library: Library
    size: int
    specials: Specials
    byte_level: bool = False
    before: tuple[int, ...] = ()

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that stand for no text."""
        added = self.library.get_added_tokens_decoder().items()
        own = (self.specials.pad, self.specials.start, self.specials.end, *self.before)
        return frozenset(id_ for id_, token in added if token.special).union(id_ for id_ in own if id_ is not None)

    @property
    def ends(self) -> bool:
        """Whether a typed target gets an end token."""
        return bool(self.before) and self.specials.end is not None

    def encode(self, text: str, name: str) -> Tokens:
        """The strip of a typed text, with what the tokenizer adds; of a target with what decoding begins with.

        Raises:
            EmptyText: there is nothing but blanks.
        """
        if not text.strip():
            raise EmptyText(what=f"{name} text")
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half of a character is none
        found = self.library.encode(whole)
        ids = self._as_target(found.ids) if self.before else found.ids
        strip = self.tokens(ids, name)
        if self.before:
            return strip
        typed = [whole[first:last] for first, last in found.offsets]
        texts = (own if unknown and own else text for own, unknown, text in zip(typed, strip.unknown, strip.texts, strict=True))
        return Tokens(name, strip.ids, tuple(texts), strip.special, strip.unknown)

    def _as_target(self, ids: Sequence[int]) -> list[int]:
        """What the decoder is fed for a text: its beginning, the text, the end token last.

        Tokens of the source's language and end tokens that the template puts around a text are no part of a target.
        """
        words = [id_ for id_ in ids if id_ not in self.special_ids or id_ == self.specials.unknown]
        first = [] if len(self.before) > 1 or not ids or ids[0] not in self.special_ids else [ids[0]]
        return [*self.before, *first, *words, *([] if self.specials.end is None else [self.specials.end])]

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of ids that are taken as they are.

        Raises:
            TokenOutOfRange: the network has no such id.
        """
        for id_ in ids:
            if not 0 <= id_ < self.size:
                raise TokenOutOfRange(what=name, found=id_, size=self.size)
        special = tuple(id_ in self.special_ids and id_ != self.specials.unknown for id_ in ids)
        texts = tuple(self._text(id_, own) for id_, own in zip(ids, special, strict=True))
        return Tokens(name, tuple(ids), texts, special, tuple(id_ == self.specials.unknown for id_ in ids))

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out."""
        return str(self.library.decode(list(ids), skip_special_tokens=True))

    def _text(self, id_: int, special: bool) -> str:
        """The piece of text that an id stands for; one that the vocabulary does not know is its number."""
        token = self.library.id_to_token(id_)
        if token is None:
            return str(id_)
        if special:
            return token
        if self.byte_level and all(sign in BYTES for sign in token):
            return bytes(BYTES[sign] for sign in token).decode("utf-8", "backslashreplace")
        return token.replace(BLANK, " ")


def tokenizers_of(folder: Folder, spec: ForeignSpec) -> dict[str, Tokenizer]:
    """Tokenizers by strip. Where the folder has none that can be read, ids are typed and shown.

    Raises:
        DamagedFile: tokenizer.json cannot be read.
    """
    specials = Specials(spec.pad_id, spec.start_id, spec.end_id)
    source, target = spec.encoder or spec.writer, spec.decoder if spec.encoder else None
    if not (folder.path / TOKENIZER).is_file():
        both: dict[str, Tokenizer] = {"source": IdTokenizer(source.vocab, specials)}
        return both | ({"target": IdTokenizer(target.vocab, specials)} if target else {})
    library, byte_level, unknown = _read(folder.path / TOKENIZER)
    specials = replace(specials, unknown=unknown)
    found: dict[str, Tokenizer] = {"source": LibraryTokenizer(library, source.vocab, specials, byte_level)}
    if target:
        before = (*(() if spec.start_id is None else (spec.start_id,)), *spec.forced)
        found["target"] = LibraryTokenizer(library, target.vocab, specials, byte_level, before)
    return found


def _read(path: Path) -> tuple[Library, bool, int | None]:
    """The library's tokenizer, whether its tokens are bytes written as signs, and the id of its unknown token.

    It neither cuts nor pads a text, whatever the file says: a text that is too long is refused in words.
    """
    data = read_json(path)
    try:
        library = Library.from_file(str(path))
    except Exception as error:
        said = " ".join(str(error).split()[:30])
        raise DamagedFile(path=path, detail=f"the tokenizers library says: {said}") from error
    library.no_truncation()
    library.no_padding()
    model = data.get("model") or {}
    unknown = library.token_to_id(token) if isinstance(token := model.get("unk_token"), str) else model.get("unk_id")
    splits = json.dumps([data.get("pre_tokenizer"), data.get("decoder")])
    return library, '"ByteLevel"' in splits, unknown if type(unknown) is int else None
