"""Tokenizer of a Hugging Face folder, as a Tokenizer of ours: each token is shown as its text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from model.errors import BadChat, EmptyText, HeadlightError, NoTokenizer, Phrase, TokenWithoutRow, phrase
from model.huggingface.chat_templates import template_of
from model.huggingface.folder import TOKENIZER, VOCABULARY_FILES, Folder, read_json
from model.requests.external import ForeignSpec
from model.requests.inputs import Chat
from model.tokenizers.chat import NO_TEMPLATE, ChatTemplate, Rendered
from model.tokenizers.subwords.process import Cut, TokenizerProcess
from model.tokenizers.subwords.writing import written
from model.tokenizers.vocabulary import IdTokenizer, Specials
from model.tokenizers.words import Tokenizer, check_ids
from model.trace.types import Tokens


@dataclass(frozen=True)
class SlowTokenizer:
    """An architecture's slow tokenizer.

    Attributes:
        classes: the library's classes; the first is the default.
        files: the files it needs.
    """

    classes: tuple[str, ...]
    files: tuple[str, ...]


TOKENIZER_CONFIG = VOCABULARY_FILES[0]
"""The file that may name the class."""

RENAMED = {"MT5Tokenizer": "T5Tokenizer"}
"""Classes that the library has renamed."""

_WORD_PIECES = SlowTokenizer(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), ("vocab.txt",))
_MERGES = ("vocab.json", "merges.txt")
_ROBERTA = SlowTokenizer(("RobertaTokenizer", "BartTokenizer"), _MERGES)
_LLAMA = SlowTokenizer(("LlamaTokenizer",), ("tokenizer.model",))
_T5 = SlowTokenizer(("T5Tokenizer",), ("spiece.model",))
_QWEN = SlowTokenizer(("Qwen2Tokenizer",), _MERGES)
_MULTILINGUAL = "sentencepiece.bpe.model"

SLOW_TOKENIZERS: Mapping[str, SlowTokenizer] = {
    "bert": _WORD_PIECES,
    "electra": _WORD_PIECES,
    "distilbert": _WORD_PIECES,
    "roberta": _ROBERTA,
    "bart": _ROBERTA,
    "xlm-roberta": SlowTokenizer(("XLMRobertaTokenizer",), (_MULTILINGUAL,)),
    "camembert": SlowTokenizer(("CamembertTokenizer",), (_MULTILINGUAL,)),
    "gpt2": SlowTokenizer(("GPT2Tokenizer",), _MERGES),
    "opt": SlowTokenizer(("GPT2Tokenizer",), _MERGES),
    "gpt_neox": SlowTokenizer(("GPTNeoXTokenizer", "GPT2Tokenizer"), _MERGES),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _QWEN,
    "qwen3": _QWEN,
    "gemma": SlowTokenizer(("GemmaTokenizer",), ("tokenizer.model",)),
    "t5": _T5,
    "mt5": _T5,
    "pegasus": SlowTokenizer(("PegasusTokenizer",), ("spiece.model",)),
    "marian": SlowTokenizer(("MarianTokenizer",), ("source.spm", "target.spm", "vocab.json")),
    "m2m_100": SlowTokenizer(("M2M100Tokenizer",), (_MULTILINGUAL, "vocab.json")),
    "mbart": SlowTokenizer(("MBartTokenizer", "MBart50Tokenizer"), (_MULTILINGUAL,)),
}
"""By the `model_type` of config.json."""


def slow_rules_of(folder: Folder) -> dict[str, str] | None:
    """Arguments for the tokenizer process; None: files are missing, or the folder names an unsupported class.

    Raises:
        DamagedFile: tokenizer_config.json is not a JSON object.
    """
    slow, path = SLOW_TOKENIZERS.get(folder.model_type), folder.path / TOKENIZER_CONFIG
    if slow is None:
        return None
    named = (read_json(path) if path.is_file() else {}).get("tokenizer_class") or folder.config.get("tokenizer_class")
    asked = named.removesuffix("Fast") if isinstance(named, str) else slow.classes[0]
    name = RENAMED.get(asked, asked)
    complete = all((folder.path / file).is_file() for file in slow.files)
    return {"folder": str(folder.path.resolve()), "class": name} if complete and name in slow.classes else None


def vocabulary_files_of(folder: Folder) -> str:
    """The files that are needed to read texts without tokenizer.json; empty: no others are read."""
    slow = SLOW_TOKENIZERS.get(folder.model_type)
    return ", ".join(slow.files) if slow else ""


@dataclass(frozen=True)
class LibraryTokenizer:
    """An external tokenizer, which runs in its own process.

    Attributes:
        process: splits texts.
        size: ids of the network's embedding; the vocabulary may have fewer.
        specials: special ids that the library does not know.
        before: for targets: the ids that decoding begins with.
        template: of a language model: what makes a prompt of a conversation; None: there is none.
    """

    process: TokenizerProcess
    size: int
    specials: Specials
    before: tuple[int, ...] = ()
    template: ChatTemplate | None = None

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that stand for no text."""
        ids = (self.specials.pad, self.specials.start, self.specials.end, *self.before)
        return self.process.special.union(id_ for id_ in ids if id_ is not None)

    @property
    def ends(self) -> bool:
        """Whether a typed target gets an end token."""
        return bool(self.before) and self.specials.end is not None

    def encode(self, text: str, name: str) -> Tokens:
        """The strip of a text with the tokenizer's special tokens; a target starts with `before`.

        Raises:
            EmptyText: the text is blank.
            TokenWithoutRow: the network lacks one of its tokens.
            TooManyTokens, TokenizerFailed: the tokenizer exceeded its limits.
        """
        if not text.strip():
            raise EmptyText(strip=name)
        cut = self.process.encode(text, name)
        self._check_rows(cut)
        ids = self._as_target(cut.ids) if self.before else cut.ids
        strip = self.tokens(ids, name)
        # a typed target ends with other tokens than its text, so its texts are those of the vocabulary
        if self.before:
            return strip
        return cut.keep_unknown(strip)

    def render(self, chat: Chat, name: str) -> Rendered:
        """The strip of a conversation, up to where the reply begins.

        Raises:
            BadChat: there is no template, or it refuses the conversation.
            TooManyTokens, TokenizerFailed: template or tokenizer exceeded their limits.
        """
        if self.template is None:
            raise BadChat(reason=NO_TEMPLATE)
        cut, text, starts = self.process.encode_chat(chat, self.template)
        self._check_rows(cut)
        return Rendered(cut.keep_unknown(self.tokens(cut.ids, name)), text, starts, self.template.fingerprint)

    def _check_rows(self, cut: Cut) -> None:
        """Refuses a token that the tokenizer makes of a text and the network has no row for.

        Raises:
            TokenWithoutRow: there is one.
        """
        for id_, typed in zip(cut.ids, cut.typed, strict=True):
            if id_ >= self.size:
                raise TokenWithoutRow(token=typed or str(id_), found=id_, last=self.size - 1)

    def _as_target(self, ids: Sequence[int]) -> list[int]:
        """The decoder's input for a text: the beginning, the text, the end token.

        Drops the source language's token and the end token that the template adds.
        """
        # special tokens around the text are replaced by those that this decoder begins and ends with
        words = [id_ for id_ in ids if id_ not in self.special_ids or id_ == self.specials.unknown]
        # NLLB and mBART put the target's language first: it is forced by `before`, or taken from the text
        first = [] if len(self.before) > 1 or not ids or ids[0] not in self.special_ids else [ids[0]]
        return [*self.before, *first, *words, *([] if self.specials.end is None else [self.specials.end])]

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of given ids.

        Raises:
            TokenOutOfRange: the network has no such id.
        """
        check_ids(name, ids, self.size)
        special = tuple(id_ in self.special_ids and id_ != self.specials.unknown for id_ in ids)
        texts = tuple(self._text(id_, is_special) for id_, is_special in zip(ids, special, strict=True))
        return Tokens(name, tuple(ids), texts, special, tuple(id_ == self.specials.unknown for id_ in ids))

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out.

        Raises:
            TokenizerFailed: the tokenizer exceeded its limits.
        """
        return self.process.decode(ids)

    def _text(self, id_: int, special: bool) -> str:
        """The text of an id; an id outside the vocabulary is shown as a number."""
        token = self.process.tokens.get(id_)
        if token is None:
            return str(id_)
        if special:
            return token
        return written(token, self.process.byte_level)


