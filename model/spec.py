"""ModelSpec: frozen choices that describe a network, and nothing else. `model/transformer/build.py` alone acts on them.

A spec is a tree of small values, one for each part, so that a choice stands where it belongs: encoder and decoder may differ in
everything. `spec.json` beside a checkpoint's weights is the same tree in JSON. This module needs no torch.
"""

from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias, get_args, get_type_hints

from model.errors import BadSetting

Positions: TypeAlias = Literal["learned", "sinusoidal", "none"]
NormOrder: TypeAlias = Literal["post", "pre"]
Activation: TypeAlias = Literal["relu", "gelu"]
EmbedScale: TypeAlias = Literal["sqrt", "none"]
EmptyRows: TypeAlias = Literal["uniform", "zeros"]


@dataclass(frozen=True)
class AttentionSpec:
    """Multi-head attention.

    Attributes:
        heads: how many heads.
        head_dim: width of a head's queries, keys and values; free of d_model / heads.
        bias: whether the four projections add a bias.
        empty_rows: what a query sees that may look at no key: every key alike (`uniform`), or nothing (`zeros`).
    """

    heads: int
    head_dim: int
    bias: bool = True
    empty_rows: EmptyRows = "uniform"


@dataclass(frozen=True)
class StackSpec:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: ids the embedding knows.
        d_model: width of the residual stream.
        layers: how many layers the stack holds.
        passes: how often the whole stack is applied, with the same weights.
        attention: every attention sublayer of the stack.
        hidden: inner width of the feed-forward sublayer.
        activation: between its two linear maps.
        bias: whether those two add a bias.
        norm_order: LayerNorm after the residual sum (`post`) or before the sublayer (`pre`).
        final_norm: one more LayerNorm after the last layer.
        positions: how positions are told apart.
        max_positions: the longest input; a sinusoid needs none, then it bounds what is asked of the machine.
        embed_scale: embeddings are multiplied by the square root of d_model (`sqrt`), or not.
    """

    vocab: int
    d_model: int
    layers: int
    attention: AttentionSpec
    hidden: int
    passes: int = 1
    activation: Activation = "relu"
    bias: bool = True
    norm_order: NormOrder = "post"
    final_norm: bool = False
    positions: Positions = "learned"
    max_positions: int = 100
    embed_scale: EmbedScale = "sqrt"


@dataclass(frozen=True)
class OutputSpec:
    """The map from the last state to the vocabulary.

    Attributes:
        tied: use the decoder's token embedding as its weight.
        bias: whether it adds one.
    """

    tied: bool = False
    bias: bool = True


@dataclass(frozen=True)
class ModelSpec:
    """A whole network.

    Attributes:
        decoder: the stack that predicts. Without an encoder it has no cross-attention: a causal language model.
        encoder: the stack that reads the source; None for a language model.
        output: the map to the vocabulary.
        dropout: share of values dropped in training, everywhere alike.
        pad_id, start_id, end_id, unk_id: the ids that stand for no text.
        suppressed: ids that are never written when decoding (their probabilities are still shown).
    """

    decoder: StackSpec
    encoder: StackSpec | None = None
    output: OutputSpec = OutputSpec()
    dropout: float = 0.1
    pad_id: int = 1
    start_id: int = 2
    end_id: int = 3
    unk_id: int = 0
    suppressed: tuple[int, ...] = ()


def to_json(spec: ModelSpec) -> dict[str, Any]:
    """The spec as plain JSON values."""
    return asdict(spec)


def from_json(data: dict[str, Any]) -> ModelSpec:
    """The spec in JSON values, every field checked.

    Raises:
        BadSetting: an unknown field, a missing one, or a value outside what is allowed.
    """
    spec: ModelSpec = _read(ModelSpec, data, "spec")
    return spec


def _read(kind: Any, data: Any, path: str) -> Any:
    """One node of the tree: `kind` is a dataclass, an optional one, a Literal, tuple, int, float or bool."""
    choices = get_args(kind)
    if type(None) in choices:
        return None if data is None else _read(choices[0], data, path)
    if is_dataclass(kind):
        return _read_fields(kind, data, path)
    if kind == tuple[int, ...]:
        if isinstance(data, list) and all(type(i) is int for i in data):
            return tuple(data)
        raise BadSetting(name=path, found=data, allowed="a list of ids")
    if choices:
        if data in choices:
            return data
        raise BadSetting(name=path, found=data, allowed=" or ".join(map(str, choices)))
    if type(data) is kind and (kind is bool or data >= 0) or (kind is float and type(data) is int):
        return data
    raise BadSetting(name=path, found=data, allowed=f"{kind.__name__}, not negative")


def _read_fields(kind: Any, data: Any, path: str) -> Any:
    hints = get_type_hints(kind)
    if not isinstance(data, dict) or (unknown := sorted(data.keys() - hints.keys())):
        raise BadSetting(name=path, found=unknown if isinstance(data, dict) else data, allowed=f"made of {', '.join(hints)}")
    values = {name: _read(hints[name], value, f"{path}.{name}") for name, value in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        needed = ", ".join(f.name for f in fields(kind))
        raise BadSetting(name=path, found=sorted(data), allowed=f"made of {needed}") from error
