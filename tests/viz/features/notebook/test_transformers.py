"""Outputs of the transformers library: each map is the one that the library computes in a pass over the whole sequence."""

from typing import Any

import numpy as np
import pytest
import torch

from viz.features.notebook.given import Options, trace_of
from viz.features.notebook.show import show

pytestmark = pytest.mark.slow  # imports the transformers library

IDS = torch.tensor([[5, 17, 9, 33, 60, 2]])


def t5(**settings: Any) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 2, "num_heads": 4, "d_kv": 8, "vocab_size": 99, "decoder_start_token_id": 0}
    return T5ForConditionalGeneration._from_config(T5Config(**sizes), attn_implementation="eager").eval()


def llama(implementation: str = "eager") -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99}
    return LlamaForCausalLM._from_config(LlamaConfig(**sizes), attn_implementation=implementation).eval()


def generated(model: Any, ids: torch.Tensor, **settings: Any) -> Any:
    wanted = {
        "output_attentions": True,
        "return_dict_in_generate": True,
        "max_new_tokens": 6,
        "pad_token_id": 0,
        "eos_token_id": 98,
    }
    return model.generate(ids, **wanted, **settings)


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"num_beams": 3, "num_return_sequences": 2}])
@pytest.mark.parametrize("example", [0, 1])
def test_a_decode_of_a_language_model_is_its_whole_pass(settings: dict[str, Any], example: int) -> None:
    model = llama()
    output = generated(model, torch.cat([IDS, IDS.flip(1)]), **settings)
    trace = trace_of(output, Options(example=example))
    whole = model(output.sequences[example : example + 1, :-1], output_attentions=True).attentions
    for layer, attention in enumerate(trace.attention.values()):
        rows = attention.weights.shape[1]
        np.testing.assert_allclose(attention.weights, whole[layer][0, :, :rows, :rows].detach(), atol=2e-6)
        assert rows >= IDS.shape[1]
        np.testing.assert_array_equal(attention.mask, np.tril(np.ones((rows, rows), bool)))


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"num_beams": 3, "num_return_sequences": 2}])
def test_a_decode_of_an_encoder_decoder_is_its_whole_pass(settings: dict[str, Any]) -> None:
    model = t5()
    sources = torch.cat([IDS, IDS.flip(1)])
    output = generated(model, sources, **settings)
    sequences = len(output.sequences)
    for example in range(sequences):
        trace = trace_of(output, Options(example=example))
        source = sources[example * 2 // sequences][None]
        whole = model(source, decoder_input_ids=output.sequences[example : example + 1, :-1], output_attentions=True)
        fields = {"encoder.0.{}.self": "encoder_attentions", "decoder.0.{}.self": "decoder_attentions"}
        for name, field in (fields | {"decoder.0.{}.cross": "cross_attentions"}).items():
            for layer in range(2):
                attention = trace.at(name.format(layer))
                rows, keys = attention.weights.shape[1:]
                expected = getattr(whole, field)[layer][0, :, :rows, :keys].detach()
                np.testing.assert_allclose(attention.weights, expected, atol=2e-6)


def test_a_decode_has_the_tokens_that_were_written() -> None:
    model = llama()
    output = generated(model, IDS)

    class Tokenizer:
        all_special_tokens = ("t2",)

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [f"t{number}" for number in ids]

    trace = trace_of(output, Options(tokenizer=Tokenizer()))
    assert trace.tokens["source"].texts == tuple(f"t{number}" for number in output.sequences[0].tolist())


def test_left_padding_is_left_out() -> None:
    model = llama()
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), IDS], dim=1)
    mask = (torch.arange(9) >= 3).long()[None]
    output = model(padded, attention_mask=mask, output_attentions=True)
    trace = trace_of(output, Options(tokens={"input_ids": padded, "attention_mask": mask}))
    alone = model(IDS, output_attentions=True).attentions
    for layer, attention in enumerate(trace.attention.values()):
        np.testing.assert_allclose(attention.weights, alone[layer][0].detach(), atol=2e-6)


def test_a_fused_kernel_has_no_weights_and_the_sentence_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="attn_implementation='eager'"):
        show(llama("sdpa")(IDS))
