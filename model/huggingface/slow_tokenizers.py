"""Slow tokenizers: for folders without tokenizer.json, the library's class that reads their vocabulary files."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.huggingface.folder import VOCABULARY_FILES, Folder, read_json


@dataclass(frozen=True)
class Slow:
    """An architecture's slow tokenizer.

    Attributes:
        classes: the library's classes; the first is the default.
        files: the files it needs.
    """

    classes: tuple[str, ...]
    files: tuple[str, ...]


TOLD = VOCABULARY_FILES[0]
"""The file that may name the class."""

RENAMED = {"MT5Tokenizer": "T5Tokenizer"}
"""Classes that the library has renamed."""

_WORD_PIECES = Slow(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), ("vocab.txt",))
_MERGES = ("vocab.json", "merges.txt")
_ROBERTA = Slow(("RobertaTokenizer", "BartTokenizer"), _MERGES)
_LLAMA = Slow(("LlamaTokenizer",), ("tokenizer.model",))
_T5 = Slow(("T5Tokenizer",), ("spiece.model",))
_QWEN = Slow(("Qwen2Tokenizer",), _MERGES)
_MULTILINGUAL = "sentencepiece.bpe.model"

SLOW: Mapping[str, Slow] = {
    "bert": _WORD_PIECES,
    "electra": _WORD_PIECES,
    "distilbert": _WORD_PIECES,
    "roberta": _ROBERTA,
    "bart": _ROBERTA,
    "xlm-roberta": Slow(("XLMRobertaTokenizer",), (_MULTILINGUAL,)),
    "camembert": Slow(("CamembertTokenizer",), (_MULTILINGUAL,)),
    "gpt2": Slow(("GPT2Tokenizer",), _MERGES),
    "opt": Slow(("GPT2Tokenizer",), _MERGES),
    "gpt_neox": Slow(("GPTNeoXTokenizer", "GPT2Tokenizer"), _MERGES),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _QWEN,
    "qwen3": _QWEN,
    "gemma": Slow(("GemmaTokenizer",), ("tokenizer.model",)),
    "t5": _T5,
    "mt5": _T5,
    "pegasus": Slow(("PegasusTokenizer",), ("spiece.model",)),
    "marian": Slow(("MarianTokenizer",), ("source.spm", "target.spm", "vocab.json")),
    "m2m_100": Slow(("M2M100Tokenizer",), (_MULTILINGUAL, "vocab.json")),
    "mbart": Slow(("MBartTokenizer", "MBart50Tokenizer"), (_MULTILINGUAL,)),
}
"""By the `model_type` of config.json."""


def rules_of(folder: Folder) -> dict[str, str] | None:
    """Arguments for the tokenizer process; None: files are missing, or the folder names an unsupported class.

    Raises:
        DamagedFile: tokenizer_config.json is not a JSON object.
    """
    slow, path = SLOW[folder.model_type], folder.path / TOLD
    told = (read_json(path) if path.is_file() else {}).get("tokenizer_class") or folder.config.get("tokenizer_class")
    asked = told.removesuffix("Fast") if isinstance(told, str) else slow.classes[0]
    name = RENAMED.get(asked, asked)
    there = all((folder.path / file).is_file() for file in slow.files)
    return {"folder": str(folder.path.resolve()), "class": name} if there and name in slow.classes else None


def needed(folder: Folder) -> str:
    """The files that are needed to read texts."""
    return " and ".join(SLOW[folder.model_type].files)
