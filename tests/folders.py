"""Tiny folders of the transformers library with random weights, made of its real configuration classes, for tests.

The networks are drawn wide enough that no two heads look alike, and so that a map at the wrong place is noticed.
"""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn

from model.huggingface.families import FAMILIES

WORDS = "the a dog dogs play ##s in snow two un ##known . ,".split()
VOCAB = 40

_ONE = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 20}
_READER = _ONE | {"intermediate_size": 30, "pad_token_id": 1}
_ROTATING = _ONE | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 30, "eos_token_id": 3}
_TRANSLATOR = {
    "vocab_size": VOCAB,
    "d_model": 24,
    "encoder_layers": 3,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 28,
    "max_position_embeddings": 20,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
_RELATIVE = {
    "vocab_size": VOCAB,
    "d_model": 24,
    "d_kv": 6,
    "d_ff": 30,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
}

SETTINGS: dict[str, dict[str, Any]] = {
    "bert": _READER,
    "electra": _READER | {"embedding_size": 24},
    "roberta": _READER | {"max_position_embeddings": 22},
    "xlm-roberta": _READER | {"max_position_embeddings": 22},
    "camembert": _READER | {"max_position_embeddings": 22},
    "distilbert": {"vocab_size": VOCAB, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 30, "max_position_embeddings": 20},
    "gpt2": {"vocab_size": VOCAB, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 20, "bos_token_id": 3, "eos_token_id": 3},
    "opt": _ONE | {"ffn_dim": 30, "word_embed_proj_dim": 24, "pad_token_id": 1, "eos_token_id": 3, "bos_token_id": 3},
    "gpt_neox": _ONE | {"intermediate_size": 30, "eos_token_id": 3, "bos_token_id": 3, "rotary_pct": 0.5},
    "llama": _ROTATING,
    "mistral": _ROTATING | {"sliding_window": 4},
    "qwen2": _ROTATING,
    "qwen3": _ROTATING,
    "gemma": _ROTATING | {"pad_token_id": 0},
    "t5": _RELATIVE,
    "mt5": _RELATIVE,
    "marian": _TRANSLATOR | {"pad_token_id": 39, "decoder_start_token_id": 39, "eos_token_id": 0, "decoder_vocab_size": VOCAB},
    "pegasus": _TRANSLATOR | {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1},
    "m2m_100": _TRANSLATOR | {"forced_bos_token_id": 7},
    "bart": _TRANSLATOR,
    "mbart": _TRANSLATOR | {"decoder_start_token_id": 5},
}
"""A network of each family; unequal depths, and other heads in the encoder than in the decoder, where the family can."""


def network(model_type: str, **changes: Any) -> nn.Module:
    """A network of the library's own class, with eager attention, as the library runs it."""
    from model.huggingface import library  # takes seconds: the words of these folders are used without it

    torch.manual_seed(5)
    config = library.config_of(model_type, SETTINGS[model_type] | changes)
    made = library.CLASSES[FAMILIES[model_type].kind]._model_mapping[type(config)]._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    if forced := SETTINGS[model_type].get("forced_bos_token_id"):
        made.generation_config.forced_bos_token_id = forced
    found: nn.Module = made.eval()
    return found


def save(folder: Path, model_type: str, **changes: Any) -> nn.Module:
    """A folder as the library saves it. Returns the network that was saved."""
    made = network(model_type, **changes)
    made.save_pretrained(folder)  # type: ignore[operator]  # untyped library
    return made


def change_config(folder: Path, **changes: Any) -> None:
    """Changes settings in config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def word_pieces() -> Tokenizer:
    """A tokenizer as BERT's: word pieces, [CLS] and [SEP] around a text; it would cut and pad texts if it were let."""
    texts = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", *WORDS]
    made = Tokenizer(models.WordPiece({text: id_ for id_, text in enumerate(texts)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made.add_special_tokens(["[UNK]", "[PAD]", "[CLS]", "[SEP]"])
    made.enable_truncation(4)
    made.enable_padding(length=12, pad_id=1, pad_token="[PAD]")
    return made


def byte_pairs() -> Tokenizer:
    """A tokenizer as GPT-2's: byte-level pairs, nothing added around a text."""
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: id_ for id_, text in enumerate(["Ġd", "Ġdo", "Ġdog", "<|end|>", *signs])}
    made = Tokenizer(models.BPE(vocabulary, [("Ġ", "d"), ("Ġd", "o"), ("Ġdo", "g")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>"])
    return made


def sentence_pieces(start: str = "", end: str = "</s>") -> Tokenizer:
    """A tokenizer as T5's or BART's: pieces that begin with ▁ where a word begins."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "▁dog", "s", "▁play", "▁", "d"]
    made = Tokenizer(models.Unigram([(piece, -float(len(pieces) - i)) for i, piece in enumerate(pieces)], unk_id=3))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    around = [(text, pieces.index(text)) for text in (start, end) if text]
    made.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}".strip(), special_tokens=around)
    made.add_special_tokens(["<s>", "<pad>", "</s>"])
    return made