@dataclass(frozen=True)
class FolderIds(IdTokenizer):
    """Ids of a folder without a supported tokenizer.

    Attributes:
        needed: files that are needed to read texts.
    """

    needed: str = TOKENIZER

    def refusal(self, text: str, name: str) -> HeadlightError:
        """Why a text cannot be read."""
        return NoTokenizer(strip=name, found=text, needed=self.needed)


def tokenizers_of(folder: Folder, spec: ForeignSpec) -> dict[str, Tokenizer]:
    """Tokenizers by strip. Without a supported tokenizer, ids are typed and shown.

    Raises:
        DamagedFile, TokenizerFailed: the tokenizer cannot be read, or exceeds its limits.
    """
    specials = Specials(spec.pad_id, spec.start_id, spec.end_id)
    source, target = spec.encoder or spec.writer, spec.decoder if spec.encoder else None
    # without a vocabulary that is read here, ids are typed and shown
    if (process := _start_process(folder, max(stack.vocab for stack in spec.stacks.values()))) is None:
        needed = f"{TOKENIZER}, or {slow}" if (slow := vocabulary_files_of(folder)) else TOKENIZER
        both: dict[str, Tokenizer] = {"source": FolderIds(source.vocab, specials, needed)}
        return both | ({"target": FolderIds(target.vocab, specials, needed)} if target else {})
    specials = replace(specials, unknown=process.unknown)
    # only language models continue a conversation
    template = template_of(folder, process) if spec.encoder is None else None
    tokenizers: dict[str, Tokenizer] = {"source": LibraryTokenizer(process, source.vocab, specials, template=template)}
    if target:
        before = (*(() if spec.start_id is None else (spec.start_id,)), *spec.forced)
        tokenizers["target"] = LibraryTokenizer(process, target.vocab, specials, before)
    return tokenizers


