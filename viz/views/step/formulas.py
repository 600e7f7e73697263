"""Formula of a stage in LaTeX, and its symbols with the shapes of this run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model.requests.network import ROTARY
from model.trace import stages
from model.trace.stages import AXES, Stage
from model.trace.types import Trace
from viz.i18n.translate import _, localized
from viz.labels import tokens
from viz.labels.titles import axis, titles

_SYMBOLS = {
    "positioned": ("X",),
    "features": ("X",),
    "embedding": ("X",),
    "scaled": ("X",),
    "queries": ("Q",),
    "latents": ("L",),
    "keys": ("K",),
    "values": ("V",),
    "scores": ("S", "Q", "K"),
    "mask": ("M", "S"),
    "weights": ("A", "S", "M"),
    "context": ("C", "A", "V"),
    "output": ("O", "C"),
    "hidden": ("H",),
    "contracted": ("F", "H"),
    "residual": ("Y",),
    "normed": ("N",),
    "final": ("N",),
    "logits": ("Z",),
    "probabilities": ("Z",),
}
"""Matrices in the formula of a stage; the first is the result."""

_MADE_BY = {"Q": "queries", "K": "keys", "V": "values", "S": "scores", "M": "mask", "A": "weights", "C": "context", "Z": "logits"}
_MADE_BY |= {"H": "hidden", "O": "output"}


@dataclass(frozen=True)
class Symbol:
    """A matrix of a formula: its letter, shape, axis names and name."""

    letter: str
    shape: tuple[int, ...]
    axes: tuple[str, str]
    title: str


def symbols(trace: Trace, stage: Stage, head: int) -> list[Symbol]:
    """The matrices in a stage's formula that the run recorded."""
    matrices = []
    for position, letter in enumerate(_SYMBOLS.get(stage.name, ())):
        made = stage if position == 0 and stage.name in AXES else Stage(stage.place, _MADE_BY[letter])
        array = stages.tensor(trace, made, head)
        if array is not None:
            matrices.append(Symbol(letter, array.shape, AXES[made.name], titles()[made.name]))
    return matrices


def formula(trace: Trace, stage: Stage) -> str:
    """The formula in LaTeX; empty if the stage has none."""
    spec: Mapping[str, Any] = trace.model.get("spec") or {}
    stack = spec.get(stage.stack) or {}
    if (stack.get("attention") or {}).get("latent") and stage.name in _OF_LATENTS:
        return _OF_LATENTS[stage.name]
    if (spec.get("program") and stage.name in _OWN_WAYS) or (
        trace.recorded and stage.name not in ("context", "probabilities", "chosen")
    ):
        return ""
    if stage.site is not None and stage.name in stages.ATTENTION:
        memory = "x" if stage.site.kind == "self" else "y"
        return _attention(stage, stack, head_dim(trace, stage), memory)
    match stage.name:
        case "ids":
            return rf"w_i \;\mapsto\; \mathrm{{id}}_i \in \{{0, \dots, {stack['vocab'] - 1}\}}" if stack else ""
        case "embedding":
            return r"x_i = E_{\mathrm{id}_i}"
        case "scaled":
            root = rf"\sqrt{{{stack['d_model']}}} = " + localized(f"{stack['d_model'] ** 0.5:.4g}").replace(",", "{,}")
            return rf"x_i = \sqrt{{d_\mathrm{{model}}}} \cdot E_{{\mathrm{{id}}_i}}, \qquad {root}"
        case "positioned":
            scale = r"\sqrt{d_\mathrm{model}} \cdot " if stack["embed_scale"] == "sqrt" else ""
            return rf"x_i = {scale}E_{{\mathrm{{id}}_i}} + \mathrm{{PE}}_i"
        case "residual":
            return _residual(stage, stack)
        case "normed" | "final":
            return _norm(stack)
        case "hidden":
            return _hidden(stack)
        case "contracted":
            return r"F = H\,W_2" + (" + b_2" if stack["bias"] else "")
    return _output(stage.name, trace, spec.get("output") or {})


_OF_LATENTS: Mapping[str, str] = {
    "latents": r"L_p = \mathrm{RMSNorm}(x_p\,W^L)",
    "keys": r"K_p = [\,L_p\,W^K;\; R_p\,(x_p\,W^R)\,]",
    "values": r"V_p = L_p\,W^V",
}
"""Latent attention (DeepSeek-AI 2024, "DeepSeek-V2", equations 9 to 16): R_p rotates by the position, W^R is that of all heads."""

_OWN_WAYS = ("positioned", "queries", "keys", "values", "scores", "output", "logits")
"""Stages that architectures of other programs compute in their own ways: biases, rotations, distances."""


def head_dim(trace: Trace, stage: Stage) -> int | None:
    """The width of a head at a site, as recorded; None if it was not."""
    queries = None if stage.site is None else trace.at(stage.site).q
    return None if queries is None else int(queries.shape[-1])


