"""Held-out programs: networks that nobody here wrote, small and with random weights, and what each library gives as weights."""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.references import Reference, flagged, hooked, kept, softmaxes

Program: TypeAlias = Callable[[], tuple[nn.Module, Callable[[], object], Callable[[], Reference]]]
"""Makes a model, its call to be recorded, and its reference."""


def torch_transformer() -> Any:
    """nn.Transformer in evaluation: the encoder takes its fast path."""
    model = nn.Transformer(16, 4, 2, 2, 32, batch_first=True)
    source, target = torch.randn(2, 6, 16), torch.randn(2, 5, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(5)

    def call() -> object:
        return model(source, target, tgt_mask=mask)

    return model, call, lambda: flagged(model, call)


class ByHand(nn.Module):
    """Attention written with einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3, 16, 4, 8) / 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Also returns its weights."""
        q, k, v = torch.einsum("bnd,sdhe->sbnhe", x, self.qkv)
        weights = torch.einsum("bihe,bjhe->bhij", q, k).div(8**0.5).softmax(-1)
        return torch.einsum("bhij,bjhe->bihe", weights, v).flatten(2), weights


def by_hand() -> Any:
    """A hand-written einsum attention."""
    model, x = ByHand(), torch.randn(2, 6, 16)
    return model, lambda: model(x), lambda: [model(x)[1]]


def repair_torchvision() -> None:
    """Lets torchvision be imported where its compiled part does not fit this torch.

    Defines the names of operations that no model of attention calls.

    Raises:
        ImportError: it still cannot be imported.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    _LIBRARIES.append(library)
    for _attempt in range(20):
        try:
            import torchvision  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401

            return
        except RuntimeError as error:
            name = str(error).partition("torchvision::")[2].split()
            if not name:
                raise ImportError(str(error)) from error
            library.define(f"{name[0]}(Tensor x) -> Tensor")
            for module in [module for module in sys.modules if module.split(".")[0] == "torchvision"]:
                del sys.modules[module]


_LIBRARIES: list[torch.library.Library] = []


def torchvision_vit() -> Any:
    """torchvision's VisionTransformer."""
    repair_torchvision()
    from torchvision.models import VisionTransformer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model, x = VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5), torch.randn(2, 3, 32, 32)
    return model, lambda: model(x), lambda: flagged(model, lambda: model(x))


def torchvision_swin() -> Any:
    """torchvision's SwinTransformer: shifted windows in the batch."""
    repair_torchvision()
    from torchvision.models import SwinTransformer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model = SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=5)
    x = torch.randn(1, 3, 32, 32)
    return model, lambda: model(x), lambda: softmaxes(lambda: model(x))


def timm_model(name: str, **options: Any) -> Program:
    """A model of timm; the reference is its own path without fused kernels."""

    def make() -> Any:
        repair_torchvision()
        import timm  # type: ignore[import-not-found, import-untyped, unused-ignore]

        model = timm.create_model(name, num_classes=5, **options)
        size = options.get("img_size", 224)
        x = torch.randn(1, 3, size, size)

        def reference() -> Reference:
            for module in model.modules():
                if hasattr(module, "fused_attn"):
                    module.fused_attn = False
            found = hooked(model, lambda: model(x), lambda name, _module: name.endswith("attn_drop"))
            for module in model.modules():
                if hasattr(module, "fused_attn"):
                    module.fused_attn = True
            return found

        return model, lambda: model(x), reference

    return make


def x_transformers(**options: Any) -> Program:
    """An encoder-decoder of x-transformers; the reference is what `return_hiddens` gives."""

    def make() -> Any:
        from x_transformers import XTransformer  # type: ignore[import-not-found, import-untyped, unused-ignore]

        sizes = {"num_tokens": 20, "depth": 2, "heads": 4, "max_seq_len": 16, "attn_dim_head": 8}
        arguments = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in (sizes | options).items()}
        model = XTransformer(dim=32, **arguments).eval()
        source, target = torch.randint(0, 20, (2, 7)), torch.randint(0, 20, (2, 6))

        def run(found: list[Tensor] | None = None) -> object:
            memory, kept = model.encoder(source, return_embeddings=True, return_intermediates=True)
            out, more = model.decoder.net(target, context=memory, return_intermediates=True)
            if found is not None:
                found += [own.post_softmax_attn for own in (*kept.attn_intermediates, *more.attn_intermediates)]
            return out

        def reference() -> Reference:
            found: list[Tensor] = []
            flash = [(module, module.flash) for module in model.modules() if hasattr(module, "flash")]
            for module, _was in flash:
                module.flash = False
            run(found)
            for module, was in flash:
                module.flash = was
            return found

        return model, run, reference

    return make


def vit_pytorch(name: str, **options: Any) -> Program:
    """A model of vit-pytorch; the reference is what its nn.Softmax modules return."""

    def make() -> Any:
        from importlib import import_module

        module_name, _, class_name = name.partition(":")
        kind = getattr(import_module(f"vit_pytorch.{module_name}"), class_name)
        sizes = {"image_size": 32, "num_classes": 5, "dim": 32} | options
        model = kind(**{option: value for option, value in sizes.items() if value is not None}).eval()
        x = torch.randn(2, 3, 32, 32)
        return model, lambda: model(x), lambda: hooked(model, lambda: model(x), lambda _name, own: isinstance(own, nn.Softmax))

    return make


