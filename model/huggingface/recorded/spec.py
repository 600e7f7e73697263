"""The spec of a network without a row: sizes from its config, layers and heads from its probe, or from its config before one."""

from dataclasses import asdict
from typing import Any

from torch import nn

import headlight
from model.errors import BadSetting, DamagedFile
from model.huggingface.config import UNTABLED, alignment, special_ids
from model.huggingface.folder import CONFIG, Folder
from model.huggingface.images import of_vision
from model.huggingface.recorded.inputs import Reads
from model.huggingface.recorded.sites import layers_and_heads
from model.requests.external import ForeignAttention, ForeignSpec, ForeignStack
from model.requests.network import OutputSpec
from model.requests.validation import read

_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_encoder_position_embeddings", "max_seq_len")
"""Settings that give the number of positions."""


def spec_of(
    folder: Folder, config: Any, network: nn.Module, form: Reads, program: str, sites: tuple[headlight.Site, ...]
) -> ForeignSpec:
    """The spec of a network.

    Raises:
        DamagedFile: a size is missing or outside its limits.
    """
    names = ("encoder", "decoder") if folder.kind == "both" else (folder.kind,)
    try:
        stacks = {name: _stack(name, config, network, form if name == names[0] else None, sites) for name in names}
        vocab, decoder = list(stacks.values())[-1].vocab, stacks.get("decoder")
        spec = ForeignSpec(
            program=program,
            encoder=stacks.get("encoder"),
            decoder=decoder,
            output=None if folder.kind == "encoder" else OutputSpec(),
            recorded=True,
            **special_ids(folder, config, vocab),
            **(alignment(folder, config, decoder.layers, decoder.attention.heads) if decoder and form.sound is not None else {}),
        )
        return read(ForeignSpec, asdict(spec), CONFIG)
    except BadSetting as error:
        detail = error.inside
        raise DamagedFile(path=folder.settings, detail=detail) from error


def _stack(name: str, config: Any, network: nn.Module, form: Reads | None, sites: tuple[headlight.Site, ...]) -> ForeignStack:
    stack_config = config.get_text_config(**{name: True}) if form is None or form.form == "ids" else of_vision(config)
    # what a run has shown is surer than the settings, whose names differ between architectures
    layers, heads = layers_and_heads(list(sites), name) if sites else _by_settings(config, stack_config, name)
    width = _first_count(stack_config, "d_model", "hidden_size", "n_embd", "dim") or 1
    features = form is not None and form.form != "ids"
    assert form is not None or not features
    image = form.image if form is not None and form.named else None
    return ForeignStack(
        vocab=0 if features else _vocabulary_size(network, stack_config, name),
        d_model=form.width if form is not None and features and image is None else width,
        layers=layers,
        attention=ForeignAttention(heads, heads, _first_count(stack_config, "head_dim", "d_kv") or max(1, width // heads)),
        positions="unknown",
        max_positions=(form.positions or UNTABLED) if form is not None and features else _positions(stack_config, network),
        image=image,
    )


def _by_settings(config: Any, stack_config: Any, name: str) -> tuple[int, int]:
    """Layers and heads of a stack as the settings name them, before a run has shown its attention. At least one of each.

    Args:
        config: the library's config, in which the stacks of one network have names of their own.
        stack_config: the stack's.
    """
    layers = _first_count(config, f"{name}_layers") or _first_count(stack_config, "num_hidden_layers", "num_layers", "n_layer")
    heads = _first_count(config, f"{name}_attention_heads") or _first_count(
        stack_config, "num_attention_heads", "num_heads", "n_head"
    )
    return layers or 1, heads or 1


def _vocabulary_size(network: nn.Module, config: Any, name: str) -> int:
    """Ids of the embedding of a stack."""
    library: Any = network
    try:
        part = library.get_encoder() if name == "encoder" else library.get_decoder()
        return int(part.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError, TypeError):
        return _first_count(config, "vocab_size", f"{name}_vocab_size") or 1


def _positions(config: Any, network: nn.Module) -> int:
    """The length of the longest input; rows of a position table up to the one of padding are none."""
    positions = _first_count(config, *_POSITIONS)
    if positions is None:
        return UNTABLED
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding) and module.num_embeddings == positions]
    # as RoBERTa has it: position 0 is the row after the one of padding
    return positions - max((table.padding_idx + 1 for table in tables if table.padding_idx is not None), default=0)


def _first_count(config: Any, *names: str) -> int | None:
    """The first setting that is a whole number above 0."""
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)
