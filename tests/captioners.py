"""Small captioners with random weights, beside the library's image processor and a tokenizer."""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

WORDS = "[PAD] [UNK] [START] [END] a the house tree sun cloud stands under beside is red green and on hill with".split()
PAD, START, END = WORDS.index("[PAD]"), WORDS.index("[START]"), WORDS.index("[END]")

_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 32,
    "patch_size": 8,
}
_TEXT = {
    "vocab_size": len(WORDS),
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 24,
}
_GPT2 = {
    "vocab_size": len(WORDS),
    "n_embd": 24,
    "n_layer": 3,
    "n_head": 3,
    "n_positions": 24,
    "bos_token_id": START,
    "eos_token_id": END,
}
_TROCR = {
    "vocab_size": len(WORDS),
    "d_model": 24,
    "decoder_layers": 3,
    "decoder_attention_heads": 3,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 24,
    "cross_attention_hidden_size": 32,
}

CAPTIONERS = ("vit-gpt2", "dinov2-bert", "trocr", "blip")


def _config(name: str) -> Any:
    import transformers as library

    if name == "blip":
        text = _TEXT | {
            "bos_token_id": START,
            "sep_token_id": END,
            "pad_token_id": PAD,
            "eos_token_id": 9,
            "encoder_hidden_size": 32,
        }
        return library.BlipConfig(text_config=text, vision_config=_VISION, projection_dim=8)
    decoding = {"is_decoder": True, "add_cross_attention": True}
    encoder, decoder = {
        "vit-gpt2": lambda: (library.ViTConfig(**_VISION), library.GPT2Config(**_GPT2, **decoding)),
        "dinov2-bert": lambda: (library.Dinov2WithRegistersConfig(**_VISION), library.BertConfig(**_TEXT, **decoding)),
        "trocr": lambda: (library.DeiTConfig(**_VISION), library.TrOCRConfig(**_TROCR, **decoding)),
    }[name]()
    found = library.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    found.decoder_start_token_id, found.pad_token_id, found.eos_token_id = START, PAD, END
    return found


def processor(name: str) -> Any:
    """The library's own image processor of a captioner."""
    kind, class_name = {"blip": ("blip", "Blip"), "trocr": ("deit", "DeiT"), "dinov2-bert": ("bit", "Bit")}.get(
        name, ("vit", "ViT")
    )
    library: Any = import_module(f"transformers.models.{kind}.image_processing_pil_{kind}")
    more = {"do_center_crop": False} if kind in ("deit", "bit") else {}
    return getattr(library, f"{class_name}ImageProcessorPil")(size={"height": 32, "width": 32}, **more)


def tokenizer() -> Tokenizer:
    """A tokenizer of whole words."""
    made = Tokenizer(models.WordLevel({word: id_ for id_, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(WORDS[:4])
    return made


def network(name: str) -> Any:
    """A captioner of the library's own class, with eager attention, wide enough that no two heads look alike."""
    import transformers as library

    torch.manual_seed(3)
    kind = library.BlipForConditionalGeneration if name == "blip" else library.VisionEncoderDecoderModel
    made = kind._from_config(_config(name), attn_implementation="eager").eval()
    with torch.no_grad():
        for title, parameter in made.named_parameters():  # positions weigh most, else one word is written again and again
            places = any(part in title for part in ("wpe", "embed_positions", "embeddings.position_embeddings.weight"))
            parameter.add_(torch.randn_like(parameter) * (1.5 if places else 0.15))
    return made


def saved_captioner(folder: Path, name: str) -> Any:
    """A folder as the library saves a captioner, its processor and its tokenizer; the network that was saved."""
    made = network(name)
    made.save_pretrained(folder)
    processor(name).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    return made
