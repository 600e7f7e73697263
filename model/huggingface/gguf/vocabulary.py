"""The tokenizer of a GGUF file as the text of a tokenizer.json, which the tokenizers library reads.

Sources: docs/gguf.md of ggml for the metadata, src/llama-vocab.cpp of llama.cpp for what their values mean: the patterns by
`tokenizer.ggml.pre` are those of the models' own tokenizer.json.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from model.safe_loading.gguf import ARCHITECTURE
from model.tokenizers.subwords.writing import BLANK

_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens: special ones, and texts that are never split."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SHORTENED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_AFTER = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _SHORTENED + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _AFTER
_QWEN2 = _SHORTENED + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _AFTER
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORTENED}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORTENED}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

PATTERNS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt-2", "gpt2", "mpt", "olmo", "jais", "phi-2", "roberta-bpe"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), (r"\p{N}", _GPT2)),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "dbrx", "smaug-bpe"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan"), (_QWEN2,)),
    "tekken": (_TEKKEN,),
    **dict.fromkeys(("gpt-4o", "llama4"), (_GPT4O,)),
}
"""Where byte-level tokenizers split a text before they merge, by `tokenizer.ggml.pre`: one pattern after the other."""

_WHOLE_WORDS = ("llama3", "llama-v3", "llama-bpe", "falcon3", "tekken")
"""Those that take a piece that is a token as it is, whatever the merges; all but the last begin a text with their own token."""


def tokenizer_json(settings: Mapping[str, Any]) -> str | None:
    """The text of a tokenizer.json.

    Args:
        settings: all settings of the file.

    Returns:
        None: the file has no vocabulary, or one of a kind that is not read here.
    """
    entries = {
        name.removeprefix("tokenizer.ggml."): value for name, value in settings.items() if name.startswith("tokenizer.ggml.")
    }
    tokens = entries.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return None
    # llama.cpp names a tokenizer by the first model that had it, and its pattern by `pre`
    match entries.get("model"):
        case "gpt2" if entries.get("pre") in PATTERNS and isinstance(entries.get("merges"), list):
            tokenizer = _byte_level(tokens, entries)
        case "llama":
            tokenizer = _sentence_pieces(tokens, entries, str(settings[ARCHITECTURE]).startswith("gemma"))
        case "bert":
            tokenizer = _word_pieces(tokens, entries)
        case _:
            return None
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, **tokenizer}, ensure_ascii=False)


def _byte_level(tokens: Sequence[str], entries: Mapping[str, Any]) -> dict[str, Any]:
    """Byte pair encoding of bytes, each written as one character."""
    pre = str(entries["pre"])
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} for pattern in PATTERNS[pre]
    ]
    as_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    begins = pre in _WHOLE_WORDS[:-1]
    merges = [merge.split(" ", 1) for merge in entries["merges"] if isinstance(merge, str)]
    return {
        "added_tokens": _added(tokens, entries),
        "normalizer": {"type": "NFC"} if pre in ("qwen2", "deepseek-r1-qwen") else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, as_bytes]},
        "post_processor": _around(tokens, entries, begins),
        "decoder": as_bytes,
        "model": _merging({token: id_ for id_, token in enumerate(tokens)}, merges, ignore_merges=pre in _WHOLE_WORDS),
    }


def _sentence_pieces(tokens: Sequence[str], entries: Mapping[str, Any], gemma: bool) -> dict[str, Any]:
    """SentencePiece's byte pair encoding, whose merges are all ways to make a token of two others, the best token first.

    Args:
        gemma: its scores say nothing; its tokens stand in the order in which they were merged, and runs of blanks as blanks.
    """
    # Gemma has tokens of several blanks, which the file writes as blanks
    pieces = [BLANK * len(token) if gemma and token and not token.strip(" ") else token for token in tokens]
    vocab = {piece: id_ for id_, piece in enumerate(pieces)}
    scores = entries.get("scores")
    ranked = not gemma and isinstance(scores, list) and len(scores) == len(tokens)
    # without scores, an earlier token is a better one
    ranks = dict(zip(pieces, scores if ranked and scores else range(0, -len(pieces), -1), strict=True))
    spaced = bool(entries.get("add_space_prefix", not gemma))
    prefix = [{"type": "Prepend", "prepend": BLANK}] if spaced else []
    blanks = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
    back = [{"type": "Replace", "pattern": {"String": BLANK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if spaced else []
    unknown = _token(tokens, entries.get("unknown_token_id", 0))
    return {
        "added_tokens": _added(pieces, entries),
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, blanks]},
        "pre_tokenizer": None,
        "post_processor": _around(pieces, entries, begins=True),
        "decoder": {"type": "Sequence", "decoders": [*back, *strip]},
        "model": _merging(vocab, _merges(vocab, ranks), unk_token=unknown, fuse_unk=True, byte_fallback=True),
    }


def _word_pieces(tokens: Sequence[str], entries: Mapping[str, Any]) -> dict[str, Any]:
    """BERT's word pieces. llama.cpp marks the beginnings of words, BERT the other pieces."""
    control = {id_ for id_, kind in enumerate(entries.get("token_type") or ()) if kind == _CONTROL}
    special = control | {id_ for id_, token in enumerate(tokens) if token.startswith("[") and token.endswith("]")}
    pieces = [
        token if id_ in special else token.removeprefix(BLANK) if token.startswith(BLANK) else f"##{token}"
        for id_, token in enumerate(tokens)
    ]
    # a vocabulary without capitals belongs to an uncased model
    lower = not any(piece != piece.lower() for id_, piece in enumerate(pieces) if id_ not in special)
    return {
        "added_tokens": [_as_added(id_, tokens[id_], special=True) for id_ in sorted(special)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _around(pieces, {"eos_token_id": entries.get("seperator_token_id"), **entries}, begins=True, ends=True),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": _token(pieces, entries.get("unknown_token_id")) or "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: id_ for id_, piece in enumerate(pieces)},
        },
    }


