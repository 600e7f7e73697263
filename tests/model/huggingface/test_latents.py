"""Latent attention: what is recorded is what the library keeps, and the keys and values of all heads follow from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import loader
from model.huggingface.loaded import Foreign
from model.inference.run import run
from model.requests.inputs import Given
from model.requests.request import Decoding, RunRequest
from model.trace import stages
from model.trace.serialization import from_bytes
from tests import folders, recorded_folders
from viz.features.modern_attention import latent_numbers as latents

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[3]
IDS: Given = (4, 6, 5, 8, 9)


@pytest.mark.parametrize("name", ["deepseek_v2", "deepseek_v3"])
@pytest.mark.slow
def test_latents_are_those_of_the_library_and_make_its_keys_and_values(tmp_path: Path, name: str) -> None:
    """A decode with a cache against the library's own cache, and keys and values by the matrices in float64."""
    from transformers.cache_utils import DynamicCache

    own: Any = recorded_folders.saved(tmp_path, name)[0]
    found = loader.load(tmp_path, {}, CPU)
    assert isinstance(found, Foreign)
    request = RunRequest("any", IDS, decoding=Decoding(max_length=3), keep=("qkv", "stages"))
    trace = run(found, request, CPU, "cpu")
    ids = trace.tokens["source"].ids
    cache = DynamicCache()
    with torch.inference_mode():
        own(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=True)
    assert trace.of("decoder", "self")
    for layer, attention in enumerate(trace.of("decoder", "self")):
        shown = latents.of_site(trace, attention.site)
        assert shown is not None
        module = own.get_submodule(f"model.layers.{layer}.self_attn")
        rank, rotated = own.config.kv_lora_rank, own.config.qk_rope_head_dim
        assert shown.rotated == rotated
        rows = len(attention.mask)
        kept = torch.cat([cache.layers[layer].keys, cache.layers[layer].values], dim=-1)[0, 0]
        assert shown.kept == pytest.approx(kept[:rows].numpy(), abs=1e-5)
        wide = trace.stages[f"{attention.site}/latents"].astype(np.float64) @ module.kv_b_proj.weight.detach().double().numpy().T
        heads = wide.reshape(rows, attention.heads, -1)
        assert shown.made == pytest.approx(heads, abs=1e-5)
        assert heads.shape[2] == own.config.qk_nope_head_dim + own.config.v_head_dim
        assert shown.kept.shape == (rows, rank + rotated)
    walk = [str(stage) for stage in stages.walk(trace) if stage.place == "decoder.0.1.self"]
    assert [name.partition("/")[2] for name in walk[:4]] == ["queries", "latents", "keys", "values"]
    assert trace.model["spec"]["decoder"]["attention"]["latent"] == own.config.kv_lora_rank


def test_heads_with_the_same_keys_share_no_more_columns_than_the_network_rotates() -> None:
    trace = from_bytes((ROOT / "lectures" / "traces" / "latents.trace.safetensors").read_bytes())
    own = trace.at("decoder.0.1.self")
    assert own.k is not None
    pruned = replace(own, k=np.where(np.arange(own.k.shape[-1]) < 8, 0, own.k))  # what was made of the latents: all heads are zero
    found = latents.of_site(replace(trace, attention={**trace.attention, own.site: pruned}), own.site)
    assert found is not None
    assert (found.rotated, found.kept.shape[1]) == (4, 8 + 4)


@pytest.mark.slow
def test_other_folders_have_no_latents(tmp_path: Path) -> None:
    folders.save(tmp_path, "llama")
    found = loader.load(tmp_path, {}, CPU)
    assert isinstance(found, Foreign)
    trace = run(found, RunRequest("any", IDS, decoding=Decoding(max_length=1), keep=("qkv", "stages")), CPU, "cpu")
    assert latents.of_site(trace, trace.of("decoder", "self")[0].site) is None
    assert "latents" not in {stage.name for stage in stages.walk(trace)}