def _hidden(stack: Mapping[str, Any]) -> str:
    """The hidden layer of a feed-forward network, multiplied by its gate where it has one."""
    name = {"relu": "ReLU", "silu": "SiLU"}.get(stack["activation"], "GELU")
    first, third = (" + b_1", " + b_3") if stack["bias"] else ("", "")
    inner = rf"H = \mathrm{{{name}}}(x\,W_1{first})"
    return rf"{inner} \odot (x\,W_3{third})" if stack.get("gated") else inner


def _attention(stage: Stage, stack: Mapping[str, Any], width: int | None, memory: str) -> str:
    spec = stack.get("attention") or {}
    if stage.name in ("queries", "keys") and is_rotated(stage, stack):
        letter, theirs = ("Q", "x") if stage.name == "queries" else ("K", memory)
        bias = f" + b^{letter}" if spec.get("bias") else ""
        base = f"{stack.get('rotary_base', 10000.0):.10g}"
        return rf"{letter}_p = R_p\,({theirs}_p\,W^{letter}{bias}), \qquad R_p:\; \angle = p \cdot {base}^{{-2i/d}}"
    return _attention_of(stage.name, spec, width, memory)


def is_rotated(stage: Stage, stack: Mapping[str, Any]) -> bool:
    """Whether rotary positions turn the queries and keys of a stage's site."""
    return stack.get("positions") in ROTARY and stage.site is not None and stage.site.kind == "self"


def _attention_of(name: str, spec: Mapping[str, Any], width: int | None, memory: str) -> str:
    of_head, bias = ("", " + b") if spec.get("projections") != "shared" else (r"_{[h]}", "")
    biased = bias if spec.get("bias") else ""
    root = r"\sqrt{\mathrm{head\_dim}}" if width is None else rf"\sqrt{{{width}}}"
    return {
        "queries": rf"Q = x{of_head}\,W^Q{biased.replace('b', 'b^Q')}",
        "keys": rf"K = {memory}{of_head}\,W^K{biased.replace('b', 'b^K')}",
        "values": rf"V = {memory}{of_head}\,W^V{biased.replace('b', 'b^V')}",
        "scores": rf"S = \frac{{Q\,K^\top}}{{{root}}}",
        "mask": r"S' = S + M, \qquad M_{ij} \in \{0, -\infty\}",
        "weights": r"A_{ij} = \frac{\exp S'_{ij}}{\sum_k \exp S'_{ik}}, \qquad S' = S + M",
        "context": r"C = A\,V",
        "output": r"O = [\,C_1;\, C_2;\, \dots\,]\; W^O" + (" + b^O" if spec.get("bias") else ""),
    }[name]


def _residual(stage: Stage, stack: Mapping[str, Any]) -> str:
    inside = r"\mathrm{FFN}" if stage.site is None else r"\mathrm{MultiHead}"
    norm = "RMSNorm" if stack["norm"] == "rms" else "LayerNorm"
    return rf"Y = x + {inside}(\mathrm{{{norm}}}(x))" if stack["norm_order"] == "pre" else rf"Y = x + {inside}(x)"


def _norm(stack: Mapping[str, Any]) -> str:
    power = round(math.log10(stack.get("norm_epsilon", 1e-5)))
    if stack["norm"] == "rms":
        return rf"N = \frac{{y}}{{\sqrt{{\frac{{1}}{{d}} \sum_j y_j^2 + 10^{{{power}}}}}}} \odot \gamma"
    spread = r"\sigma + 10^{-6}" if stack["norm"] == "unbiased" else rf"\sqrt{{\sigma^2 + 10^{{{power}}}}}"
    shift = "" if stack["norm"] == "bias-free" else r" + \beta"
    return rf"N = \frac{{y - \mu}}{{{spread}}} \odot \gamma{shift}"


def _output(name: str, trace: Trace, output: Mapping[str, Any]) -> str:
    bias = " + b" if output.get("bias") else ""
    method = (trace.request.get("decoding") or {}).get("method")
    taken = {
        "greedy": r"\hat{w}_i = \arg\max_v\, p_i(v)",
        "sample": r"\hat{w}_i \sim p_i",
        "beam": r"\hat{w} = \arg\max_{w}\, \frac{1}{n} \sum_{i=1}^{n} \ln p_i(w_i)",
    }
    return {
        "logits": (r"Z = x\,E^\top" if output.get("tied") else r"Z = x\,W") + bias,
        "probabilities": r"p_i(v) = \frac{\exp Z_{iv}}{\sum_u \exp Z_{iu}}",
        "chosen": "" if trace.request.get("target") is not None else taken.get(str(method), ""),
    }.get(name, "")


def bound(symbol: Symbol) -> str:
    """A symbol in words: "S: 12 × 11 (query × key), Scores"."""
    fields = {"shape": " × ".join(map(str, symbol.shape)), "axes": tokens.markdown(" × ".join(map(axis, symbol.axes)))}
    return _("${letter}$: {shape} ({axes}), {title}", letter=symbol.letter, title=symbol.title, **fields)
