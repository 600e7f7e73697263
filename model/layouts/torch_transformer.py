"""PyTorch's own modules: nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, alone or inside a model of any names, and
one of their layers on its own.

What stands around them has names that its author chose: embeddings, output layer and table of positions are asked for unless there
is but one candidate. What PyTorch leaves to the caller (masks) or to the constructor (heads, norm order) is asked for as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from model.layouts.base import Layout, Match, Rules, Shapes, attention
from model.layouts.questions import (
    Answers,
    Question,
    activation,
    causal,
    decoding_ids,
    embed_scale,
    head_dim,
    heads,
    id_,
    norm_order,
    vocabularies,
)
from model.layouts.torch_lm import TORCH_LM, encoder_layer_rules
from model.spec import ModelSpec, OutputSpec, StackSpec

LONGEST = 4096
"""Positions at most where no table bounds them."""

_IN = "self_attn.in_proj_weight"
_ROLES = {
    "source_embedding": (r"src|source|enc", "the embedding of the source"),
    "target_embedding": (r"tgt|trg|target|dec", "the embedding of the target"),
    "output_layer": (r"out|generator|head|fc|linear|proj|decoder", "the map from the last states to the vocabulary"),
}
"""Settings that name a tensor, the words in a name that speak for it, and what it is."""


@dataclass(frozen=True)
class _Found:
    """Prefixes of the encoder's and the decoder's names, ending in a dot or empty; None: there is none. A `lone` layer has none."""

    encoder: str | None
    decoder: str | None
    lone: bool = False

    def layer(self, prefix: str | None, number: str = "#") -> str:
        """What stands before the names of a layer's parts."""
        return "" if self.lone else f"{prefix}layers.{number}."

    @property
    def width(self) -> str:
        """A tensor whose last axis is the model's width."""
        prefix = self.decoder if self.encoder is None else self.encoder
        return f"{self.layer(prefix, '0')}{_IN}"


def _find(shapes: Shapes) -> _Found | None:
    if shapes.has(_IN):
        decoder = shapes.has("multihead_attn.in_proj_weight")
        return _Found(None if decoder else "", "" if decoder else None, lone=True)
    prefixes = [name.removesuffix(f"layers.0.{_IN}") for name in shapes.of if name.endswith(f"layers.0.{_IN}")]
    decoders = [prefix for prefix in prefixes if shapes.has(f"{prefix}layers.#.multihead_attn.in_proj_weight")]
    encoders = [prefix for prefix in prefixes if prefix not in decoders]
    if not prefixes or len(decoders) > 1 or len(encoders) > 1:
        return None
    return _Found(encoders[0] if encoders else None, decoders[0] if decoders else None)


def _outside(shapes: Shapes, found: _Found) -> tuple[str, ...]:
    """Names that belong to neither stack; beside a lone layer there are none."""
    if found.lone:
        return ()
    prefixes = [f"{p}{part}" for p in (found.encoder, found.decoder) if p is not None for part in ("layers.", "norm.")]
    return tuple(name for name in shapes.of if not name.startswith(tuple(prefixes)))


def _is_table(name: str) -> bool:
    return bool(re.search(r"pos|(^|\.)pe$", name, re.IGNORECASE))


def _tables(shapes: Shapes, found: _Found) -> tuple[str, ...]:
    """What may be a table of positions: as wide as the model, and called so."""
    width = shapes.size(found.width, -1)
    return tuple(name for name in _outside(shapes, found) if _is_table(name) and shapes.of[name][-1:] == (width,))


def _roles(found: _Found) -> tuple[str, ...]:
    """The roles that there are to be filled."""
    source, target, output = _ROLES
    return tuple(
        role for role, there in ((source, found.encoder is not None), (target, found.decoder is not None), (output, True)) if there
    )


def _candidates(shapes: Shapes, found: _Found, role: str) -> tuple[str, ...]:
    """Matrices as wide as the model that may fill a role. An embedding has no bias."""
    width = shapes.size(found.width, -1)
    wide = [n for n in _outside(shapes, found) if len(shapes.of[n]) == 2 and shapes.of[n][1] == width and not _is_table(n)]
    return tuple(n for n in wide if role == "output_layer" or not _bias(shapes, n))


def _bias(shapes: Shapes, weight: str) -> str:
    """The bias beside a weight; empty: there is none."""
    bias = f"{weight.removesuffix('weight')}bias"
    return bias if bias in shapes.of else ""


