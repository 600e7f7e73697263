"""Architectures of GGUF files that the transformers library computes too: names of tensors, and what llama.cpp changed in them.

Source: gguf/tensor_mapping.py of the gguf package, and convert_hf_to_gguf.py of llama.cpp, whose changes are undone here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Architecture:
    """How an architecture is stored.

    Attributes:
        model_type, class_name: its names in the transformers library.
        around: the library's name of each stored name outside of layers, both without `.weight` and `.bias`.
        layers: the library's name of the list of layers.
        inside: the library's name of each stored name in a layer.
        interleaved: whether rows of queries and keys are stored in the order in which llama.cpp rotates them: pairs side by side.
        transposed: names in a layer of matrices that the library stores as [in, out].
        centered: whether a norm's gains are stored as 1 + the library's.
    """

    model_type: str
    class_name: str
    around: Mapping[str, str]
    layers: str
    inside: Mapping[str, str]
    interleaved: bool = False
    transposed: tuple[str, ...] = ()
    centered: bool = False

    def name(self, stored: str) -> str:
        """The library's name of a stored tensor; an unknown name stays as it is."""
        if (match := _STORED.fullmatch(stored)) is None:
            return stored
        number, name, ending = match["number"], match["name"], match["ending"]
        if number is None:
            return f"{self.around[name]}{ending}" if name in self.around else stored
        return f"{self.layers}.{int(number)}.{self.inside[name]}{ending}" if name in self.inside else stored

    def restored(self, stored: str, tensor: Tensor, heads: int, key_heads: int) -> Tensor:
        """A stored tensor as the library has it.

        Args:
            stored: its name in the file.
            heads, key_heads: numbers of query and key heads.
        """
        match = _STORED.fullmatch(stored)
        name = match["name"] if match else stored
        # each tensor was changed in at most one of three ways, which is undone here
        if self.interleaved and name in ("attn_q", "attn_k"):
            return _halves(tensor, heads if name == "attn_q" else key_heads)
        if name in self.transposed and tensor.dim() == 2:
            return tensor.T.contiguous()
        return tensor - 1 if self.centered and name.endswith("norm") else tensor


_STORED = re.compile(r"(blk\.(?P<number>\d{1,4})\.)?(?P<name>.+?)(?P<ending>\.weight|\.bias)")


def _halves(rows: Tensor, heads: int) -> Tensor:
    """Rows of each head, from pairs side by side (0, half, 1, half + 1, …) to two halves, as the library rotates them."""
    width = rows.shape[0] // heads
    if rows.shape[0] % (2 * heads):
        return rows  # of another shape than such a network has: told where its shapes are compared
    return rows.reshape(heads, width // 2, 2, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape)


_AROUND = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def _decoder(model_type: str, class_name: str, more: Mapping[str, str] = {}, centered: bool = False) -> Architecture:
    return Architecture(model_type, class_name, _AROUND, "model.layers", {**_INSIDE, **more}, centered=centered)


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("llama", "LlamaForCausalLM", _AROUND, "model.layers", _INSIDE, interleaved=True),
    "qwen2": _decoder("qwen2", "Qwen2ForCausalLM"),
    "qwen3": _decoder("qwen3", "Qwen3ForCausalLM", _QK_NORMS),
    "gemma": _decoder("gemma", "GemmaForCausalLM", centered=True),
    "gemma2": _decoder("gemma2", "Gemma2ForCausalLM", _SANDWICH, centered=True),
    "gemma3": _decoder("gemma3_text", "Gemma3ForCausalLM", _SANDWICH | _QK_NORMS, centered=True),
    "phi3": _decoder("phi3", "Phi3ForCausalLM", {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}),
    "gpt2": Architecture(
        "gpt2",
        "GPT2LMHeadModel",
        {
            "token_embd": "transformer.wte",
            "position_embd": "transformer.wpe",
            "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        "transformer.h",
        {
            "attn_norm": "ln_1",
            "attn_qkv": "attn.c_attn",
            "attn_output": "attn.c_proj",
            "ffn_norm": "ln_2",
            "ffn_up": "mlp.c_fc",
            "ffn_down": "mlp.c_proj",
        },
        transposed=("attn_qkv", "attn_output", "ffn_up", "ffn_down"),
    ),
    "bert": Architecture(
        "bert",
        "BertModel",
        {
            "token_embd": "embeddings.word_embeddings",
            "position_embd": "embeddings.position_embeddings",
            "token_types": "embeddings.token_type_embeddings",
            "token_embd_norm": "embeddings.LayerNorm",
            "cls": "classifier.dense",
            "cls.output": "classifier.out_proj",
        },
        "encoder.layer",
        {
            "attn_q": "attention.self.query",
            "attn_k": "attention.self.key",
            "attn_v": "attention.self.value",
            "attn_output": "attention.output.dense",
            "attn_output_norm": "attention.output.LayerNorm",
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
            "layer_output_norm": "output.LayerNorm",
        },
    ),
}
"""By `general.architecture`."""