def _merging(vocab: Mapping[str, int], merges: Sequence[Sequence[str]], **different: Any) -> dict[str, Any]:
    """A model of byte pair encoding."""
    usual = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False}
    flags = {"byte_fallback": False, "ignore_merges": False}
    return {"type": "BPE", **usual, **flags, **different, "vocab": vocab, "merges": merges}


def _merges(vocab: Mapping[str, int], ranks: Mapping[str, float]) -> list[tuple[str, str]]:
    """All pairs of tokens that make a token: the highest rank first, then longer parts, then the order of the vocabulary."""
    pairs = list[tuple[float, int, int, int, int, str, str]]()
    for token, rank in ranks.items():
        # the file lists no merges: each way to cut a token into two others is one
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab:
                pairs.append((-rank, -len(left), -len(right), vocab[left], vocab[right], left, right))
    return [(left, right) for *_, left, right in sorted(pairs)]


def _added(tokens: Sequence[str], entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tokens that are found in a text before it is split: special ones, and those that a user has defined."""
    types: Iterable[Any] = entries.get("token_type") or ()
    return [
        _as_added(id_, token, special=kind == _CONTROL)
        for id_, (token, kind) in enumerate(zip(tokens, types, strict=False))
        if token and (kind == _CONTROL or (kind == _USER_DEFINED and token.strip(BLANK)))
    ]


def _as_added(id_: int, token: str, special: bool) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return {"id": id_, "content": token, **flags}


def _around(tokens: Sequence[str], entries: Mapping[str, Any], begins: bool, ends: bool = False) -> dict[str, Any] | None:
    """The tokens before and after every text; None: there are none.

    Args:
        begins, ends: whether there are any where the file does not say.
    """
    parts = [
        (entries.get("add_bos_token", begins), entries.get("bos_token_id")),
        (entries.get("add_eos_token", ends) or entries.get("add_sep_token", False), entries.get("eos_token_id")),
    ]
    first, last = ([(_token(tokens, id_), id_)] if asked and _token(tokens, id_) else [] for asked, id_ in parts)
    if not first and not last:
        return None
    text = {"Sequence": {"id": "A", "type_id": 0}}
    single = [*({"SpecialToken": {"id": name, "type_id": 0}} for name, _ in first), text]
    single += [{"SpecialToken": {"id": name, "type_id": 0}} for name, _ in last]
    special = {name: {"id": name, "ids": [id_], "tokens": [name]} for name, id_ in (*first, *last)}
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, text], "special_tokens": special}


def _token(tokens: Sequence[str], id_: Any) -> str | None:
    """The text of an id, if there is such an id."""
    return tokens[id_] if type(id_) is int and 0 <= id_ < len(tokens) else None