def _evident(shapes: Shapes, found: _Found, role: str) -> str | None:
    """What fills a role where names and biases leave one candidate; "none" where there is no candidate; None: it must be told."""
    candidates = _candidates(shapes, found, role)
    spoken = [n for n in candidates if re.search(_ROLES[role][0], n, re.IGNORECASE)]
    if role == "output_layer":
        spoken = [n for n in candidates if _bias(shapes, n)] or spoken
    elif len(_roles(found)) == 2:  # one stack: whatever is no output layer
        spoken = [n for n in candidates if n != _evident(shapes, found, "output_layer")]
    if not candidates:
        return "none"
    return spoken[0] if len(spoken) == 1 else None


def _filled(shapes: Shapes, found: _Found, told: Mapping[str, str]) -> dict[str, str]:
    """The tensor of each role that is filled."""
    answers = {role: told.get(role) or _evident(shapes, found, role) for role in _roles(found)}
    return {role: name for role, name in answers.items() if name is not None and name in shapes.of}


def _writes(shapes: Shapes, found: _Found, told: Mapping[str, str]) -> bool:
    """Whether a lone nn.TransformerEncoder is a language model: it looks back only, or there is an output layer."""
    return found.decoder is None and (told.get("causal") == "true" or "output_layer" in _filled(shapes, found, told))


def _match(shapes: Shapes) -> Match:
    if TORCH_LM.match(shapes):
        return Match((), (f"has the names of the layout {TORCH_LM.name}",))
    found = _find(shapes)
    if found is None:
        return Match((), (f"lacks layers.#.{_IN}, or has several piles of them",))
    prefixes = [prefix for prefix in (found.encoder, found.decoder) if prefix is not None]
    return Match(tuple(f"has {found.layer(prefix)}{_IN}" for prefix in prefixes), ())


def _decoder_layer_rules(theirs: str, ours: str) -> Rules:
    both = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
    rules: dict[str, str | tuple[str, ...]] = {
        f"{theirs}linear1.@": f"{ours}feed_forward.expand.@",
        f"{theirs}linear2.@": f"{ours}feed_forward.contract.@",
    }
    for their, our in both.items():
        rules[f"{theirs}{their}.in_proj_@"] = tuple(f"{ours}{our}.{part}.@" for part in ("query", "key", "value"))
        rules[f"{theirs}{their}.out_proj.@"] = f"{ours}{our}.output.@"
    for i, residual in enumerate(("self_residual", "cross_residual", "feed_forward_residual")):
        rules[f"{theirs}norm{i + 1}.@"] = f"{ours}{residual}.norm.@"
    return rules


def _rules(shapes: Shapes, told: Mapping[str, str]) -> Rules:
    if (found := _find(shapes)) is None:
        return {}
    reads, number = "" if _writes(shapes, found, told) else "encoder.", "0" if found.lone else "#"
    rules: dict[str, str | tuple[str, ...]] = {}
    if found.encoder is not None:
        rules |= encoder_layer_rules(found.layer(found.encoder), f"{reads}layers.{number}.")
        rules[f"{found.encoder}norm.@"] = f"{reads}final_norm.@"
    if found.decoder is not None:
        rules |= _decoder_layer_rules(found.layer(found.decoder), f"decoder.layers.{number}.")
        rules[f"{found.decoder}norm.@"] = "decoder.final_norm.@"
    return {**rules, **_around(shapes, found, told, reads)}


def _around(shapes: Shapes, found: _Found, told: Mapping[str, str], reads: str) -> Rules:
    """What stands around the stacks; candidates that fill no role are known and not needed."""
    filled = _filled(shapes, found, told)
    places = {"source_embedding": f"{reads}embedding.token.weight", "target_embedding": "decoder.embedding.token.weight"}
    rules: dict[str, str | tuple[str, ...]] = {
        name: () for role in _roles(found) for name in _candidates(shapes, found, role) if name not in filled.values()
    }
    rules |= {filled[role]: place for role, place in places.items() if role in filled}
    if output := filled.get("output_layer"):
        rules |= {output: "output.weight"} | ({_bias(shapes, output): "output.bias"} if _bias(shapes, output) else {})
    kind = "weight" if _positions(shapes, found, told) == "learned" else "table"
    embedded = [place.replace("token.weight", f"positions.{kind}") for role, place in places.items() if role in filled]
    return rules | {table: tuple(embedded) for table in _tables(shapes, found)[:1]}


def _positions(shapes: Shapes, found: _Found, told: Mapping[str, str]) -> str | None:
    """How positions are told apart; a table that is a parameter was learned, a buffer holds waves."""
    tables = _tables(shapes, found)
    return told.get("positions") or (None if not tables else "learned" if tables[0].endswith("weight") else "sinusoidal")