def open_clip() -> Any:
    """The text transformer of open_clip."""
    repair_torchvision()
    from open_clip.transformer import Transformer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model, x = Transformer(width=16, layers=2, heads=4), torch.randn(2, 6, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    return model, lambda: model(x, attn_mask=mask), lambda: flagged(model, lambda: model(x, attn_mask=mask))


def diffusers_block() -> Any:
    """A block of diffusers: self-attention, then cross-attention to a text; the reference is its processor without a kernel."""
    from diffusers.models.attention import BasicTransformerBlock  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from diffusers.models.attention_processor import AttnProcessor  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model = BasicTransformerBlock(16, 4, 4, cross_attention_dim=12)
    x, text = torch.randn(1, 9, 16), torch.randn(1, 5, 12)

    def reference() -> Reference:
        found: list[Tensor] = []
        for attention in (model.attn1, model.attn2):
            attention.set_processor(AttnProcessor())
            attention.get_attention_scores = kept(attention.get_attention_scores, found)
        model(x, encoder_hidden_states=text)
        return [weights[None] for weights in found]

    return model, lambda: model(x, encoder_hidden_states=text), reference


def transformers_model(config_name: str, class_name: str, attention: str, sizes: dict[str, int], both: bool = False) -> Program:
    """A model of transformers; the reference is the maps that its eager attention returns."""

    def make() -> Any:
        import transformers

        def made(which: str) -> nn.Module:
            torch.manual_seed(1)
            config = getattr(transformers, config_name)(**sizes, attn_implementation=which)
            model: nn.Module = getattr(transformers, class_name)(config).eval()
            return model

        model, eager = made(attention), made("eager")
        ids = torch.tensor([[3, 5, 7, 9, 11, 2]])
        inputs = {"input_ids": ids} | ({"decoder_input_ids": ids[:, :4]} if both else {})

        def reference() -> Reference:
            out = eager(**inputs, output_attentions=True)
            if not both:
                return tuple(out.attentions)
            pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
            return (*out.encoder_attentions, *(own for pair in pairs for own in pair))

        return model, lambda: model(**inputs), reference

    return make


_BERT = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
_LARGE = {"num_hidden_layers": 6}
_LLAMA = _BERT | {"num_key_value_heads": 2, "max_position_embeddings": 32}
_T5 = {"vocab_size": 20, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
_VIT = {"patch_size": 8, "depth": 2, "heads": 4, "mlp_dim": 32}
_TOWER = {"patch_size": 8, "enc_depth": 1, "enc_heads": 2, "enc_mlp_dim": 32, "enc_dim_head": 8}
_CROSS = (
    {"dim": None, "depth": 1, "cross_attn_depth": 1, "cross_attn_heads": 2, "cross_attn_dim_head": 8, "sm_dim": 16, "lg_dim": 24}
    | {f"sm_{name}": value for name, value in _TOWER.items()}
    | {f"lg_{name}": value for name, value in (_TOWER | {"patch_size": 16}).items()}
)
_MAX = {"dim_head": 8, "depth": (1, 1), "window_size": 2, "image_size": None, "dim_conv_stem": 16}
_TIMM = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}

PROGRAMS: dict[str, tuple[str, Program]] = {
    "nn.Transformer, evaluation, fast path": ("torch", torch_transformer),
    "einsum, written by hand": ("torch", by_hand),
    "torchvision VisionTransformer": ("torchvision", torchvision_vit),
    "torchvision SwinTransformer": ("torchvision", torchvision_swin),
    "timm vit": ("timm", timm_model("vit_tiny_patch16_224", **_TIMM)),
    "timm deit3": ("timm", timm_model("deit3_small_patch16_224", **_TIMM)),
    "timm beit, relative positions": ("timm", timm_model("beit_base_patch16_224", **_TIMM)),
    "timm eva02, rotary": ("timm", timm_model("eva02_tiny_patch14_224", **_TIMM)),
    "timm swin": ("timm", timm_model("swin_tiny_patch4_window7_224", img_size=56, depths=(2, 2), embed_dim=16, num_heads=(2, 4))),
    "x-transformers, encoder-decoder": ("x-transformers", x_transformers()),
    "x-transformers, flash": ("x-transformers", x_transformers(attn_flash=True)),
    "x-transformers, rotary, one key head": ("x-transformers", x_transformers(rotary_pos_emb=True, attn_one_kv_head=True)),
    "vit-pytorch ViT": ("vit-pytorch", vit_pytorch("vit:ViT", **_VIT)),
    "vit-pytorch SimpleViT": ("vit-pytorch", vit_pytorch("simple_vit:SimpleViT", **_VIT)),
    "vit-pytorch CrossViT": ("vit-pytorch", vit_pytorch("cross_vit:CrossViT", **_CROSS)),
    "vit-pytorch MaxViT, windows and grids": ("vit-pytorch", vit_pytorch("max_vit:MaxViT", **_MAX)),
    "vit-pytorch CaiT, heads mixed after the softmax": ("vit-pytorch", vit_pytorch("cait:CaiT", **_VIT, cls_depth=1)),
    "open_clip text transformer": ("open-clip-torch", open_clip),
    "diffusers block, self and cross": ("diffusers", diffusers_block),
    "transformers BERT, sdpa": ("transformers", transformers_model("BertConfig", "BertModel", "sdpa", _BERT)),
    "transformers BERT, eager": ("transformers", transformers_model("BertConfig", "BertModel", "eager", _BERT)),
    "transformers BERT, 6 layers of width 768": ("transformers", transformers_model("BertConfig", "BertModel", "sdpa", _LARGE)),
    "transformers Llama, sdpa, grouped queries": (
        "transformers",
        transformers_model("LlamaConfig", "LlamaModel", "sdpa", _LLAMA),
    ),
    "transformers T5, sdpa": ("transformers", transformers_model("T5Config", "T5Model", "sdpa", _T5, both=True)),
    "transformers T5, eager": ("transformers", transformers_model("T5Config", "T5Model", "eager", _T5, both=True)),
}
