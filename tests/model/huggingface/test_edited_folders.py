"""Edits of networks of the transformers library, against plain PyTorch hooks on the library's own modules."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from model.errors import CannotChange
from model.huggingface.loaded import Foreign
from model.spec.edits import read_edits
from model.spec.request import Decoding
from tests.model.huggingface.test_maps import SOURCE, TARGET, assert_close, opened, traced

Hooking = Callable[[nn.Module], object]
"""Puts a hook on a module of the library's network."""

Opened = tuple[Foreign, nn.Module]


def zero_columns(first: int, last: int) -> Callable[[Any, Any], Any]:
    def hook(module: Any, given: Any) -> Any:
        x = given[0].clone()
        x[..., first:last] = 0
        return (x, *given[1:])

    return hook


def times(factor: float, last: int, module: Any, given: Any, made: Any) -> Any:
    """The first `last` columns of what a module makes, multiplied."""
    return torch.cat([made[..., :last] * factor, made[..., last:]], dim=-1)


def zeros(module: Any, given: Any, made: Any) -> Any:
    return torch.zeros_like(made)


def its_input(module: Any, given: Any, made: Any) -> Any:
    return (given[0], *made[1:]) if isinstance(made, tuple) else given[0]


def without_key(key: int, module: Any, given: Any, named: Any) -> Any:
    mask = named["attention_mask"]
    mask = torch.zeros(1, 1, 1, len(SOURCE)) if mask is None else mask.clone()
    mask[..., key] = torch.finfo(mask.dtype).min
    return given, named | {"attention_mask": mask}


FORBIDDEN = partial(without_key, 2)


def on(path: str, hook: Any, before: bool = False, **options: bool) -> Hooking:
    return lambda network: getattr(network.get_submodule(path), f"register_forward{'_pre' if before else ''}_hook")(hook, **options)


GPT2: dict[str, Hooking] = {
    "silence site=decoder.0.0.self head=1": on("transformer.h.0.attn.c_proj", zero_columns(8, 16), True),
    "no-positions stack=decoder": on("transformer.wpe", zeros),
    "shift-positions stack=decoder by=2": on("transformer.wpe", lambda m, given: (given[0] + 2,), True),
    "swap-positions stack=decoder a=1 b=3": on("transformer.wpe", lambda m, given: (given[0][:, [0, 3, 2, 1, 4]],), True),
    "skip-layer stack=decoder layer=1": on("transformer.h.1", its_input),
    "skip-sublayer at=decoder.0.1.self": on("transformer.h.1.attn.c_proj", zeros),
    "sharpen site=decoder.0.0.self factor=3": on("transformer.h.0.attn.c_attn", partial(times, 3, 24)),
    "embed stack=decoder at=2 word=9": on(
        "transformer.wte", lambda m, given: (torch.where(torch.arange(given[0].shape[1]) == 2, 9, given[0]),), True
    ),
    "forbid site=decoder.0.1.self key=1": on("transformer.h.1.attn", partial(without_key, 1), True, with_kwargs=True),
}
MARIAN: dict[str, Hooking] = {
    "silence site=decoder.0.0.cross head=1": on("model.decoder.layers.0.encoder_attn.out_proj", zero_columns(6, 12), True),
    "no-positions stack=encoder": on("model.encoder.embed_positions", zeros),
    "skip-layer stack=encoder layer=1": on("model.encoder.layers.1", its_input),
    "skip-sublayer at=encoder.0.2.self": on("model.encoder.layers.2.self_attn.out_proj", zeros),
    "sharpen site=decoder.0.0.cross factor=3": on("model.decoder.layers.0.encoder_attn.q_proj", partial(times, 3, 24)),
    "forbid site=decoder.0.0.cross key=2": on("model.decoder.layers.0.encoder_attn", FORBIDDEN, True, with_kwargs=True),
    "forbid site=encoder.0.1.self key=2": on("model.encoder.layers.1.self_attn", FORBIDDEN, True, with_kwargs=True),
}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return opened(tmp_path_factory.mktemp("gpt2"), "gpt2")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return opened(tmp_path_factory.mktemp("marian"), "marian")


def hooked(network: nn.Module, hooking: Hooking, *given: Any, **named: Any) -> Any:
    """Logits of a call of the library with a hook."""
    handle: Any = hooking(network)
    with torch.inference_mode():
        logits = network(*given, **named).logits[0]
    handle.remove()
    return logits


@pytest.mark.parametrize("text", GPT2)
def test_a_language_model_is_edited_as_by_a_hook(text: str, gpt2: Opened) -> None:
    found, own = gpt2
    trace = traced(found, decoding=Decoding(max_length=0), edits=read_edits(text))
    mask = torch.ones(1, len(SOURCE), dtype=torch.long)
    assert_close(trace.logits, hooked(own, GPT2[text], torch.tensor([SOURCE]), attention_mask=mask))
    with torch.inference_mode():
        assert not torch.allclose(own(torch.tensor([SOURCE])).logits[0], torch.tensor(trace.logits), atol=1e-4)


@pytest.mark.parametrize("text", GPT2)
def test_a_decode_with_a_cache_is_edited_as_its_text_in_one_call(text: str, gpt2: Opened) -> None:
    if text.startswith("swap-positions"):
        pytest.skip("the hook exchanges the positions of five tokens")
    found, own = gpt2
    trace = traced(found, decoding=Decoding(max_length=4), edits=read_edits(text))
    ids = torch.tensor([trace.tokens["source"].ids[: len(trace.logits)]])  # type: ignore[arg-type]
    assert_close(trace.logits, hooked(own, GPT2[text], ids, attention_mask=torch.ones_like(ids)))


@pytest.mark.parametrize("text", MARIAN)
def test_a_translator_is_edited_as_by_a_hook(text: str, marian: Opened) -> None:
    found, own = marian
    trace = traced(found, target=TARGET, edits=read_edits(text))
    mask = torch.ones(1, len(SOURCE), dtype=torch.long)
    ids = torch.tensor([TARGET])
    assert_close(trace.logits, hooked(own, MARIAN[text], torch.tensor([SOURCE]), attention_mask=mask, decoder_input_ids=ids))


@pytest.mark.parametrize("value", ["weights", "context", "output", "hidden"])
def test_a_patch_from_the_same_run_changes_nothing(value: str, marian: Opened) -> None:
    found, _own = marian
    plain, patched = (traced(found, target=TARGET, edits=read_edits(text)) for text in ("", f"patch value={value}"))
    assert_close(patched.logits, plain.logits)


@pytest.mark.parametrize(
    ("family", "text", "reason"),
    [
        ("gpt2", "swap-layers stack=decoder a=0 b=1", "keeps it to itself"),
        ("gpt2", "skip-sublayer at=decoder.0.0.feed_forward", "inside the transformers library"),
        ("t5", "sharpen kind=cross", "a number for each distance is added"),
        ("t5", "no-positions stack=encoder", "nothing is added"),
        ("llama", "no-positions stack=decoder", "nothing is added"),
    ],
)
def test_what_cannot_be_edited_says_why(tmp_path: Path, family: str, text: str, reason: str) -> None:
    found, _own = opened(tmp_path, family)
    target = {"target": TARGET} if family == "t5" else {}
    with pytest.raises(CannotChange, match=reason):
        traced(found, decoding=Decoding(max_length=0), edits=read_edits(text), **target)
