"""Vocabulary files of other programs: lists and tables of texts, and tokenizers that split words into pieces."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from model.errors import BadSetting, CheckpointError, DamagedFile, DoesNotFit, phrase
from model.safe_loading.file_type import ZIP
from model.safe_loading.sandbox_process import read_pickled_vocabulary
from model.tokenizers.subwords.process import TokenizerProcess
from model.tokenizers.subwords.tokenizer import Subwords
from model.tokenizers.subwords.writing import BYTES

LONGEST = 2**26
"""Most bytes in a vocabulary file."""

MOST_IDS = 2**22
"""Most entries in a vocabulary."""

PIECES = (".model", ".spm")
"""File name extensions of SentencePiece models."""

MERGES = "merges.txt"
"""File with the joins of a byte pair encoding, which lies beside its vocabulary."""

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
"""Texts of the first four ids in fairseq, which are not in its dictionary files."""

_FORMS = (
    "a JSON list of texts, a JSON object token -> id or id -> token, one token a line, a SentencePiece model, a tokenizer.json, "
    "or a vocab.json with its merges.txt"
)
_NO_TEXTS = (
    "a text file, or a pickle with a list `itos` or a table `stoi`: nothing in a pickle is executed here, and no vocabulary was "
    "found in this one. Write its texts as JSON: json.dump(vocab.get_itos(), file)"
)
_NO_MERGES = (
    "given together with its merges.txt (beside it, or both uploaded), or as tokenizer.json: it holds byte pairs, and not how they "
    "are joined"
)
_MERGES_ALONE = (
    "given together with its vocab.json (name that file, or upload both): it holds how byte pairs are joined, and not their ids"
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    strip: tuple(f"{word}{end}" for word in words for end in ("", "_itos", "_stoi", "_vocab"))
    for strip, words in {"source": ("source", "src"), "target": ("target", "trg", "tgt")}.items()
}
_WHOLE = ("itos", "stoi", "vocab", "vocabulary")
_COUNTED = re.compile(r"(\S+)[ \t]+-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def read_vocabulary(path: Path, name: str) -> tuple[str, ...]:
    """Reads a vocabulary file.

    Args:
        name: name of the setting that gave the path, for errors.

    Raises:
        BadSetting: the file cannot be read, or has none of the known forms.
        TokenizerFailed: the foreign tokenizer in it went beyond its limits.
    """
    try:
        if path.stat().st_size > LONGEST:
            raise DoesNotFit(name=name, reason=phrase("{path} has more than {most:,} bytes", path=path, most=LONGEST))
        content, beside = path.read_bytes(), path.with_name(MERGES)
        merges = beside.read_bytes() if path.suffix == ".json" and beside.is_file() else None
    except OSError as error:
        raise _unreadable(str(path), name, error) from error
    return vocabulary_in(content, str(path), name, merges)


def vocabulary_in(content: bytes, path: str, name: str, merges: bytes | None = None) -> tuple[str, ...]:
    """Reads a vocabulary from the bytes of its file; also from the tokenizer.json of a checkpoint folder of our own.

    Args:
        path: name of the file, for errors.
        name: name of the setting that gave it, for errors.
        merges: bytes of the merges.txt beside it, if there is one.

    Returns:
        The texts by id; Subwords where the file holds a tokenizer that splits words into pieces.

    Raises:
        BadSetting, TokenizerFailed: as for `read_vocabulary`.
    """
    if PurePath(path).suffix.lower() in PIECES:
        return _subwords({"pieces": base64.b64encode(content).decode()}, path, name)
    if is_pickled(content):
        return _texts_of_pickle(content, path, name)
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        joins = None if merges is None else merges.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _unreadable(path, name, error) from error
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _texts_of_lines(text.removesuffix("\n").split("\n"), path, name)
    return _texts_of_json(data, text, path, name, joins)


def is_pickled(content: bytes) -> bool:
    """Whether the bytes are a pickle, or an archive that torch.save may have written."""
    return content[:1] == b"\x80" or content.startswith(ZIP)


def holds_pickled_vocabulary(content: bytes, path: str) -> bool:
    """Whether the bytes are a pickle with a vocabulary of a known form, and nothing unsafe. Nothing in it is executed."""
    try:
        return is_pickled(content) and read_pickled_vocabulary(content, path) is not None
    except CheckpointError:
        return False


def _texts_of_pickle(content: bytes, path: str, name: str) -> tuple[str, ...]:
    """The texts in a pickle, which the sandbox reads without executing anything."""
    try:
        data = read_pickled_vocabulary(content, path)
    except CheckpointError as error:
        raise BadSetting(name=name, found=path, allowed=_NO_TEXTS) from error
    if (texts := _listed_texts(_part(data, name.removesuffix("_vocab")))) is None:
        raise BadSetting(name=name, found=path, allowed=_NO_TEXTS)
    # the texts of byte-level pieces do not say in which order they are joined
    if set(BYTES) <= set(texts):
        raise BadSetting(name=name, found=path, allowed=_NO_MERGES)
    return texts


def _texts_of_lines(lines: list[str], path: str, name: str) -> tuple[str, ...]:
    if lines[0].startswith("#version:") or PurePath(path).name == MERGES:
        raise BadSetting(name=name, found=path, allowed=_MERGES_ALONE)
    if "[UNK]" in lines and any(line.startswith("##") for line in lines):
        return _subwords({"rules": json.dumps(_word_pieces(lines))}, path, name)
    counted = [_COUNTED.fullmatch(line) for line in lines]
    texts = tuple(match[1] for match in counted if match)
    if len(texts) < len(lines):
        return tuple(lines)
    # fairseq's dict.txt leaves out the four special tokens that come first
    fairseq = re.fullmatch(r"dict(\.[\w-]+)?\.txt", PurePath(path).name) and not set(FAIRSEQ) & set(texts)
    return (*FAIRSEQ, *texts) if fairseq else texts


def _texts_of_json(data: Any, content: str, path: str, name: str, merges: str | None) -> tuple[str, ...]:
    if isinstance(data, Mapping) and isinstance(data.get("model"), Mapping):
        return _subwords({"rules": content}, path, name)
    if (texts := _listed_texts(_part(data, name.removesuffix("_vocab")))) is None:
        raise BadSetting(name=name, found=path, allowed=_FORMS)
    if not set(BYTES) <= set(texts):
        return texts
    if merges is None:
        raise BadSetting(name=name, found=path, allowed=_NO_MERGES)
    return _subwords({"rules": json.dumps(_byte_pairs(texts, merges))}, path, name)


def _part(data: Any, strip: str) -> Any:
    """The part of a file with two vocabularies that belongs to one strip."""
    # into the part for this strip, then into what wraps its list
    while isinstance(data, Mapping):
        names = _NAMES.get(strip, (strip,)) + _WHOLE
        inner = next((data[key] for key in names if isinstance(data.get(key), Mapping | list)), None)
        if inner is None:
            break
        data = inner
    return data


def _listed_texts(data: Any) -> tuple[str, ...] | None:
    """The texts in a list, in a table token -> id, or in a table id -> token; None: it is none of these, or an id is missing."""
    if isinstance(data, list) and all(isinstance(text, str) for text in data):
        return tuple(data)
    if not isinstance(data, Mapping):
        return None
    # token -> id, unless every key is a number and every value a text
    by_id: dict[Any, Any] = {id_: text for text, id_ in data.items() if type(id_) in (int, str)}
    if all(isinstance(text, str) for text in data.values()) and all(re.fullmatch(r"0|[1-9]\d{0,8}", id_) for id_ in data):
        by_id = {int(id_): text for id_, text in data.items()}
    known = len(by_id) == len(data) and all(type(id_) is int for id_ in by_id) and sorted(by_id) == list(range(len(by_id)))
    return tuple(by_id[id_] for id_ in range(len(by_id))) if known else None


def _subwords(rules: Mapping[str, Any], path: str, name: str) -> Subwords:
    try:
        return Subwords.of(TokenizerProcess(path, rules, MOST_IDS))
    except DamagedFile as error:
        raise DoesNotFit(
            name=name,
            reason=phrase("{path} is not a tokenizer that can be read: {reason}", path=path, reason=error.fields["detail"]),
        ) from error


def _word_pieces(lines: list[str]) -> dict[str, Any]:
    """A BERT tokenizer.json for a vocabulary. It lower-cases texts where no piece of the vocabulary has a capital letter."""
    # as BERT's uncased models
    lower = all(line == line.lower() for line in lines if not line.startswith("["))
    ids = {text: id_ for id_, text in enumerate(lines)}
    normalizer = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": lower}
    return {
        "version": "1.0",
        "normalizer": {"type": "BertNormalizer", **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def _byte_pairs(texts: tuple[str, ...], merges: str) -> dict[str, Any]:
    """A GPT-2 tokenizer.json for a vocabulary and its joins."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    joins = [line for line in merges.split("\n") if line and not line.startswith("#version")]
    ids = {text: id_ for id_, text in enumerate(texts)}
    return {
        "version": "1.0",
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": ids, "merges": joins},
    }


def _unreadable(path: str, name: str, error: Exception) -> BadSetting:
    return DoesNotFit(
        name=name, reason=phrase("{path} is not a text file that can be read ({error})", path=path, error=type(error).__name__)
    )
