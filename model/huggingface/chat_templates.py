"""The chat template of a Hugging Face folder or GGUF file, and the sampling that its authors set."""

from collections.abc import Mapping
from typing import Any

from model.errors import Phrase, phrase
from model.huggingface.folder import VOCABULARY_FILES, Folder, read_json
from model.huggingface.gguf.folder import GgufFolder
from model.requests.request import Decoding
from model.tokenizers.chat import ChatTemplate
from model.tokenizers.subwords.limits import MAX_TEMPLATE
from model.tokenizers.subwords.process import TokenizerProcess

OWN_FILE = "chat_template.jinja"
"""A file of the template alone; it comes before one in the tokenizer's settings."""

IN_GGUF = "tokenizer.chat_template"

SPECIALS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Special tokens that a template may write, by the library's names."""


def template_of(folder: Folder, process: TokenizerProcess) -> ChatTemplate | None:
    """The chat template of a folder; None: it has none, or one that is too long.

    Raises:
        DamagedFile: the file that may hold it cannot be read.
    """
    source, settings = _template_text(folder), _tokenizer_settings(folder)
    if source is None or too_long(source):
        return None
    # the tokenizer's settings name special tokens by their texts, config.json by their ids: texts win
    by_id = {name: folder.config.get(f"{name}_id") for name in SPECIALS}
    texts = {name: process.tokens.get(id_) for name, id_ in by_id.items() if type(id_) is int}
    texts |= {name: text for name in SPECIALS if (text := _token_text(settings.get(name))) is not None}
    return ChatTemplate(source, tuple((name, text) for name, text in texts.items() if text is not None))


def too_long(source: str) -> bool:
    """Whether a template is longer than one that is rendered."""
    return len(source) > MAX_TEMPLATE


def note(folder: Folder) -> tuple[Phrase, ...]:
    """A sentence about a chat template that is not used; empty: there is none."""
    if (source := _template_text(folder)) is None or not too_long(source):
        return ()
    counts = {"found": len(source), "most": MAX_TEMPLATE}
    return (
        phrase(
            "Its chat template has {found:,} characters, and at most {most:,} are used: the model continues a text instead.",
            **counts,
        ),
    )


def sampling_of(folder: Folder) -> Decoding | None:
    """How the authors have the model sample, by generation_config.json; None: they say nothing, or that it does not sample.

    What they leave out is as the library has it: temperature 1, top k 50, top p 1. Values that no run takes count as left out.
    """
    settings = folder.generation
    if settings.get("do_sample") is not True:
        return None

    def number(name: str, default: float, lowest: float, highest: float) -> float:
        value = settings.get(name)
        fits = isinstance(value, int | float) and not isinstance(value, bool) and lowest <= value <= highest
        return float(value) if fits and value is not None else default

    return Decoding(
        "sample",
        temperature=number("temperature", 1.0, 0.01, 10),
        top_k=int(number("top_k", 50, 0, 1_000_000)),
        top_p=number("top_p", 1.0, 0.01, 1),
    )


def _template_text(folder: Folder) -> str | None:
    """The text of the template; of several, the one called `default`."""
    if isinstance(folder, GgufFolder):
        template: Any = folder.file.header.settings.get(IN_GGUF)
    elif (file := folder.path / OWN_FILE).is_file():
        with file.open(encoding="utf-8", errors="replace") as opened:
            template = opened.read(MAX_TEMPLATE + 1)
    else:
        template = _tokenizer_settings(folder).get("chat_template")
    if isinstance(template, list):
        # a model for tools has several templates
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, Mapping)}
        template = named.get("default")
    return template if isinstance(template, str) and template.strip() else None


def _tokenizer_settings(folder: Folder) -> Mapping[str, Any]:
    """The settings of the tokenizer, with the special tokens of older folders."""
    if isinstance(folder, GgufFolder):
        return {}
    files = [folder.path / name for name in reversed(VOCABULARY_FILES[:2])]
    return {name: value for file in files if file.is_file() for name, value in read_json(file).items()}


def _token_text(token: object) -> str | None:
    """The text of a special token, which is a string or an object with one."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else None