def _ask(shapes: Shapes, told: Mapping[str, str]) -> tuple[Question, ...]:
    found = _find(shapes)
    if found is None:
        return ()
    width = shapes.size(found.width, -1)
    roles = tuple(
        Question(role, f"Which tensor is {_ROLES[role][1]}.", (*_candidates(shapes, found, role), "none"), default=default)
        for role in _roles(found)
        if (default := _evident(shapes, found, role)) != "none"
    )
    future = "PyTorch leaves the mask to the caller: whether a position is kept from looking at later ones (of a decoder: its own)."
    return (
        heads("n_heads", width, told),
        head_dim(width),
        norm_order(),
        activation(),
        causal(None, future),
        *roles,
        *_about_words(shapes, found, told),
    )


def _about_words(shapes: Shapes, found: _Found, told: Mapping[str, str]) -> tuple[Question, ...]:
    """Questions of a model that reads ids."""
    filled = _filled(shapes, found, told)
    embeddings = {role: shapes.size(filled[role], 0) for role in ("source_embedding", "target_embedding") if role in filled}
    if not embeddings:
        return ()
    vocab = list(embeddings.values())[-1]
    waves = "How positions are told apart; a table in the file is used as it is."
    padding = "Positions that hold this id are hidden from attention; without it, none are."
    names = [("source_pad_id", "source_vocab"), ("target_pad_id", "target_vocab")][: len(embeddings)]
    return (
        embed_scale(),
        Question("positions", waves, ("learned", "sinusoidal", "none"), default=_positions(shapes, found, told)),
        *(id_(name, size, padding, also=("pad_id",)) for (name, _), size in zip(names, embeddings.values(), strict=True)),
        *decoding_ids(vocab),
        *vocabularies(*(name for _, name in names)),
    )


def _stack(shapes: Shapes, found: _Found, prefix: str, embedding: str | None, answers: Answers) -> StackSpec:
    width = shapes.size(found.width, -1)
    tables = _tables(shapes, found)
    rows = next(size for size in shapes.of[tables[0]] if size != 1) if tables else LONGEST
    first = found.layer(prefix, "0")
    return StackSpec(
        vocab=shapes.size(embedding, 0) if embedding else 0,
        d_model=width,
        layers=1 if found.lone else shapes.layers(f"{found.layer(prefix)}{_IN}"),
        attention=attention(answers, "n_heads", width, shapes.has(f"{first}self_attn.in_proj_bias")),
        hidden=shapes.size(f"{first}linear1.weight", 0),
        activation=answers.activation,
        bias=shapes.has(f"{first}linear1.bias"),
        norm_order=answers.norm_order,
        norm="standard" if shapes.has(f"{first}norm1.bias") else "bias-free",
        final_norm=shapes.has(f"{prefix}norm.weight"),
        positions=answers.positions if embedding else "none",
        max_positions=rows,
        embed_scale=answers.embed_scale if embedding else "none",
        causal=answers.flag("causal"),
    )


def _read(shapes: Shapes, answers: Answers) -> ModelSpec:
    found = _find(shapes)
    assert found is not None
    filled = _filled(shapes, found, answers.of)
    stacks = {
        name: _stack(shapes, found, prefix, filled.get(role), answers)
        for name, prefix, role in (
            ("encoder", found.encoder, "source_embedding"),
            ("decoder", found.decoder, "target_embedding"),
        )
        if prefix is not None
    }
    encoder, decoder = stacks.get("encoder"), stacks.get("decoder")
    if encoder is None and decoder is not None:  # a decoder alone looks at features in place of an encoder's output
        encoder = replace(decoder, vocab=0, layers=0, final_norm=False, positions="none")
    elif _writes(shapes, found, answers.of):
        encoder, decoder = None, encoder
    writes = decoder is not None and decoder.vocab and "output_layer" in filled
    return ModelSpec(
        decoder,
        encoder,
        output=OutputSpec(bias=bool(_bias(shapes, filled["output_layer"]))) if writes else None,
        pad_id=answers.optional_number("target_pad_id" if found.decoder is not None else "source_pad_id"),
        source_pad_id=answers.optional_number("source_pad_id"),
        start_id=answers.optional_number("bos_id"),
        end_id=answers.optional_number("eos_id"),
        unk_id=answers.optional_number("unk_id"),
    )


TORCH_TRANSFORMER = Layout(
    name="torch-transformer",
    title="PyTorch's nn.Transformer, nn.TransformerEncoder or nn.TransformerDecoder, or a layer of these",
    match=_match,
    rules=_rules,
    ask=_ask,
    read=_read,
    notes=("Masks are the caller's in PyTorch: what was masked in training is as told here.",),
    starts=("source", "target"),
    ends=("source", "target"),
)
