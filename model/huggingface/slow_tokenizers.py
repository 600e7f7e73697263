"""Slow tokenizers: for folders without tokenizer.json, the library's class that reads their vocabulary files."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.huggingface.folder import VOCABULARY_FILES, Folder, read_json


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


def rules_of(folder: Folder) -> dict[str, str] | None:
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
    there = all((folder.path / file).is_file() for file in slow.files)
    return {"folder": str(folder.path.resolve()), "class": name} if there and name in slow.classes else None


def needed(folder: Folder) -> str:
    """The files that are needed to read texts without tokenizer.json; empty: no others are read."""
    slow = SLOW_TOKENIZERS.get(folder.model_type)
    return ", ".join(slow.files) if slow else ""
