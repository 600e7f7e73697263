"""Edits of networks of the transformers library, against plain PyTorch hooks on the library's own modules."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model.errors import BadEdit, CannotChange
from model.huggingface.loaded import Foreign
from model.requests.edits import read_edits
from model.requests.request import Decoding
from tests.model.huggingface.test_maps import SOURCE, TARGET, opened, traced

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


def opened_mask(module: Any, given: Any, named: Any) -> Any:
    """Every key may be looked at, those that come later, too."""
    count = named["hidden_states"].shape[1] if "hidden_states" in named else given[0].shape[1]
    return given, named | {"attention_mask": torch.zeros(1, 1, count, count)}


def mean_of_rows(first: int, last: int) -> Callable[[Any, Any], Any]:
    """The mean over the rows up to each row, in some columns of the context vectors."""

    def hook(module: Any, given: Any) -> Any:
        x = given[0].clone()
        counts = torch.arange(1, x.shape[1] + 1)[:, None]
        x[..., first:last] = x[..., first:last].cumsum(dim=1) / counts
        return (x, *given[1:])

    return hook


def weighed(values: str, columns: slice, context: str, head: slice, row: int, weights: list[float]) -> Hooking:
    """One row of one head is given weights: its context vector is their mean of the values.

    Args:
        values, columns: the module that makes the values, and the columns of all heads' values in what it makes.
        context, head: the module that the context vectors enter, and the head's columns.
    """

    def both(network: nn.Module) -> object:
        kept: list[torch.Tensor] = []
        first = network.get_submodule(values).register_forward_hook(lambda m, given, made: kept.append(made[..., columns]))

        def replace(module: Any, given: Any) -> Any:
            x = given[0].clone()
            keys = kept.pop()[0, : len(weights), head]
            x[0, row, head] = torch.tensor(weights) @ keys
            return (x, *given[1:])

        return _Handles(first, network.get_submodule(context).register_forward_pre_hook(replace))

    return both


class _Handles:
    def __init__(self, *handles: Any) -> None:
        self._handles = handles

    def remove(self) -> None:
        for each in self._handles:
            each.remove()


def from_another(path: str, source: tuple[int, ...], before: bool, **others: Any) -> Hooking:
    """What a module is given, or makes, in a run of another source."""

    def patched(network: nn.Module) -> object:
        kept: list[torch.Tensor] = []
        module: Any = network.get_submodule(path)

        def look(_module: Any, given: Any, *made: Any) -> None:
            value = given[0] if before else made[-1]
            kept.append(value[0] if isinstance(value, tuple) else value)

        def put(_module: Any, given: Any, *made: Any) -> Any:
            if before:
                return (kept[0], *given[1:])
            return (kept[0], *made[-1][1:]) if isinstance(made[-1], tuple) else kept[0]

        kind = "register_forward_pre_hook" if before else "register_forward_hook"
        with torch.inference_mode():
            handle = getattr(module, kind)(look)
            network(torch.tensor([source]), **others)
            handle.remove()
        return getattr(module, kind)(put)

    return patched


def waves(module: Any, given: Any, made: Any) -> Any:
    """Sines and cosines of i / 10000^(2k/d) side by side."""
    count, width = made.shape[-2:]
    angles = torch.arange(count)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).expand_as(made)


def on(path: str, hook: Any, before: bool = False, **options: bool) -> Hooking:
    return lambda network: getattr(network.get_submodule(path), f"register_forward{'_pre' if before else ''}_hook")(hook, **options)


OTHER = (9, 4, 7, 5, 6)
C_ATTN = ("transformer.h.1.attn.c_attn", slice(48, 72), "transformer.h.1.attn.c_proj", slice(8, 16))
V_PROJ = ("model.decoder.layers.0.encoder_attn.v_proj", slice(None), "model.decoder.layers.0.encoder_attn.out_proj", slice(6, 12))
DECODED = {"decoder_input_ids": torch.tensor([TARGET])}
GPT2: dict[str, Hooking] = {
    "silence site=decoder.0.0.self head=1": on("transformer.h.0.attn.c_proj", zero_columns(8, 16), True),
    "no-positions stack=decoder": on("transformer.wpe", zeros),
    "shift-positions stack=decoder by=2": on("transformer.wpe", lambda m, given: (given[0] + 2,), True),
    "swap-positions stack=decoder a=1 b=3": on("transformer.wpe", lambda m, given: (given[0][:, [0, 3, 2, 1, 4]],), True),
    "skip-layer stack=decoder layer=1": on("transformer.h.1", its_input),
    "skip-sublayer at=decoder.0.1.self": on("transformer.h.1.attn.c_proj", zeros),
    "skip-sublayer at=decoder.0.0.feed_forward": on("transformer.h.0.mlp", zeros),
    "sharpen site=decoder.0.0.self factor=3": on("transformer.h.0.attn.c_attn", partial(times, 3, 24)),
    "embed stack=decoder at=2 word=9": on(
        "transformer.wte", lambda m, given: (torch.where(torch.arange(given[0].shape[1]) == 2, 9, given[0]),), True
    ),
    "forbid site=decoder.0.1.self key=1": on("transformer.h.1.attn", partial(without_key, 1), True, with_kwargs=True),
    "allow site=decoder.0.1.self": on("transformer.h.1.attn", opened_mask, True, with_kwargs=True),
    "silence site=decoder.0.0.self head=1 by=sentence": on("transformer.h.0.attn.c_proj", mean_of_rows(8, 16), True),
    "sinusoidal-positions stack=decoder": on("transformer.wpe", waves),
    "set-row site=decoder.0.1.self head=1 query=3": weighed(*C_ATTN, 3, [0.25] * 4),
    "set-row site=decoder.0.1.self head=1 query=3 to=one-hot key=1": weighed(*C_ATTN, 3, [0.0, 1.0]),
    "set-row site=decoder.0.1.self head=1 query=2 to=numbers numbers=1,2,1": weighed(*C_ATTN, 2, [0.25, 0.5, 0.25]),
    'patch value=context site=decoder.0.1.self source="9 4 7 5 6"': from_another("transformer.h.1.attn.c_proj", OTHER, True),
    'patch value=output site=decoder.0.0.self source="9 4 7 5 6"': from_another("transformer.h.0.attn.c_proj", OTHER, False),
    'patch value=hidden stack=decoder layer=0 source="9 4 7 5 6"': from_another("transformer.h.0", OTHER, False),
}
MARIAN: dict[str, Hooking] = {
    "silence site=decoder.0.0.cross head=1": on("model.decoder.layers.0.encoder_attn.out_proj", zero_columns(6, 12), True),
    "no-positions stack=encoder": on("model.encoder.embed_positions", zeros),
    "skip-layer stack=encoder layer=1": on("model.encoder.layers.1", its_input),
    "skip-sublayer at=encoder.0.2.self": on("model.encoder.layers.2.self_attn.out_proj", zeros),
    "skip-sublayer at=decoder.0.0.feed_forward": on("model.decoder.layers.0.fc2", zeros),
    "sharpen site=decoder.0.0.cross factor=3": on("model.decoder.layers.0.encoder_attn.q_proj", partial(times, 3, 24)),
    "forbid site=decoder.0.0.cross key=2": on("model.decoder.layers.0.encoder_attn", FORBIDDEN, True, with_kwargs=True),
    "forbid site=encoder.0.1.self key=2": on("model.encoder.layers.1.self_attn", FORBIDDEN, True, with_kwargs=True),
    "allow site=decoder.0.0.self": on("model.decoder.layers.0.self_attn", opened_mask, True, with_kwargs=True),
    "silence site=decoder.0.0.cross head=1 by=sentence": on(
        "model.decoder.layers.0.encoder_attn.out_proj", mean_of_rows(6, 12), True
    ),
    "set-row site=decoder.0.0.cross head=1 query=2": weighed(*V_PROJ, 2, [0.2] * 5),
    "set-row site=decoder.0.0.cross head=1 query=1 to=one-hot key=3": weighed(*V_PROJ, 1, [0.0, 0.0, 0.0, 1.0]),
    'patch value=hidden stack=encoder layer=1 source="9 4 7 5 6"': from_another("model.encoder.layers.1", OTHER, False, **DECODED),
    'patch value=context site=decoder.0.0.cross source="9 4 7 5 6"': from_another(
        "model.decoder.layers.0.encoder_attn.out_proj", OTHER, True, **DECODED
    ),
}


ONLY_FORCED = ("swap-positions", "patch", "allow")
"""Edits whose hooks know the tokens of the prompt alone; a decode opens no future."""


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return opened(tmp_path_factory.mktemp("gpt2"), "gpt2")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return opened(tmp_path_factory.mktemp("marian"), "marian")


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=0, atol=1e-5)


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
    if text.startswith(ONLY_FORCED):
        pytest.skip("its hook counts on the five tokens of the prompt")
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


def test_the_mean_over_examples_of_a_folder_names_its_only_sentence(gpt2: Opened) -> None:
    found = replace(gpt2[0], info=replace(gpt2[0].info, examples=("9 4 7",)))
    trace = traced(found, decoding=Decoding(max_length=0), edits=read_edits("silence site=decoder.0.0.self by=examples"))
    assert any("one sentence, the same for every folder, and of what" in str(note) for note in trace.model["notes"])
    assert any(str(note).endswith(": 9 4 7") for note in trace.model["notes"])


@pytest.mark.parametrize("value", ["weights", "context", "output", "hidden"])
def test_a_patch_from_the_same_run_changes_nothing(value: str, marian: Opened) -> None:
    found, _own = marian
    plain, patched = (traced(found, target=TARGET, edits=read_edits(text)) for text in ("", f"patch value={value}"))
    assert_close(patched.logits, plain.logits)


@pytest.mark.parametrize(
    ("family", "text", "reason"),
    [
        ("gpt2", "swap-layers stack=decoder a=0 b=1", "does not expose the order of its layers"),
        ("t5", "sharpen kind=cross", "more than products of queries and keys"),
        ("t5", "no-positions stack=encoder", "no positions are added"),
        ("llama", "no-positions stack=decoder", "no positions are added"),
    ],
)
def test_what_cannot_be_edited_says_why(tmp_path: Path, family: str, text: str, reason: str) -> None:
    found, _own = opened(tmp_path, family)
    target = {"target": TARGET} if family == "t5" else {}
    with pytest.raises(CannotChange, match=reason):
        traced(found, decoding=Decoding(max_length=0), edits=read_edits(text), **target)


def test_a_sublayer_that_is_not_there_is_answered_by_those_that_can_be_skipped(tmp_path: Path) -> None:
    found, _own = opened(tmp_path, "gpt2")
    with pytest.raises(BadEdit, match=r"this network has no such sublayer\. Available: ") as refused:
        traced(found, decoding=Decoding(max_length=0), edits=read_edits("skip-sublayer at=decoder.0.9.feed_forward"))
    offered = re.findall(r"decoder\.0\.\d\.\w+", str(refused.value).partition("Available: ")[2])
    assert offered == [f"decoder.0.{layer}.{kind}" for kind in ("self", "feed_forward") for layer in (0, 1)]
    for sublayer in offered:
        traced(found, decoding=Decoding(max_length=0), edits=read_edits(f"skip-sublayer at={sublayer}"))