def notes(folder: Folder, tokenizers: Mapping[str, Tokenizer]) -> tuple[Phrase, ...]:
    """A sentence about ids that may differ from the library's; empty: they are the same."""
    process = next((reader.process for reader in tokenizers.values() if isinstance(reader, LibraryTokenizer)), None)
    if process is None or folder.vocabulary.name != TOKENIZER:
        return ()
    if process.failure:
        return (
            phrase(
                "Texts are tokenized by {name} alone, because the library cannot read the files beside it, which may change ids: "
                "{failure}.",
                name=TOKENIZER,
                failure=process.failure,
            ),
        )
    if folder.settles_ids:
        return ()
    return (
        phrase(
            "Texts are tokenized by {name} alone. Without {missing} the library would use the defaults of its class for "
            "{model_type}, with which ids may differ.",
            name=TOKENIZER,
            missing=VOCABULARY_FILES[0],
            model_type=folder.model_type,
        ),
    )


def _start_process(folder: Folder, size: int) -> TokenizerProcess | None:
    if (rules := folder.rules) is not None:
        return TokenizerProcess(folder.vocabulary, rules, size)
    slow = slow_rules_of(folder) if folder.path.is_dir() else None
    return None if slow is None else TokenizerProcess(folder.path.resolve(), slow, size)
