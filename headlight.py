"""Records the attention of any PyTorch program into a file that Headlight opens. One file: it needs torch, numpy and safetensors.

    with headlight.record(model, source_tokens=["Ein", "Hund"]) as recording:
        model(ids)
    recording.save("hund.trace.safetensors")
    recording.show()  # in a notebook

Or without any change in the program:

    python headlight.py record --out hund.trace.safetensors train.py ARGS

How it works. PyTorch shows every operation of a program to a `TorchDispatchMode`. `Watch` is such a mode: it runs each operation
unchanged and notes which tensors the result was computed from. Attention is recognized by what is computed, not by names: a softmax
(or exp, divided by its sum) whose result is multiplied with values along the axis that sums to 1; or a fused kernel, which is given
queries, keys and values. What cannot be told from the computation is called unknown. docs/record.md says more.

The file reads from top to bottom: axes, the graph of what was computed from what, recognition, fused kernels, kinds and stacks,
joining the steps of a decode, the file, the picture, the command line.
"""

from __future__ import annotations

import argparse
import base64
import html
import itertools
import json
import math
import operator
import runpy
import struct
import sys
import threading
import time
import warnings
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save as save_tensors
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Recording", "Site", "record"]

Array = npt.NDArray[Any]

Tokens = Sequence[Any] | Tensor | Array | Mapping[str, Any] | Iterable[Any] | None
"""What `record` takes as the tokens of a strip."""

HIDDEN_SCORE = -5000.0
"""A score at or below it hides a key, if the weight is exactly 0: programs add −10,000, the smallest number of a type, or −∞."""

LAZY = 1 << 24
"""Sites of a fused kernel with more weights than this keep queries and keys instead, and readers compute the weights from them."""

LARGEST_GRAPH = 300_000
"""Operations after which the graph is forgotten, although no call of a model ended."""


class _Phrase(str):
    """A sentence that knows its template and what fills the gaps: Headlight translates the template. Elsewhere it is a text."""

    template: str
    fields: dict[str, Any]

    def __new__(cls, template: str, **fields: Any) -> _Phrase:
        """A field is a text, a number, another sentence or several of them."""
        texts = {name: "; ".join(own) if isinstance(own, tuple) else own for name, own in fields.items()}
        made = super().__new__(cls, template.format(**texts))
        made.template, made.fields = template, fields
        return made

    def to_json(self) -> dict[str, Any]:
        """Template and fields as JSON values."""

        def plain(value: Any) -> Any:
            return list(map(plain, value)) if isinstance(value, tuple) else value.to_json() if isinstance(value, _Phrase) else value

        return {"template": self.template, "fields": {name: plain(value) for name, value in self.fields.items()}}


def phrase(template: str, /, **fields: Any) -> _Phrase:
    """A sentence; translators of Headlight find its template by this call."""
    return _Phrase(template, **fields)


COMPILED = phrase(
    "torch.compile hides what a model computes. Record the model before it is compiled, or run the program with the environment "
    "variable TORCH_COMPILE_DISABLE=1."
)

APART = phrase(
    "the steps of a decode were not joined: the keys of earlier steps change in later steps, and how "
    "they were reordered was not recorded. Each step is an attention layer of its own."
)

CONVOLVES = phrase(
    "a softmax weighs windows of the input, as in a convolution whose kernel is computed from the input: it has no queries and keys"
)

FROM_ONE = 1e-2
"""Largest deviation of a row's sum from 1 that is not named: rounding explains it in any number type."""

MOST_NAMED = 12
"""Most heads or sites that a note names."""

EMPTY = phrase("the example has no token, as where all of it is padding")

THREADS = phrase(
    "it ran in another thread, and only the thread that began the recording is recorded. Run it in that thread, or begin the "
    "recording in the thread that runs it."
)

NESTED = phrase("a softmax of a nested tensor, whose examples differ in length")

MOST_REASONS = 20
"""Most reasons of one module under `missing`."""

MOST_HYPOTHESES = 64
"""Largest batch whose rows are all kept for a step after which the cache may be reordered."""


# --- Axes -----------------------------------------------------------------------------------------------------------------
#
# A program reshapes and permutes its tensors: [batch, head, query, key] becomes [batch · head, query, key] and so on. A *layout*
# says where each axis of a tensor comes from. Each axis is a tuple of factors, slowest first; a factor (axis, stride, size) is a
# part of one axis of the *root* tensor, whose index is the sum of digit · stride over its factors.

Factor = tuple[int, int, int]
"""(axis of the root, stride, size)."""

Layout = tuple[tuple[Factor, ...], ...]
"""The factors of each axis of a tensor; an axis without factors has length 1."""


def _whole(shape: Sequence[int]) -> Layout:
    """The layout of a root tensor: each axis is itself."""
    return tuple(((axis, 1, size),) if size != 1 else () for axis, size in enumerate(shape))


def _regrouped(layout: Layout, shape: Sequence[int]) -> Layout | None:
    """The layout after `view(shape)`: the factors in the same order, split where an axis is split. None: it cannot be told."""
    rest, found = [factor for axis in layout for factor in axis], list[tuple[Factor, ...]]()
    for wanted in shape:
        own, size = list[Factor](), wanted
        while size > 1 and rest:
            axis, stride, count = rest.pop(0)
            if size % count == 0:
                own.append((axis, stride, count))
                size //= count
            elif count % size == 0:
                own.append((axis, stride * (count // size), size))
                rest.insert(0, (axis, stride, count // size))
                size = 1
            else:
                return None
        if size != 1:
            return None
        found.append(tuple(own))
    return None if rest else tuple(found)


def _viewed(name: str, layout: Layout, args: Sequence[Any], shape: Sequence[int]) -> Layout | None:
    """The layout of what a view operation returns; None: it is not one that keeps all elements."""
    rank = len(layout)
    match name:
        case "view" | "_unsafe_view" | "reshape" | "_reshape_alias" | "squeeze" | "unsqueeze":
            return _regrouped(layout, shape)
        case "clone" | "detach" | "alias" | "_to_copy" | "lift_fresh" | "contiguous":
            return layout
        case "permute":
            return tuple(layout[axis % rank] for axis in args[1])
        case "t" | "numpy_T":
            return layout[::-1]
        case "transpose":
            order = list(range(rank))
            first, second = args[1] % rank, args[2] % rank
            order[first], order[second] = second, first
            return tuple(layout[axis] for axis in order)
        case "expand":
            return _broadcast(layout, shape)
    return None


def _broadcast(layout: Layout, shape: Sequence[int]) -> Layout:
    """The layout after broadcasting to `shape`: new and repeated axes get factors of roots of their own, below −1."""
    padded = ((),) * (len(shape) - len(layout)) + layout
    return tuple(
        own or (((-2 - axis, 1, size),) if size != 1 else ()) for axis, (own, size) in enumerate(zip(padded, shape, strict=True))
    )


def _refined(layout: Layout, finest: Sequence[Factor]) -> Layout:
    """The same layout with each factor split as in `finest`."""

    def parts(factor: Factor) -> list[Factor]:
        axis, stride, size = factor
        inside = [other for other in finest if other[0] == axis and stride <= other[1] < stride * size]
        inside.sort(key=lambda other: -other[1])
        return inside if math.prod(other[2] for other in inside) == size else [factor]

    return tuple(tuple(part for factor in axis for part in parts(factor)) for axis in layout)


def _arranged(tensor: Tensor, layout: Layout, groups: Sequence[Sequence[Factor]]) -> Tensor:
    """The tensor with one axis for each group of factors; a group that it does not have becomes an axis of size 1."""
    factors = [factor for axis in layout for factor in axis]
    digits = tensor.reshape([size for _axis, _stride, size in factors])
    order = [factors.index(factor) for group in groups for factor in group if factor in factors]
    if len(order) != len(factors):
        raise _NotUnderstoodError(phrase("its axes are arranged in a way that was not understood"))
    shape = [math.prod(size for factor in group for size in (factor[2],) if factor in factors) for group in groups]
    return digits.permute(order).reshape(shape)


Digits = dict[Factor, int]
"""Factors of which a tensor has one index only: it is a part, such as the context of the third head."""


def _part(layout: Layout, axis: int, start: int, size: int) -> tuple[Layout, Digits] | None:
    """The layout of the part `start` to `start + size` of an axis, and which part it is; None: it is none of equal parts."""
    length = math.prod(factor[2] for factor in layout[axis])
    if not size or length % size or start % size:
        return None
    split = _regrouped((layout[axis],), (length // size, size))
    if split is None:
        return None
    digits, place = Digits(), start // size
    for factor in reversed(split[0]):
        digits[factor] = place % factor[2]
        place //= factor[2]
    return (*layout[:axis], split[1], *layout[axis + 1 :]), digits


def _whole_of(parts: Sequence[Digits]) -> tuple[Factor, ...] | None:
    """The factors, slowest first, whose indices the parts count through in order; None: they do not."""
    if len({frozenset(part) for part in parts}) != 1:
        return None
    varying = [factor for factor in parts[0] if len({part[factor] for part in parts}) > 1]
    varying.sort(key=lambda factor: sum(a[factor] != b[factor] for a, b in itertools.pairwise(parts)))
    counted = list(itertools.product(*(range(factor[2]) for factor in varying)))
    return tuple(varying) if [tuple(part[factor] for factor in varying) for part in parts] == counted else None


# --- What was computed from what ------------------------------------------------------------------------------------------


NO_PARTS = frozenset[int]()
"""As `later` of a tensor that begins with the first position: almost all do."""


class _Node:
    """What one tensor was computed from. It holds no tensor, so that no tensor lives longer than in the program.

    Attributes:
        name: the operation, such as `bmm`; empty: the tensor was there before.
        parents: nodes of its arguments.
        param: whether it was computed from parameters only.
        before: whether it was computed in an earlier call, whose graph was forgotten.
        sites: one bit for each attention site that it depends on.
        inputs: one bit for each input of the program whose positions it may have, see `_follow_inputs`. A cut keeps it.
        outside: whether it was there before, or was made while no module ran: what a module takes of these is an input.
        integer: whether its elements are integers, such as ids.
        later: lengths of the slices that it is made of and that begin after the first position, as a cache without its oldest
            keys does.
        product, weights, spread, context: what its elements are, each with the layout: q · k; attention weights; weights times
            values, before the sum over keys; weighted values.
        total: the weights that it is the sum of, the axis of the sum, and its layout.
        order: nodes count from 1.
        digits: the indices of the factors of which the context is only one part.
        stacked: whether tensors were put behind each other along another axis than the last, as heads may be.
        part: of an operation that takes parts: number of the whole's node, length of the axis, where the part starts, its length.
        random: whether its elements were drawn at random, such as the zeros of dropout.
        chosen: what index_select took along the first axis, in this order; None: it is no such selection.
        packed: whether the single rows of several heads, [batch, head, 1, head_dim], stand below each other as rows of one head.
    """

    __slots__ = (
        "__weakref__", "before", "chosen", "context", "digits", "inputs", "integer", "later", "name", "order", "outside", "packed",
        "param", "parents", "part", "product", "random", "sites", "spread", "stacked", "total", "weights",
    )  # fmt: skip
    count = 0

    def __init__(self, name: str, parents: tuple[_Node, ...] = (), param: bool = False) -> None:
        self.name, self.parents, self.param, self.before, self.sites = name, parents, param, False, 0
        for parent in parents:
            self.sites |= parent.sites
        self.order = _Node.count = _Node.count + 1
        self.product: tuple[_Product, Layout] | None = None
        self.weights: tuple[_Weights, Layout] | None = None
        self.spread: tuple[_Weights, Layout] | None = None
        self.context: tuple[_Weighing, Layout] | None = None
        self.total: tuple[_Weights, int, Layout | None] | None = None
        self.packed = self.random = self.stacked = self.outside = self.integer = False
        self.inputs, self.later = 0, NO_PARTS
        self.chosen: tuple[int, ...] | None = None
        self.digits: Digits = {}
        self.part: tuple[int, int, int, int] | None = None

    def cut(self) -> None:
        """Forgets what it was computed from, at the end of a call."""
        self.before, self.parents = self.before or bool(self.name), ()
        self.product = self.weights = self.spread = self.context = self.total = None

    def base(self) -> _Node:
        """The node that this one is a view or a copy of."""
        node = self
        while node.name in VIEWS and node.parents:
            node = node.parents[0]
        return node


@dataclass(eq=False)
class _Product:
    """A matrix product of two computed tensors: perhaps of queries and keys."""

    left: Tensor | None
    right: Tensor | None


@dataclass(eq=False)
class _Dropout:
    """Dropout of weights: it draws some at random, sets them to 0 and multiplies the others by 1 / (1 − p).

    Attributes:
        before: the weights as they would be without it, with the layout.
        scaled: whether the others were multiplied. A mask that is drawn and scales nothing is no dropout.
    """

    before: tuple[Tensor, Layout]
    scaled: bool


@dataclass(eq=False)
class _Weights:
    """The result of a softmax, or of exp: attention weights, if they go on to weigh values.

    Attributes:
        tensor: the result; None: released.
        scores: the input, with masked scores; None: unknown.
        axis: the axis that sums to 1; None: exp, which no sum has divided yet.
        node: of the input.
        module: where it ran.
        used: whether it weighed values, or became other weights.
        dropout: of these weights; None: none was seen.
        broadcast: the weights that were multiplied with values by broadcasting.
    """

    tensor: Tensor | None
    scores: Tensor | None
    axis: int | None
    node: _Node
    module: str
    used: bool = False
    dropout: _Dropout | None = None
    broadcast: tuple[Tensor, Layout] | None = None


@dataclass(eq=False)
class _Weighing:
    """Weights that weighed values, until it is known which axes are the heads.

    Attributes:
        operand: the weights as they were multiplied, after dropout.
        values: what they weighed; None: not seen as one tensor.
        rows: the axes of the weights that are queries, or queries and heads.
        out: the weighted values.
        normalized: whether the weights sum to 1, or their sum divided the result.
        divisor: the sum that divided the result; its reciprocal if `reciprocal`.
        kernel: the arguments of the fused kernel that weighed; None: the program computed its weights.
        merged: the layout of the context where heads and head_dim share an axis.
        heads, examples: factors of which that is known otherwise: heads are summed or have parameters of their own.
        whole: whether `merged` is the layout of the whole context, not of a part of it.
        parts: factors by which the context was taken apart.
        stacked: whether the queries were stacked, so that the order of their axes is the program's own.
        guess: what is to be said where nothing told the heads, and the usual order of axes was taken.
        beside: weighings whose contexts were added to this one, so that they have the same heads.
        projected: for each factor, the parameters with which each of its parts was projected.
    """

    site: Site
    weights: _Weights
    operand: tuple[Tensor, Layout]
    values: tuple[Tensor, Layout] | None
    rows: tuple[Factor, ...]
    out: tuple[Tensor, Layout]
    normalized: bool
    divisor: tuple[Tensor, Layout] | None = None
    reciprocal: bool = False
    kernel: dict[str, Any] | None = None
    merged: Layout | None = None
    whole: bool = False
    stacked: bool = False
    guess: _Phrase | None = None
    beside: list[_Weighing] = field(default_factory=list)
    parts: set[Factor] = field(default_factory=set)
    heads: set[Factor] = field(default_factory=set)
    examples: set[Factor] = field(default_factory=set)
    projected: dict[Factor, dict[int, tuple[int, int]]] = field(default_factory=dict)


@dataclass(eq=False)
class Site:
    """One attention that was seen, of one example.

    Attributes:
        module: path of the module that computed it.
        operation: the operation that weighed the values.
        origin: `computed` by the program, or `recomputed`, because a fused kernel ran.
        index, call: the how-many-th attention it is, and the call of the model that it belongs to; both from 0.
        weights: [head, query, key], float32; None: `q`, `k`, `mask` and `scale` say what they are.
        mask: [query, key] of bool, True where the query may attend to the key.
        q, k, v, context: [head, query or key, head_dim], float32, as far as they are known.
        scale: factor of q · k in a fused kernel.
        difference: largest absolute difference between recomputed weights · v and the kernel's output; None: nothing to compare.
        batch: length of the batch axis.
        kind: `self`, `cross` or `unknown`.
        stack, pass_, layer: the rest of its name; docs/trace.md explains them.
        query_sites, key_sites: one bit for each earlier site that its queries and its keys depend on.
        query_inputs, key_inputs: one bit for each input of the program whose positions its queries and its keys may be.
        later: lengths of the parts that its keys are made of and that begin after the first position.
        memory: numbers of the nodes that the keys of cross-attention were made from.
        joined: whether it has the rows of several steps of a decode.
        recurrent: whether these are the steps of a decoder without self-attention.
        entered: a number for each time that a module runs; 0: outside of any.
        problem: why it was omitted; empty: it was not.
        order: the example of the step before that each example goes on from, where the cache was reordered; empty: it was not.
        hypotheses: where it was reordered, the site of each example; once steps are joined, of all its steps.
        parts: what its queries may be a part of, as _Node.part says it.
        key_origins: numbers of the nodes that its keys were projected from.
        key_joined: number of the node that joined its keys after their projection, such as with those of a cache; -1: none did.
    """

    module: str
    operation: str
    origin: str
    index: int
    call: int
    weights: Array | None = None
    mask: Array | None = None
    q: Array | None = None
    k: Array | None = None
    v: Array | None = None
    context: Array | None = None
    scale: float = 1.0
    difference: float | None = None
    batch: int = 1
    kind: str = "unknown"
    stack: str = "program"
    pass_: int = 0
    layer: int = 0
    query_sites: int = 0
    key_sites: int = 0
    query_inputs: int = 0
    key_inputs: int = 0
    later: frozenset[int] = frozenset()
    memory: frozenset[int] = frozenset()
    joined: bool = False
    recurrent: bool = False
    entered: int = 0
    problem: str = phrase("its heads could not be identified")
    order: tuple[int, ...] = ()
    hypotheses: tuple[Site, ...] = ()
    parts: tuple[tuple[int, int, int, int], ...] = ()
    key_origins: frozenset[int] = frozenset()
    key_joined: int = -1

    @property
    def name(self) -> str:
        """The text form of the site."""
        return f"{self.stack}.{self.pass_}.{self.layer}.{self.kind}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        held = self.q if self.weights is None else self.weights
        assert held is not None
        assert self.mask is not None
        return len(held), self.mask.shape[0], self.mask.shape[1]

    def written(self) -> Array:
        """The weights [head, query, key], computed now if only queries and keys are kept."""
        if self.weights is not None:
            return self.weights
        assert self.q is not None
        assert self.k is not None
        assert self.mask is not None
        q, k, mask = (torch.from_numpy(array) for array in (self.q, self.k, self.mask))
        return _numpy(_softmax(q @ k.transpose(-1, -2) * self.scale, mask))

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        arrays = (self.weights, self.mask, self.q, self.k, self.v, self.context)
        return sum(array.nbytes for array in arrays if array is not None) + sum(own.nbytes for own in self.hypotheses)


def _numpy(tensor: Tensor) -> Array:
    return np.array(tensor.detach().to("cpu", torch.float32).contiguous().numpy())


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The weights of scores [head, query, key] with a mask [query, key]; a row without any allowed key is 0."""
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0) if not bool(mask.all()) else scores.softmax(-1)


# --- Operations -----------------------------------------------------------------------------------------------------------

VIEWS = frozenset(
    "view _unsafe_view reshape _reshape_alias squeeze unsqueeze expand permute transpose t numpy_T "
    "clone detach alias _to_copy lift_fresh contiguous".split()
)
"""Operations that only rearrange or copy numbers. These and the following are names of PyTorch's operations (ATen)."""

SOFTMAX = frozenset("_softmax softmax _safe_softmax _masked_softmax".split())
PRODUCTS = frozenset("mm bmm baddbmm".split())
PROJECTIONS = PRODUCTS | frozenset("addmm linear convolution _convolution mkldnn_linear".split())
KEEPS_WEIGHTS = frozenset(
    "mul div add sub pow masked_fill where nan_to_num clamp clamp_min clamp_max minimum maximum threshold relu tril triu "
    "native_dropout".split()
)
"""Operations after which weights are still weights: they may stand between the softmax and the product with the values."""

RANDOM = frozenset("bernoulli rand rand_like randint randint_like random uniform randn randn_like normal native_dropout".split())
"""Operations that draw numbers at random."""

NORMALIZES = frozenset("native_layer_norm native_group_norm _fused_rms_norm rms_norm native_batch_norm".split())
PARTS_OF_A_NORM = VIEWS | frozenset("mul div sub rsqrt sqrt reciprocal pow mean var std var_mean linalg_vector_norm".split())
"""Operations of which programs write a normalization out."""

PARTS = frozenset("split split_with_sizes chunk slice narrow select unbind unsafe_split unsafe_split_with_sizes".split())
JOINS = frozenset(("cat", "stack"))
PASSES_IDS = VIEWS | PARTS | JOINS | {"embedding"}
REDUCES = frozenset("sum mean amax max select".split())
MIXES = frozenset(("add", "mul", "cat"))
"""Operations in which additive attention, or a product that is summed, brings a query and a key together."""

SELECTIONS = frozenset(("index_select", "index"))
SAME_SHAPE = frozenset("native_dropout masked_fill tril triu _log_softmax".split())
"""Operations that PyTorch does not call pointwise, although each element of the result stands where its element was."""


CASTS_INSIDE = frozenset(
    "_transformer_encoder_layer_fwd _native_multi_head_attention _trilinear "
    "einsum tensordot matrix_power linalg_matrix_power linalg_multi_dot cov corrcoef".split()
)
"""Operations that autocast leaves as they are and whose parts it runs in another number type."""


class _Operation:
    """What is known of an operation before it runs; `name` is `bmm` for `aten::bmm`, and `mul` for `aten::mul_`, too."""

    def __init__(self, func: Any) -> None:
        schema = getattr(func, "_schema", None)
        self.full_name = str(schema.name if schema else func.name()).replace("::", ".")
        self.name = self.full_name.rpartition(".")[2]
        if not self.name.startswith("_"):
            self.name = self.name.rstrip("_")
        self.arguments = [argument.name for argument in schema.arguments] if schema else []
        tensors_only = schema is not None and not torch._C._should_allow_numbers_as_tensors(self.name)
        self.tensors = [n for n, a in enumerate(schema.arguments) if tensors_only and str(a.type) == "Tensor"] if schema else []
        self.writes = [n for n, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write] if schema else []
        self.pointwise = torch.Tag.pointwise in getattr(func, "tags", ()) or self.name in SAME_SHAPE
        dispatched = schema is not None and isinstance(func, torch._ops.OpOverload)
        implicit = torch._C.DispatchKey.CompositeImplicitAutograd
        self.composite = dispatched and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), implicit)
        self.dispatched = func.name() if dispatched else ""
        self.views = dispatched and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "ADInplaceOrView")
        named = any(word in self.name for word in ("attention", "attn", "fmha")) or self.name == "_transformer_encoder_layer_fwd"
        self.fused = named and "backward" not in self.name and "choice" not in self.name

    def decomposes(self, tensors: Sequence[Tensor]) -> bool:
        """Whether it is made of other operations on this device; PyTorch shows it whole in inference mode."""
        devices = {tensor.device.type.upper() for tensor in tensors}
        return self.composite and not any(torch._C._dispatch_has_kernel_for_dispatch_key(self.dispatched, d) for d in devices)

    def with_tensors(self, args: Any) -> Any:
        """The arguments, with tensors for numbers that a traced module's constants became: PyTorch shows these as plain numbers."""
        if not any(isinstance(args[place], int | float) for place in self.tensors if place < len(args)):
            return args

        def tensor_of(number: Any) -> Tensor:
            return torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None)

        numbers = [place in self.tensors and isinstance(arg, int | float) for place, arg in enumerate(args)]
        return tuple(tensor_of(arg) if is_number else arg for arg, is_number in zip(args, numbers, strict=True))

    def written(self, args: Any) -> list[Tensor]:
        """The arguments that it changes in place."""
        return [args[place] for place in self.writes if place < len(args) and isinstance(args[place], Tensor)]


_OPERATIONS: dict[Any, _Operation] = {}
"""What is known of each operation that was seen so far."""


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    """The tensors among the arguments or results of an operation."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, Tensor))


class _NotUnderstoodError(Exception):
    """An attention was seen, but not its parts. What is said of it is listed under `missing`."""

    def __init__(self, said: _Phrase) -> None:
        super().__init__(said)
        self.said = said


def _in_the_precision_of_the_program() -> Any:
    """Lets an operation that is made of others choose their number types by autocast, as it does in a program without a mode.

    Below a mode PyTorch leaves autocast out, and such an operation would compute in float32.
    """
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]  # as where the program called it
        cast = [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")]
    keys, excluded = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for enabled, key in zip(cast, (keys.AutocastCPU, keys.AutocastCUDA), strict=True):
        excluded = excluded.remove(key) if enabled else excluded
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


def _as_without_a_mode() -> Any:
    """Lets a composite operation decompose as it does in a program without a mode.

    In inference mode, views of parameters remember that these require gradients, and matmul chooses its kernel by it. Below a mode
    PyTorch leaves out the key ADInplaceOrView, which makes such views.
    """
    keys, excluded = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded.remove(keys.ADInplaceOrView))


class _Watch(TorchDispatchMode):
    """Sees every operation that a program runs, runs it unchanged, and finds the attention among them."""

    supports_higher_order_operators = True  # flex_attention is one

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recording = recording
        self.nodes: dict[int, tuple[weakref.ref[Tensor], _Node]] = {}
        self.writes: dict[int, _Node] = {}
        self.products: deque[_Product] = deque()
        self.open_weights: deque[_Weights] = deque()
        self.weighings: list[_Weighing] = []
        self.oldest, self.inputs, self.ids = _Node.count, 0, 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Lets compiled parts stay compiled, as they are without a recording; flex_attention compiles itself."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs one operation of the program as asked, and notes its inputs and outputs; a backward pass is not noted."""
        kwargs = kwargs or {}
        if torch._C._current_autograd_node() is not None:  # a backward pass
            return func(*args, **kwargs)
        inputs = list(_tensors((*args, *kwargs.values())))
        if any(tensor.is_nested and tensor.layout == torch.jagged for tensor in inputs):
            return NotImplemented  # its class runs it on the packed values, which is seen
        operation = _OPERATIONS.get(func) or _OPERATIONS.setdefault(func, _Operation(func))
        args = operation.with_tensors(args)
        nested = any(tensor.is_nested for tensor in inputs)  # these are made of other operations than plain tensors
        precision = _in_the_precision_of_the_program if operation.name in CASTS_INSIDE else nullcontext
        if operation.composite and not nested and operation.decomposes(inputs):
            with nullcontext() if operation.views else _as_without_a_mode(), precision(), self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        if self.recording.finished:
            with precision():
                return func(*args, **kwargs)
        with self.recording.guarded(), torch.no_grad():
            self._before(operation, args)
            if operation.name in KEEPS_WEIGHTS:
                self._drop(func, operation, args, kwargs, inputs)
        with precision():
            out = func(*args, **kwargs)
        with self.recording.guarded(), torch.no_grad():
            self._after(operation, args, kwargs, inputs, out)
        return out

    # What was computed from what

    def node(self, tensor: Tensor) -> _Node:
        """The node of a tensor; a new one for a tensor that was there before."""
        entry = self.nodes.get(id(tensor))
        if entry is not None and entry[0]() is tensor:
            return entry[1]
        node = _Node("", (), isinstance(tensor, nn.Parameter))
        node.outside = (
            not node.param and tensor.dim() > 0 and tensor.numel() > 0 and id(tensor) not in self.recording.modules.buffers
        )
        node.integer = not tensor.is_floating_point()
        return self._keep(tensor, node)

    def written(self, tensor: Tensor) -> _Node:
        """The node of a tensor with what was written into its memory afterwards, such as keys into the zeros of a cache."""
        node, write = self.node(tensor), self.writes.get(tensor.untyped_storage()._cdata)
        return node if write is None or write.order <= node.order else _Node("copy", (node, write))

    def _keep(self, tensor: Tensor, node: _Node) -> _Node:
        place, nodes = id(tensor), self.nodes

        def forget(gone: weakref.ref[Tensor]) -> None:
            if place in nodes and nodes[place][0] is gone:
                del nodes[place]

        nodes[place] = (weakref.ref(tensor, forget), node)
        return node

    def _before(self, operation: _Operation, args: Any) -> None:
        """Copies weights, scores and values that the operation is about to overwrite."""
        for tensor in operation.written(args):
            storage = tensor.untyped_storage()._cdata
            for weighing in self.weighings:
                for name in ("operand", "values", "out"):
                    pair = getattr(weighing, name)
                    if pair is not None and pair[0] is not tensor and pair[0].untyped_storage()._cdata == storage:
                        setattr(weighing, name, (pair[0].detach().clone(), pair[1]))
            for weights in self.open_weights:
                for name in ("tensor", "scores"):
                    held = getattr(weights, name)
                    if held is not None and held.untyped_storage()._cdata == storage:
                        setattr(weights, name, held.detach().clone())

    def _drop(self, func: Any, operation: _Operation, args: Any, kwargs: Any, inputs: list[Tensor]) -> None:
        """Keeps weights as they are before dropout, and changes them as the program changes what is left of them."""
        own = next((tensor for tensor in inputs if self.node(tensor).weights is not None), None)
        held = None if own is None else self.node(own).weights
        if own is None or held is None:
            return
        weights, layout = held
        others = [tensor for tensor in inputs if tensor is not own]
        if torch.broadcast_shapes(own.shape, *(tensor.shape for tensor in others)) != own.shape:
            return  # values, which it weighs
        noise = next((tensor for tensor in others if self.node(tensor).random), None)
        if operation.name == "native_dropout" or noise is not None:
            scaled = noise is None or (operation.name == "mul" and bool(noise.max() > 1 or not noise.any()))
            before = own.detach().clone() if operation.writes else own.detach()
            weights.dropout = weights.dropout or _Dropout((before, layout), False)
            weights.dropout.scaled |= scaled
        elif weights.dropout is not None:
            if not weights.dropout.scaled and _grows(operation.name, others[0] if others else args[-1]):
                weights.dropout.scaled = True
                return
            before = _arranged(weights.dropout.before[0], weights.dropout.before[1], layout)
            before = before.clone() if operation.writes else before
            weights.dropout.before = (func(*[before if each is own else each for each in args], **kwargs), layout)

    def _after(self, operation: _Operation, args: Any, kwargs: Any, inputs: list[Tensor], out: Any) -> None:
        nodes = [self.node(tensor) for tensor in inputs]
        if self.writes:
            written = [(node, self.writes.get(tensor.untyped_storage()._cdata)) for node, tensor in zip(nodes, inputs, strict=True)]
            nodes += [write for node, write in written if write is not None and write.order > node.order]
        outputs = list(_tensors(out if isinstance(out, tuple | list) else (out,)))
        if not outputs:
            return
        if _Node.count - self.oldest > LARGEST_GRAPH:
            self.end_call()
        param = bool(nodes) and all(node.param for node in nodes)
        if operation.name in SELECTIONS:  # what says which parts are taken is no part of the result
            nodes = [node for node, tensor in zip(nodes, inputs, strict=False) if tensor is inputs[0]] + nodes[len(inputs) :]
        made = [_Node(operation.name, tuple(nodes), param) for _output in outputs]
        rearranges = operation.pointwise or operation.name in VIEWS
        for node in made:
            node.random = operation.name in RANDOM or (rearranges and any(parent.random for parent in nodes))
        self._follow_inputs(operation, args, nodes, outputs, made)
        for tensor, node in zip(outputs, made, strict=True):
            self._keep(tensor, node)
        for tensor in operation.written(args):
            self.writes[tensor.untyped_storage()._cdata] = made[0]
        if not param:
            self._recognize(_Seen(operation, args, kwargs, inputs, nodes, outputs, made))

    def _follow_inputs(
        self, operation: _Operation, args: Any, nodes: Sequence[_Node], outputs: Sequence[Tensor], made: Sequence[_Node]
    ) -> None:
        """Notes from which inputs of the program the positions of a result come.

        Integers pass them on as ids only: to their parts and to what is looked up by them. Masks and lengths say nothing.
        """
        runs, name, bits, later = bool(self.recording.modules.running), operation.name, 0, NO_PARTS
        for node in nodes:
            if runs and node.outside and not node.inputs and not node.param:
                node.inputs = 1 << self.inputs
                self.ids |= node.inputs if node.integer else 0
                self.inputs += 1
            if not node.integer or name in PASSES_IDS:
                bits |= node.inputs
            if node.later:
                later |= node.later
        if later and name in PROJECTIONS:
            later = NO_PARTS
        if name == "roll" and len(args) > 2:
            rank = outputs[0].dim()
            later |= {outputs[0].shape[axis] for axis in args[2] if axis % rank < rank - 1}
        converts = name in VIEWS and any(node.integer for node in nodes)
        for tensor, node in zip(outputs, made, strict=True):
            node.outside = not runs and tensor.dim() > 0 and tensor.numel() > 0
            node.integer = not tensor.is_floating_point()
            node.inputs = 0 if converts and not node.integer else bits
            node.later = later

    def end_call(self) -> None:
        """After a call of the model: finishes what is open, and forgets the graph, so that it does not grow with the program."""
        with self.recording.guarded(), torch.no_grad():
            while self.weighings:
                self._finish(self.weighings[0])
        while self.open_weights:
            self._close(self.open_weights.popleft())
        self.products.clear()
        self.writes.clear()
        for _tensor, node in list(self.nodes.values()):
            node.cut()
        self.oldest = _Node.count

    def _close(self, weights: _Weights) -> None:
        """Lets go of weights; a softmax that weighed nothing is named."""
        if not weights.used and weights.axis is not None and weights.tensor is not None:
            shape = list(weights.tensor.shape)
            said = phrase("no values were seen to be weighted by a softmax of shape {shape}", shape=str(shape))
            self.recording.not_understood(weights.module, said)
        weights.tensor = weights.scores = weights.dropout = weights.broadcast = None

    # Recognition

    def _recognize(self, seen: _Seen) -> None:
        name, parent, node = seen.operation.name, seen.nodes[0] if seen.nodes else None, seen.made[0]
        if parent is None:
            return
        if seen.operation.fused:
            self._fused(seen)
        elif any(tensor.is_nested for tensor in (*seen.inputs, *seen.outputs)):
            if name in SOFTMAX:
                self.recording.not_understood(self.recording.modules.path(), NESTED)
        elif name in SOFTMAX:
            axis = seen.args[2] if name == "_masked_softmax" else seen.args[1]
            self._new_weights(seen.out, seen.inputs[0], axis % max(1, seen.out.dim()), parent, node)
        elif name == "exp" and seen.out.is_floating_point():
            self._new_weights(seen.out, seen.inputs[0], None, parent, node)
        elif name in PRODUCTS:
            self._product(seen)
        elif name in VIEWS:
            self._view(seen, parent)
        elif name == "slice":
            self._slice(seen, parent)
        elif name == "sum":
            self._sum(seen, parent)
        elif seen.operation.pointwise:
            self._pointwise(seen)
        elif name in SELECTIONS:
            node.chosen = seen.chosen()
        if name in PARTS:
            self._take_parts(seen, parent)
        elif name in JOINS:
            self._join(seen)
        elif name not in VIEWS and not seen.operation.pointwise:  # the heads of what goes in here will not be joined any more
            for each in seen.nodes:
                if each.context is not None and each.context[0].normalized and not self._told_by_use(seen, each):
                    self._finish(each.context[0])

    def _take_parts(self, seen: _Seen, parent: _Node) -> None:
        """Parts of a context: which ones they are."""
        parts = list(seen.parts())
        for node, (axis, start, size) in zip(seen.made, parts, strict=True):
            node.part = parent.base().order, seen.inputs[0].shape[axis], start, size
            if start > 0 and seen.operation.name in ("slice", "narrow") and axis < seen.inputs[0].dim() - 1:
                node.later |= {size}
        if parent.context is None:
            return
        weighing, layout = parent.context
        for node, (axis, start, size) in zip(seen.made, parts, strict=True):
            part = _part(layout, axis, start, size)
            if part is not None:
                own = part[0][:axis] + part[0][axis + 1 :] if seen.operation.name in ("select", "unbind") else part[0]
                node.context, node.digits = (weighing, own), parent.digits | part[1]
                weighing.parts |= set(part[1])

    def _join(self, seen: _Seen) -> None:
        """All parts of a context side by side: the axis that they are joined along has the factor that told them apart."""
        seen.made[0].stacked = seen.axis(1) < seen.out.dim() - 1
        nodes, held = seen.nodes[: len(seen.inputs)], seen.nodes[0].context
        contexts = [node.context for node in nodes]
        if held is None or any(each is None for each in contexts):
            return
        (weighing, layout), whole, axis = held, _whole_of([node.digits for node in nodes]), seen.axis(1)
        others = [each[0] for each in contexts if each is not None and each[0] is not weighing]
        if others and seen.operation.name == "cat" and not any(factor[0] == -1 for factor in layout[axis]):
            apart = [each[1][:axis] + each[1][axis + 1 :] for each in contexts if each is not None]
            if all(each == apart[0] for each in apart):  # rows of several weighings, which have the same heads
                weighing.beside += others
                rows = ((-2 - len(layout) - axis, 1, seen.out.shape[axis]),)
                seen.made[0].context = weighing, (*layout[:axis], rows, *layout[axis + 1 :])
            return
        if not whole or any(each is None or each[0] is not weighing or each[1] != layout for each in contexts):
            return
        before, own, after = layout[:axis], layout[axis : axis + 1], layout[axis:]
        joined = (*before, whole + own[0], *after[1:]) if seen.operation.name == "cat" else (*before, whole, *after)
        node = seen.made[0]
        node.context = weighing, joined
        node.digits = {factor: digit for factor, digit in nodes[0].digits.items() if factor not in whole}
        self._merge(node)

    def _merge(self, node: _Node) -> None:
        """Notes that heads and head_dim share an axis, if they do: the heads are told then."""
        if node.context is not None and any(len(axis) > 1 and any(f[0] == -1 for f in axis) for axis in node.context[1]):
            weighing, layout = node.context
            whole = not node.digits
            if weighing.merged is None or (whole and not weighing.whole):
                weighing.merged, weighing.whole = layout, whole
            if weighing.normalized and whole:
                self._finish(weighing)

    def _told_by_use(self, seen: _Seen, node: _Node) -> bool:
        """Learns from what goes on with a context which factors are heads. Returns whether more parts of it are to come.

        Heads have parameters of their own, or are summed; a projection treats all examples alike.
        """
        assert node.context is not None
        weighing, layout = node.context
        rows = set(weighing.rows)
        if seen.operation.name in ("sum", "mean"):
            summed = {factor for axis in seen.axes() for factor in layout[axis]}
            if not any(factor in rows or factor[0] < 0 for factor in summed):
                weighing.heads |= summed
            return False
        place = seen.nodes.index(node)
        params = [
            n for n, each in enumerate(seen.nodes[: len(seen.inputs)]) if each.param and n != place and seen.inputs[n].dim() > 1
        ]
        if seen.operation.name not in PROJECTIONS or not params:
            return False
        param = seen.inputs[params[-1]]
        free = {factor for axis in layout for factor in axis if all(other[0] >= 0 for other in axis)}
        if param.dim() == 3 and seen.inputs[place].dim() == 3:
            own = {factor for factor in layout[0] if _varies(param, layout[0], factor)}
            weighing.heads |= own
            free -= own
        weighing.examples |= free - rows
        source = param.untyped_storage()._cdata, int(param.storage_offset())
        for factor, digit in node.digits.items():
            uses = weighing.projected.setdefault(factor, {})
            uses[digit] = source
            if len(set(uses.values())) > 1:
                weighing.heads.add(factor)
        return any(len(weighing.projected[factor]) < factor[2] for factor in node.digits)

    def _new_weights(self, out: Tensor, scores: Tensor | None, axis: int | None, source: _Node, node: _Node) -> None:
        if out.dim() > 1:
            weights = _Weights(out, scores, axis, source, self.recording.modules.path())
            node.weights = (weights, _whole(out.shape))
            self.open_weights.append(weights)
            if len(self.open_weights) > 64:
                self._close(self.open_weights.popleft())

    def _product(self, seen: _Seen) -> None:
        """A matrix product: weights times values if one operand is weights, contracted along their keys; else perhaps q · k."""
        pair, nodes, node = seen.inputs[-2:], seen.nodes[len(seen.inputs) - 2 : len(seen.inputs)], seen.made[0]
        for side in (0, 1):
            held, other = nodes[side].weights, pair[1 - side]
            if held is None or held[0].used or held[0].tensor is None or not _sums_over(held[0], held[1][-2 if side else -1]):
                continue
            weights, layout = held
            if nodes[1 - side].base().name == "im2col" and _queries_and_keys(weights.node)[0] is None:
                weights.used = True
                self.recording.not_understood(weights.module, CONVOLVES)
                return
            *stacked, first, second = layout
            keys, rows = (first, second) if side else (second, first)
            width = ((-1, 1, other.shape[-2 if side else -1]),) if other.shape[-2 if side else -1] != 1 else ()
            values = (*stacked, width, keys) if side else (*stacked, keys, width)
            out = (*stacked, width, rows) if side else (*stacked, rows, width)
            self._open(weights, (pair[side], layout), (other, values), rows, keys, (seen.out, out), node, seen.operation)
            return
        if not any(each.param for each in nodes):
            product = _Product(pair[0], pair[1])
            node.product = (product, _whole(seen.out.shape))
            self.products.append(product)
            if len(self.products) > 16:
                old = self.products.popleft()
                old.left = old.right = None

    def _open(
        self,
        weights: _Weights,
        operand: tuple[Tensor, Layout],
        values: tuple[Tensor, Layout] | None,
        rows: tuple[Factor, ...],
        keys: tuple[Factor, ...],
        out: tuple[Tensor, Layout],
        node: _Node,
        operation: _Operation,
    ) -> None:
        """Weights weighed values: a site. Its heads are told by what happens to the result."""
        normalized = weights.axis is not None
        if not normalized and weights.tensor is not None:
            weights.axis = keys[0][0]
            normalized = bool(((weights.tensor.sum(weights.axis) - 1).abs() < 1e-3).all())
        weights.used = True
        site = self.recording.new_site(operation.full_name, "computed")
        weighing = _Weighing(site, weights, operand, values, rows, out, normalized)
        self.weighings.append(weighing)
        node.sites |= 1 << site.index
        node.context = (weighing, out[1])
        query, key = _queries_and_keys(weights.node)
        weighing.stacked = query is not None and _is_stacked(query)
        if query is None and values is not None:
            query, key = _added(weights.node, self.node(values[0]))
        site.query_inputs = site.key_inputs = weights.node.inputs
        if query is None and (read := _read_by_parameters(weights.node)) is not None:
            site.query_inputs, site.key_inputs = 0, read.inputs
        _tell_kind(site, query, key, len(operand[0]))
        node.inputs = site.query_inputs  # the positions of the result are those of its queries

    def _view(self, seen: _Seen, parent: _Node) -> None:
        node = seen.made[0]
        for name in ("product", "weights", "spread", "context"):
            held = getattr(parent, name)
            if held is not None and (layout := _viewed(seen.operation.name, held[1], seen.args, seen.out.shape)) is not None:
                setattr(node, name, (held[0], layout))
        if parent.total is not None:
            weights, axis, sums = parent.total
            node.total = weights, axis, None if sums is None else _viewed(seen.operation.name, sums, seen.args, seen.out.shape)
        node.packed = _packs(seen.inputs[0].shape, seen.out.shape) or (parent.packed and seen.inputs[0].shape == seen.out.shape)
        node.digits = parent.digits
        self._merge(node)

    def _slice(self, seen: _Seen, parent: _Node) -> None:
        """A part of the weights, such as all keys but a sink, goes on as the weights."""
        if parent.weights is None:
            return
        weights, layout = parent.weights
        if seen.out.shape == seen.inputs[0].shape:
            seen.made[0].weights = parent.weights
        elif weights.tensor is not None and weights.axis is not None and layout == _whole(weights.tensor.shape):
            weights.used = True
            scores = None if weights.scores is None else seen.repeat(weights.scores)
            self._new_weights(seen.out, scores, weights.axis, weights.node, seen.made[0])

    def _sum(self, seen: _Seen, parent: _Node) -> None:
        axes = seen.args[1] if len(seen.args) > 1 and isinstance(seen.args[1], list | tuple) else []
        if len(axes) != 1:
            return
        axis = axes[0] % seen.inputs[0].dim()
        kept = seen.out.dim() == seen.inputs[0].dim()
        if parent.weights is not None and len(parent.weights[1][axis]) == 1:
            weights, layout = parent.weights
            seen.made[0].total = (weights, layout[axis][0][0], layout[:axis] + (((),) if kept else ()) + layout[axis + 1 :])
        if parent.spread is None or parent.spread[0].used or not _sums_over(parent.spread[0], parent.spread[1][axis]):
            return
        weights, layout = parent.spread
        own = weights.tensor
        assert own is not None
        out = layout[:axis] + (((),) if kept else ()) + layout[axis + 1 :]
        others = [place for place in range(own.dim()) if place != weights.axis]
        rows = _whole(own.shape)[others[-1]] if own.dim() > 2 else ()
        operand = weights.broadcast or (own, _whole(own.shape))
        self._open(weights, operand, None, rows, layout[axis], (seen.out, out), seen.made[0], seen.operation)

    def _pointwise(self, seen: _Seen) -> None:
        name, node = seen.operation.name, seen.made[0]
        for tensor, parent in zip(seen.inputs, seen.nodes, strict=False):
            if tensor.shape == seen.out.shape:
                node.product = node.product or parent.product
                if node.context is None and parent.context is not None:
                    node.context, node.digits = parent.context, parent.digits
                if name in KEEPS_WEIGHTS:
                    node.weights = node.weights or parent.weights
                node.total = node.total or parent.total
        if name == "add" and len(seen.nodes) > 1:
            self._add_heads(seen, *seen.nodes[:2])
        mixed = {id(parent.weights[0]) for parent in seen.nodes if parent.weights is not None}
        if len(mixed) > 1 and name in ("add", "sub"):  # such as the difference of two softmaxes: weights of neither
            node.weights = None
        if name == "div":
            self._divide(seen, 0, 1)
        if name == "mul" and len(seen.inputs) == 2:
            self._divide(seen, 0, 1)
            self._divide(seen, 1, 0)
            self._spread(seen, 0, 1)
            self._spread(seen, 1, 0)

    def _add_heads(self, seen: _Seen, one: _Node, other: _Node) -> None:
        """Two parts of one context are added: what told them apart is heads. Contexts that are added have the same heads."""
        if one.context is None or other.context is None:
            return
        if one.context[0] is not other.context[0]:
            if one.context[1] == other.context[1]:
                one.context[0].beside.append(other.context[0])
            return
        apart = {factor for factor, digit in one.digits.items() if other.digits.get(factor, digit) != digit}
        if apart and not any(factor in one.context[0].rows or factor[0] < 0 for factor in apart):
            one.context[0].heads |= apart
            seen.made[0].context = None

    def _divide(self, seen: _Seen, own: int, other: int) -> None:
        """exp / sum: weights. (exp · values) / sum: a weighing that is divided later."""
        if len(seen.inputs) < 2 or (total := seen.nodes[other].total) is None or seen.nodes[own].total is not None:
            return
        held, weighing = seen.nodes[own].weights, seen.nodes[own].context
        if held is not None and held[0] is total[0] and held[0].axis is None and held[1] == _whole(seen.out.shape):
            held[0].used = True
            self._new_weights(seen.out, held[0].scores, total[1], held[0].node, seen.made[0])
        if weighing is not None and weighing[0].weights is total[0]:
            weighing[0].normalized, weighing[0].reciprocal = True, seen.operation.name == "mul"
            weighing[0].divisor = None if total[2] is None else (seen.inputs[other], total[2])
        seen.made[0].total = None

    def _spread(self, seen: _Seen, own: int, other: int) -> None:
        """Weights times values by broadcasting, which a sum over keys may follow."""
        held, shape = seen.nodes[own].weights, seen.out.shape
        if held is None or held[0].used or held[0].axis is None or seen.nodes[other].weights is not None:
            return
        padded = ((),) * (len(shape) - len(held[1])) + held[1]
        width = [axis for axis, factors in enumerate(padded) if not factors and shape[axis] != 1]
        if len(width) == 1:
            layout = tuple(((-1, 1, shape[axis]),) if axis == width[0] else factors for axis, factors in enumerate(padded))
            seen.made[0].spread = (held[0], layout)
            held[0].broadcast = (seen.inputs[own], held[1])

    def _finish(self, weighing: _Weighing) -> None:
        """Takes the example out of a weighing, and lets go of its tensors."""
        if weighing not in self.weighings:
            return
        self.weighings.remove(weighing)
        site, weights = weighing.site, weighing.weights
        try:
            if not weighing.normalized:
                site.problem = phrase("exp weighed values, but its sum did not divide them")
            elif self.recording.wants(site):
                asked = self.recording.heads
                take = _take_example if weighing.kernel is None else _recompute_arranged
                self.recording.add(site, lambda own, example: take(weighing, own, example, asked))
        except _NotUnderstoodError as problem:
            site.problem = problem.said
        if weighing.guess is not None:
            self.recording._note(weighing.guess)
        for other in weighing.beside:
            for name in ("merged", "whole", "heads", "examples", "parts"):
                setattr(other, name, getattr(weighing, name))
            self._finish(other)
        weights.tensor = weights.scores = weights.dropout = weights.broadcast = None
        if weights.node.product is not None:
            weights.node.product[0].left = weights.node.product[0].right = None

    def _fused(self, seen: _Seen) -> None:
        site = self.recording.new_site(seen.operation.full_name, "recomputed")
        for node in seen.made:
            node.sites |= 1 << site.index
        named = seen.named()
        query, key = named.get("query", named.get("src")), named.get("key", named.get("src"))
        outputs = seen.outputs
        if isinstance(query, Tensor) and isinstance(key, Tensor):
            _tell_kind(site, self.written(query), self.written(key), key.size(0))
            for node in seen.made:
                node.inputs = site.query_inputs  # the positions of the result are those of its queries
            if self.node(query).packed and not self.node(key).packed:
                named, outputs = _unpacked(named), [_heads_apart(outputs[0]), *outputs[1:]]
        if not self.recording.wants(site):
            return
        if isinstance(query, Tensor) and isinstance(key, Tensor) and _is_stacked(self.node(query)) and _is_arranged(named):
            self._open_kernel(seen, site, named)
            return
        try:
            self.recording.add(site, lambda own, example: _recompute(own, seen.operation.name, named, outputs, example))
        except _NotUnderstoodError as problem:
            site.problem = problem.said

    def _open_kernel(self, seen: _Seen, site: Site, named: dict[str, Any]) -> None:
        """A fused kernel whose queries the program stacked: which of its first two axes is the heads is told by its result."""
        query, key, out = named["query"], named["key"], seen.outputs[0]
        shape = (*query.shape[:3], key.shape[2])
        stand_in = torch.empty(shape, device="meta")
        weights = _Weights(stand_in, None, 3, seen.made[0], site.module, used=True)
        whole = _whole(shape)
        width = ((-1, 1, out.shape[3]),) if out.shape[3] != 1 else ()
        layout = (*whole[:3], width)
        weighing = _Weighing(site, weights, (stand_in, whole), None, whole[2], (out, layout), True, kernel=named, stacked=True)
        self.weighings.append(weighing)
        seen.made[0].context = weighing, layout


@dataclass(eq=False)
class _Seen:
    """An operation that ran."""

    operation: _Operation
    args: Any
    kwargs: Any
    inputs: list[Tensor]
    nodes: list[_Node]
    outputs: list[Tensor]
    made: list[_Node]

    @property
    def out(self) -> Tensor:
        """The first result."""
        return self.outputs[0]

    def named(self) -> dict[str, Any]:
        """The arguments by name."""
        names = self.operation.arguments or FLEX_ARGUMENTS
        return {**dict(zip(names, self.args, strict=False)), **self.kwargs}

    def chosen(self) -> tuple[int, ...] | None:
        """The places that were taken along the first axis, such as a cache's hypotheses; None: it takes something else."""
        if self.operation.name == "index_select":
            only = self.args[2] if self.args[1] == 0 else None
        else:
            only = self.args[1][0] if len(self.args[1]) == 1 else None
        if only is None or only.dtype not in (torch.int32, torch.int64) or only.dim() != 1 or len(only) > MOST_HYPOTHESES:
            return None
        return tuple(only.tolist())

    def axis(self, place: int) -> int:
        """The axis that an argument names; without it the first."""
        named = self.args[place] if len(self.args) > place else self.kwargs.get("dim", 0)
        return int(named) % max(1, self.out.dim())

    def axes(self) -> list[int]:
        """The axes of a sum or a mean; all of them if none is named."""
        rank = self.inputs[0].dim()
        named = self.args[1] if len(self.args) > 1 and isinstance(self.args[1], list | tuple) else ()
        return [axis % rank for axis in named] or list(range(rank))

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """Of an operation that takes parts: for each result the axis, where it starts, and its length."""
        name, whole = self.operation.name, self.inputs[0]
        places = {"split": 2, "split_with_sizes": 2, "unsafe_split": 2, "unsafe_split_with_sizes": 2, "chunk": 2}
        named = self.named()
        axis = int(named.get("dim", 0)) % max(1, whole.dim())
        start = 0
        for place, out in enumerate(self.outputs):
            if name in ("select", "unbind"):
                yield axis, (int(named["index"]) % whole.shape[axis] if name == "select" else place), 1
            elif name in places:
                yield axis, start, out.shape[axis]
                start += out.shape[axis]
            else:
                first = int(named.get("start") or 0)
                plain = named.get("step") in (None, 1)
                yield axis, max(0, first + whole.shape[axis] if first < 0 else first), out.shape[axis] if plain else 0

    def repeat(self, tensor: Tensor) -> Tensor:
        """The same slice of another tensor of the same shape as the argument."""
        part: Tensor = torch.ops.aten.slice.Tensor(tensor, *self.args[1:], **self.kwargs)
        return part


def _varies(param: Tensor, axis: tuple[Factor, ...], factor: Factor) -> bool:
    """Whether a parameter [stacked, …] differs along a factor of its first axis, which has the factors of `axis`."""
    digits = param.reshape([size for _axis, _stride, size in axis] + [-1])
    first = digits.narrow(axis.index(factor), 0, 1)
    return not torch.equal(digits, first.expand_as(digits))


def _grows(name: str, factor: Any) -> bool:
    """Whether an operation multiplies a whole tensor by one number above 1."""
    if name not in ("mul", "div") or (isinstance(factor, Tensor) and factor.dim()):
        return False
    return bool(factor > 1 if name == "mul" else factor < 1)


def _sums_over(weights: _Weights, contracted: tuple[Factor, ...]) -> bool:
    """Whether an axis is the whole axis along which the weights sum to 1; for exp any whole axis."""
    assert weights.tensor is not None
    if weights.axis is None:
        return len(contracted) == 1 and contracted[0][0] >= 0 and contracted[0][2] == weights.tensor.shape[contracted[0][0]]
    return contracted == _whole(weights.tensor.shape)[weights.axis]


# --- The example, out of a batch ------------------------------------------------------------------------------------------


def _heads_by_place(
    weighing: _Weighing, layout: Layout, rows: Sequence[Factor], rest: list[Factor], asked: int | None
) -> tuple[list[Factor], list[Factor]]:
    """Heads and batch where nothing joined or told the heads: one stacked axis is the batch, and of two, one may have length 1.

    Args:
        asked: the axis of the weights that the user says is the heads.
    """
    assert weighing.weights.tensor is not None
    stacked = [n for n, axis in enumerate(layout) if n != weighing.weights.axis and not set(axis) & {*rows}]
    unknown, module = [f for f in rest if f not in weighing.examples], weighing.site.module or "the program"
    if asked is not None and asked % len(layout) in stacked:
        heads = list(layout[asked % len(layout)])
    elif len(stacked) < 2 or not unknown:
        heads = []
        if unknown and not weighing.examples:
            weighing.guess = phrase(
                "Nothing tells whether axis {axis} of the weights in {module}, counted from 0, is heads or examples: it was taken "
                "for examples. If it is heads, say it with heads=AXIS.",
                axis=stacked[0],
                module=module,
            )
    elif weighing.stacked and all(layout[n] for n in stacked) and not weighing.examples:
        shape = list(weighing.weights.tensor.shape)
        said = phrase(
            "nothing tells which axis of its weights, of shape {shape}, is the heads: say it with heads=AXIS", shape=str(shape)
        )
        raise _NotUnderstoodError(said)
    else:
        heads = [f for n in stacked[1:] for f in layout[n] if f in unknown]
        if layout[stacked[0]] and heads and not weighing.examples:
            weighing.guess = phrase(
                "Nothing tells which axis of the weights in {module} is the heads: the usual one, axis 1 from 0, was taken. "
                "If it is another one, say it with heads=AXIS.",
                module=module,
            )
    return heads, [f for f in rest if f not in heads]


def _overlap(one: Factor, other: Factor) -> bool:
    """Whether two factors are parts of one axis that share some of it."""
    return one[0] == other[0] and one[1] < other[1] * other[2] and other[1] < one[1] * one[2]


def _split_by(finest: Sequence[Factor], parts: set[Factor]) -> list[Factor]:
    """Factors split where a part of them is known, such as heads that stand before the examples on one axis."""
    found = list[Factor]()
    lacking = [part for part in parts if not any(_overlap(part, factor) for factor in finest)]
    for axis, stride, size in (*finest, *lacking):
        marks = {stride, stride * size}
        marks |= {mark for a, s, n in parts if a == axis and stride <= s and s * n <= stride * size for mark in (s, s * n)}
        steps = sorted(marks)
        found += [(axis, low, high // low) for low, high in reversed(list(itertools.pairwise(steps)))]
    return found


def _arrangement(
    weighing: _Weighing, asked: int | None
) -> tuple[Layout, tuple[list[Factor], list[Factor], list[Factor], tuple[Factor, ...]], list[Factor]]:
    """The layout of the weights; their factors that are batch, heads, queries and keys; and how finely axes are split."""
    weights = weighing.weights
    tensor = weights.tensor
    if tensor is None or weights.axis is None:
        raise _NotUnderstoodError(phrase("its weights were freed before its heads could be identified"))
    whole = _whole(tensor.shape)
    out = weighing.merged or weighing.out[1]
    finest = [factor for axis in out for factor in axis if factor[0] >= 0]
    finest = _split_by(finest, weighing.heads | weighing.examples | weighing.parts)
    layout, out = _refined(whole, finest), _refined(out, finest)
    keys = layout[weights.axis]
    rows = [part for axis in _refined((weighing.rows,), finest) for part in axis]
    heads = [f for axis in out if any(g[0] == -1 for g in axis) for f in axis if f[0] >= 0 and f not in rows]
    if weighing.merged is not None:
        heads += [f for axis in out if any(g[0] == -1 for g in axis) for f in axis if f[0] >= 0 and f in rows and len(rows) > 1]
        rows = [f for f in rows if f not in heads]
    rest = [f for place, axis in enumerate(layout) if place != weights.axis for f in axis if f not in rows and f not in heads]
    if weighing.heads:
        rows, rest = [f for f in rows if f not in weighing.heads], [*rest, *heads]
        heads = [f for f in rest if f in weighing.heads]
        rest = [f for f in rest if f not in weighing.heads]
    elif weighing.merged is None:
        heads, rest = _heads_by_place(weighing, layout, rows, rest, asked)
    return layout, (rest, heads, rows, keys), finest


def _take_example(weighing: _Weighing, site: Site, example: int, asked: int | None = None) -> None:
    """Fills a site with the weights of one example.

    Which axes are heads is told by the context: joining the heads puts them and head_dim into one axis, adding them removes
    theirs, and parameters of their own tell them apart. The axes of the rows are the queries, all others the batch.
    """
    weights, (layout, groups, finest) = weighing.weights, _arrangement(weighing, asked)
    rest, heads, rows, keys = groups
    assert weights.tensor is not None
    assert weights.axis is not None
    four = _arranged(weights.tensor, layout, groups)
    site.batch = four.shape[0]
    chosen = _chosen(example, site.batch)
    dropout = weights.dropout
    ran, of_ran = dropout.before if dropout is not None and dropout.scaled else weighing.operand
    own = _arranged(ran, _refined(of_ran, finest), groups)[chosen]
    if weighing.divisor is not None:
        divisor, of_divisor = weighing.divisor
        divisor = _arranged(divisor, _refined(of_divisor, finest), (rest, heads, rows, ()))[chosen]
        own = own * divisor if weighing.reciprocal else own / divisor
    site.weights = _numpy(own)
    site.mask = _mask_of(weights, own, layout, groups, chosen)
    if weighing.values is not None:
        width = [(-1, 1, n) for a in weighing.values[1] for (r, _s, n) in a if r == -1]
        site.v = _numpy(_arranged(weighing.values[0], _refined(weighing.values[1], finest), (rest, heads, keys, width))[chosen])
        site.context = _numpy(_arranged(weighing.out[0], _refined(weighing.out[1], finest), (rest, heads, rows, width))[chosen])
    if weights.node.product is not None:
        _take_queries_and_keys(site, *weights.node.product, weights.axis, finest, groups, chosen)


def _chosen(example: int, batch: int) -> int:
    if example >= batch > 1:
        raise _NotUnderstoodError(
            phrase("example {example} (from 0) was requested, but its batch has {batch}", example=example, batch=batch)
        )
    return example if batch > 1 else 0


def _mask_of(weights: _Weights, own: Tensor, layout: Layout, groups: Sequence[Sequence[Factor]], chosen: int) -> Array:
    """[query, key]: where any head may look. Without the scores: where any weight is not 0."""
    hidden = own == 0
    if weights.scores is not None and weights.scores.shape == weights.tensor.shape:  # type: ignore[union-attr]
        low = _arranged(weights.scores, layout, groups)[chosen] <= HIDDEN_SCORE
        hidden = low & (hidden | low.all(-1, keepdim=True))
    mask: Array = (~hidden).any(0).cpu().numpy()
    return mask


def _take_queries_and_keys(
    site: Site,
    product: _Product,
    layout: Layout,
    key_axis: int,
    finest: Sequence[Factor],
    groups: Sequence[Sequence[Factor]],
    chosen: int,
) -> None:
    """Fills in q and k, the operands of the product that the scores come from. `layout` has the scores' axes by the product's."""
    if product.left is None or product.right is None:
        return
    axes: dict[int, list[tuple[int, Factor]]] = {}
    for place, factors in enumerate(layout):  # each factor of the product, by the factor of the scores that it became
        stride = math.prod(size for _axis, _stride, size in factors)
        for axis, own_stride, size in factors:
            stride //= size
            axes.setdefault(axis, []).append((own_stride, (place, stride, size)))
    by_scores = [
        tuple(factor for _stride, factor in sorted(axes.get(axis, []), reverse=True)) for axis in range(product.left.dim())
    ]
    *stacked, first, second = _refined(tuple(by_scores), finest)
    transposed = any(factor[0] == key_axis for factor in first)
    inner = ((-1, 1, product.left.shape[-1]),) if product.left.shape[-1] != 1 else ()
    left = _group_of((product.left, (*stacked, first, inner)), groups, 3 if transposed else 2, inner)
    right = _group_of((product.right, (*stacked, inner, second)), groups, 2 if transposed else 3, inner)
    if left is not None and right is not None:
        site.q, site.k = (_numpy(side[min(chosen, len(side) - 1)]) for side in ((right, left) if transposed else (left, right)))


def _group_of(
    held: tuple[Tensor, Layout], groups: Sequence[Sequence[Factor]], positions: int, inner: tuple[Factor, ...]
) -> Tensor | None:
    """[batch, head, position, head_dim] of queries or keys; None where their axes are others than the weights'."""
    try:
        return _arranged(held[0], held[1], (groups[0], groups[1], groups[positions], inner))
    except _NotUnderstoodError:
        return None


# --- Fused kernels --------------------------------------------------------------------------------------------------------
#
# They never hold weights. The weights are computed again from what the kernel was given, and weights · v is compared with what it
# returned.

FLEX_ARGUMENTS = ["query", "key", "value", "score_mod", "block_mask", "scale", "kernel_options"]


def _recompute(site: Site, name: str, named: dict[str, Any], outputs: Sequence[Tensor], example: int) -> None:
    """Fills a site with the weights that a fused kernel used for one example."""
    if name.startswith(("_scaled_dot_product_", "scaled_dot_product_")):
        _recompute_scaled_dot_product(site, named, outputs[0], example)
    elif name == "flex_attention":
        _recompute_flex(site, named, outputs[0], example)
    elif name in ("_native_multi_head_attention", "_transformer_encoder_layer_fwd"):
        _recompute_layer(site, name, named, outputs[0], example)
    else:
        raise _NotUnderstoodError(phrase("this kernel is not known"))


def _recompute_scaled_dot_product(site: Site, named: dict[str, Any], out: Tensor, example: int) -> None:
    query, key, value = named["query"], named["key"], named["value"]
    site.batch = query.size(0)
    chosen = _chosen(example, site.batch)
    q, k, v, own_out = (each.unbind()[chosen] for each in (query, key, value, out))  # [head, position, head_dim]
    k, v = (each.repeat_interleave(len(q) // len(each), 0) for each in (k, v))  # grouped queries: heads share keys and values
    bias = named.get("attn_mask", named.get("attn_bias"))
    if bias is not None:
        bias = bias.expand(len(query), len(q), q.shape[1], k.shape[1])[chosen]
        bias = torch.zeros_like(bias, dtype=q.dtype).masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else bias
    scale = named.get("scale")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    causal = bool(named.get("is_causal"))
    _fill_fused(site, q, k, v, own_out, scale, bias, causal, dropped=bool(named.get("dropout_p")))


def _is_arranged(named: dict[str, Any]) -> bool:
    """Whether a kernel got queries, keys and values [one, other, position, head_dim], where either may be the heads."""
    shapes = [named[name].shape for name in ("query", "key", "value") if isinstance(named.get(name), Tensor)]
    return len(shapes) == 3 and all(len(shape) == 4 and shape[:2] == shapes[0][:2] for shape in shapes)


def _recompute_arranged(weighing: _Weighing, site: Site, example: int, asked: int | None) -> None:
    """Fills a site from what a kernel got, with the axes in the usual order."""
    named, (_layout, (rest, heads, rows, keys), finest) = weighing.kernel, _arrangement(weighing, asked)
    assert named is not None
    first, second = _whole(weighing.out[0].shape)[:2]

    def usual(tensor: Tensor, positions: Sequence[Factor], axis: tuple[Factor, ...]) -> Tensor:
        width = ((-1, 1, tensor.shape[3]),) if tensor.shape[3] != 1 else ()
        layout = _refined((first, second, axis, width), finest)
        return _arranged(tensor, layout, (rest, heads, positions, width))

    whole = weighing.operand[1]
    arranged = {
        "query": usual(named["query"], rows, whole[2]),
        "key": usual(named["key"], keys, whole[3]),
        "value": usual(named["value"], keys, whole[3]),
    }
    for name in ("attn_mask", "attn_bias"):
        if named.get(name) is not None:
            full = named[name].expand(weighing.operand[0].shape)
            arranged[name] = _arranged(full, _refined(whole, finest), (rest, heads, rows, keys))
    out = usual(weighing.out[0], rows, whole[2])
    _recompute_scaled_dot_product(site, {**named, **arranged}, out, example)


def _packs(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a view makes [batch, key head, heads of it, head_dim] of [batch, head, 1, head_dim].

    Programs do so while they decode, so that a kernel reads keys that several heads share only once.
    """
    if not len(before) == len(after) == 4 or before[2] != 1 or after[2] == 1:
        return False
    return (before[0], before[1], before[3]) == (after[0], after[1] * after[2], after[3])


def _heads_apart(rows: Tensor) -> Tensor:
    """[batch, key head, heads of it, …] as [batch, head, 1, …]; what is the same for all heads stays as it is."""
    return rows if rows.dim() != 4 or rows.shape[2] == 1 else rows.flatten(1, 2)[:, :, None]


def _unpacked(named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a kernel as if its queries had not been packed."""
    apart = {name: _heads_apart(named[name]) for name in ("query", "attn_mask", "attn_bias") if named.get(name) is not None}
    return {**named, **apart}


def _recompute_flex(site: Site, named: dict[str, Any], out: Tensor, example: int) -> None:
    query, key, value = named["query"], named["key"], named["value"]
    site.batch = len(query)
    chosen = _chosen(example, site.batch)
    q, k, v = query[chosen], key[min(chosen, len(key) - 1)], value[min(chosen, len(value) - 1)]
    k, v = (each.repeat_interleave(len(q) // len(each), 0) for each in (k, v))
    scale = float(named["scale"])
    place = [torch.tensor(chosen, device=q.device)]
    for axis, size in enumerate((len(q), q.shape[1], k.shape[1])):
        place.append(torch.arange(size, device=q.device).reshape([-1 if axis == other else 1 for other in range(3)]))
    plain = q.float() @ k.float().transpose(-1, -2) * scale
    scores = named["score_mod"](plain, *place, *named.get("score_mod_other_buffers", ()))
    allowed = named["block_mask"][-1](*place, *named.get("mask_mod_other_buffers", ()))
    bias = (scores - plain).masked_fill(~allowed.expand(scores.shape), -math.inf)
    _fill_fused(site, q, k, v, out[chosen], scale, bias, False, dropped=False)


def _fill_fused(
    site: Site,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor | None,
    scale: float,
    bias: Tensor | None,
    causal: bool,
    dropped: bool,
) -> None:
    """Fills a site from queries, keys and values [head, position, head_dim] of one example; `bias` [head, query, key] is added."""
    heads, queries, keys = len(q), q.shape[1], k.shape[1]
    mask = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    if causal:
        mask = mask.tril()
    plain = bias is None
    if bias is not None:
        mask = mask & (bias > HIDDEN_SCORE).any(0)
        plain = bool(((bias == 0) | (bias <= HIDDEN_SCORE)).all()) and bool((bias == bias[:1]).all())
    site.q, site.k, site.v, site.scale = _numpy(q), _numpy(k), _numpy(v), scale
    site.mask = mask.cpu().numpy()
    lazy = plain and heads * queries * keys > LAZY
    written, largest, context = [], 0.0, []
    for head in range(heads):
        scores = q[head].double() @ k[head].double().T * scale
        if bias is not None:
            scores = scores + bias[head].double()
        weights = scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)
        mixed = weights @ v[head].double()
        if out is not None:
            difference = (mixed - out[head].double()).abs()
            largest = max(largest, float(difference.max()) if difference.numel() else 0.0)
        context.append(mixed)
        if not lazy:
            written.append(weights.float())
    site.weights = None if lazy else _numpy(torch.stack(written))
    site.context = _numpy(out if out is not None else torch.stack(context))
    site.difference = None if dropped or out is None else largest


def _recompute_layer(site: Site, name: str, named: dict[str, Any], out: Tensor, example: int) -> None:
    """nn.MultiheadAttention and nn.TransformerEncoderLayer in evaluation: one kernel for the whole layer.

    The rest of the layer is computed again, too, so that the kernel's output can be compared.
    """
    layer = name == "_transformer_encoder_layer_fwd"
    query, key, value = (named["src"],) * 3 if layer else (named["query"], named["key"], named["value"])
    mask, mask_type = named.get("mask"), named.get("mask_type")
    if query.is_nested:
        parts = query.unbind()
        site.batch = len(parts)
        chosen = _chosen(example, site.batch)
        query, key, value, own_out = (each.unbind()[chosen].double() for each in (query, key, value, out))
        mask = None  # its padding was cut off
        if not len(query):
            raise _NotUnderstoodError(EMPTY)
    else:
        site.batch = len(query)
        chosen = _chosen(example, site.batch)
        query, key, value, own_out = (each[chosen].double() for each in (query, key, value, out))  # [position, model]
    wide: dict[str, Tensor] = {
        n: t.double() for n, t in named.items() if isinstance(t, Tensor) and t.is_floating_point() and not t.is_nested
    }
    norm_first = layer and named["norm_first"]

    def norm(x: Tensor, number: int) -> Tensor:
        weight, bias = wide[f"norm_weight_{number}"], wide[f"norm_bias_{number}"]
        return nn.functional.layer_norm(x, x.shape[-1:], weight, bias, named["eps"])

    inputs = [norm(query, 1)] * 3 if norm_first else [query, key, value]
    width, heads = named["embed_dim"], named["num_heads" if layer else "num_head"]
    projected = [
        x @ wide["qkv_weight"][n * width : (n + 1) * width].T + wide["qkv_bias"][n * width : (n + 1) * width]
        for n, x in enumerate(inputs)
    ]
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(0, 1) for x in projected)  # [head, position, head_dim]
    bias = None
    if mask is not None:
        hidden = mask.bool()
        if mask_type == 1:
            hidden = hidden[chosen][None, None]
        elif hidden.dim() == 4:
            hidden = hidden[chosen]
        bias = torch.zeros(heads, len(query), len(key), dtype=torch.float64, device=query.device).masked_fill(hidden, -math.inf)
    _fill_fused(site, q, k, v, None, 1 / math.sqrt(q.shape[-1]), bias, False, dropped=False)
    weights = torch.from_numpy(site.written()).to(v)
    result = (weights @ v).transpose(0, 1).flatten(1) @ wide["proj_weight"].T + wide["proj_bias"]
    if layer:
        x = query + result
        x = x if norm_first else norm(x, 1)
        inner = (norm(x, 2) if norm_first else x) @ wide["ffn_weight_1"].T + wide["ffn_bias_1"]
        active = nn.functional.gelu(inner) if named["use_gelu"] else inner.relu()
        x = x + active @ wide["ffn_weight_2"].T + wide["ffn_bias_2"]
        result = x if norm_first else norm(x, 2)
    site.difference = float((result - own_out).abs().max())


# --- Kinds and stacks -----------------------------------------------------------------------------------------------------


def _queries_and_keys(scores: _Node) -> tuple[_Node | None, _Node | None]:
    """The queries and the keys whose product the scores come from, searched upwards; None: there is no such product."""
    ahead, seen, found = deque([scores]), set[int](), list[tuple[_Node, _Node]]()
    while ahead and len(seen) < 300:
        node = ahead.popleft()
        if node.order in seen:
            continue
        seen.add(node.order)
        if node.name in PRODUCTS and node.context is not None:
            continue  # weights times values of an earlier attention
        if node.name in PRODUCTS and not any(parent.param for parent in node.parents[-2:]):
            found.append((node.parents[-2], node.parents[-1]))
        elif node.name not in PROJECTIONS:
            ahead.extend(node.parents)
    for pair in found:  # beside q · k there may be q · position
        if _kind(*pair) == "self":
            return pair
    return found[0] if found else (None, None)


def _read_by_parameters(scores: _Node) -> _Node | None:
    """The keys that learned vectors ask, such as the latents of a Perceiver; None: the scores are something else."""
    node: _Node | None = scores
    while node is not None and node.name not in PRODUCTS and node.name not in PROJECTIONS:
        computed = [parent for parent in node.parents if not parent.param]
        node = computed[0] if computed else None
    computed = [] if node is None or node.name != "bmm" else [parent for parent in node.parents[-2:] if not parent.param]
    return computed[0] if len(computed) == 1 else None


def _made_from(key: _Node) -> Iterator[int]:
    """Numbers of the nodes from which alone keys were made, step by step, up to one that has other positions, such as a mean."""
    node: _Node | None = key
    for _step in range(100):
        if node is None:
            break
        yield node.order
        computed = {parent.order: parent for parent in node.parents if not parent.param}
        node = next(iter(computed.values())) if len(computed) == 1 and node.name not in REDUCES else None


def _added(scores: _Node, values: _Node) -> tuple[_Node | None, _Node | None]:
    """The query and the keys of scores that are no matrix product, searched upwards; None: there are none.

    As in additive attention, v · tanh(W q + U k), or W of q and k behind each other. The keys come from where the values come from.
    """
    ahead, seen, memory = deque([scores]), set[int](), set(_made_from(values))
    while ahead and len(seen) < 100:
        node = ahead.popleft()
        if node.order in seen:
            continue
        seen.add(node.order)
        pair = [parent for parent in node.parents if not parent.param]
        if node.name in MIXES and len(pair) == 2:
            from_memory = [not memory.isdisjoint(_made_from(parent)) for parent in pair]
            if from_memory in ([True, False], [False, True]):
                return (pair[1], pair[0]) if from_memory[0] else (pair[0], pair[1])
        ahead.extend(pair)
    return None, None


def _tell_kind(site: Site, query: _Node | None, key: _Node | None, batch: int) -> None:
    if query is not None and key is not None:
        site.kind = _kind(query, key)
        site.query_sites, site.key_sites = query.sites, key.sites
        site.query_inputs, site.key_inputs, site.later = query.inputs, key.inputs, key.later
        site.memory = frozenset(_made_from(key))
        site.parts = tuple(_parts_above(query))
        if site.parts and site.kind != "self":
            site.key_origins = frozenset(own.order for node in _origins(key)[0] for own in (node, *_before_norm(node)))
        if site.parts:
            site.key_joined = _joined_after_projection(key)
        site.order = _order(key, batch)


def _order(key: _Node, batch: int) -> tuple[int, ...]:
    """The examples that a cache's keys were taken from, searched upwards from the keys; empty: it was not reordered."""
    ahead, seen = deque([key]), set[int]()
    while ahead and len(seen) < 100:
        node = ahead.popleft()
        if node.order in seen or node.name in PROJECTIONS:
            continue
        seen.add(node.order)
        if node.chosen is not None and batch % len(node.chosen) == 0:
            return node.chosen
        ahead.extend(node.parents)
    return ()


def _parts_above(query: _Node) -> Iterator[tuple[int, int, int, int]]:
    """What queries, or what they were projected from, may be a part of."""
    ahead, seen = deque([query]), set[int]()
    while ahead and len(seen) < 100:
        node = ahead.popleft()
        if node.order in seen or node.param:
            continue
        seen.add(node.order)
        if node.part is not None:
            yield node.part
        ahead.extend(node.parents)


def _is_stacked(query: _Node) -> bool:
    """Whether queries were stacked after their projection."""
    ahead, seen = deque([query]), set[int]()
    while ahead and len(seen) < 100:
        node = ahead.popleft()
        if node.order in seen or node.name in PROJECTIONS:
            continue
        if node.stacked:
            return True
        seen.add(node.order)
        ahead.extend(node.parents)
    return False


def _joined_after_projection(key: _Node) -> int:
    """Number of the node that joined keys after their projection; -1: none did."""
    node = key.base()
    while node.parents and node.name not in PROJECTIONS:
        if node.name == "cat":
            return node.order
        node = node.parents[0].base()
    return -1


def _kind(query: _Node, key: _Node) -> str:
    """`self`: computed from the same tensor; `cross`: from different ones; `unknown`: from tensors that share a part, or whose
    origin was not seen."""
    (of_query, query_known), (of_key, key_known) = _origins(query), _origins(key)
    more = key.inputs and query.inputs & ~key.inputs and not key.inputs & ~query.inputs
    if more and set(_made_from(query)).isdisjoint(_made_from(key)):
        return "cross"  # rows of one input more than the keys, as where words are written from the last state of an encoder
    if of_query & of_key:
        return "self"
    of_query, of_key = ({own for node in nodes for own in (node, *_before_norm(node))} for nodes in (of_query, of_key))
    if of_query & of_key or _before_bottleneck(of_query) & _before_bottleneck(of_key):
        return "self"
    joined = {part.base() for node in of_query | of_key if node.name in ("cat", "stack") for part in node.parents}
    if joined & (of_query | of_key) or {own for node in joined for own in _before_norm(node)} & (of_query | of_key):
        return "unknown"
    return "cross" if query_known and key_known else "unknown"


def _origins(node: _Node) -> tuple[set[_Node], bool]:
    """The tensors that were projected to queries or keys, and whether their origin is known.

    Without a projection: the tensors that it was computed from, other than parameters.
    """
    projected, raw, ahead, seen = set[_Node](), set[_Node](), [node], set[int]()
    while ahead and len(seen) < 2000:
        own = ahead.pop()
        if own.order in seen:
            continue
        seen.add(own.order)
        if own.name in PROJECTIONS and any(parent.param for parent in own.parents):
            operands = own.parents[1:] if own.name in ("addmm", "baddbmm") else own.parents[:2]
            projected.add((operands[1] if operands[0].param and not operands[1].param else operands[0]).base())
        elif own.parents:
            ahead.extend(own.parents)
        elif not own.param:
            raw.add(own)
    return (projected, True) if projected else (raw, all(own.before for own in raw))


def _before_bottleneck(nodes: set[_Node]) -> set[_Node]:
    """The nodes, and what was projected to one of them, or to a whole that it is a part of.

    A projection may be made of two, with few numbers in between.
    """
    found = set(nodes)
    for node in nodes:
        own = node.base()
        while own.name in PARTS and own.parents:
            own = own.parents[0].base()
        if own.name in PROJECTIONS and any(parent.param for parent in own.parents):
            found |= {each for before in _origins(own)[0] for each in (before, *_before_norm(before))}
    return found


def _before_norm(node: _Node) -> set[_Node]:
    """The tensors that a normalization was applied to; the node itself where it is no normalization."""
    ahead, found = [node], set[_Node]()
    for _step in range(40):
        if not ahead:
            break
        own = ahead.pop()
        others = [parent for parent in own.parents if not parent.param]
        if own.name in NORMALIZES and own.parents:
            ahead.append(own.parents[0])
        elif own.parents and (own.name in PARTS_OF_A_NORM or (own.name == "add" and len(others) == 1)):
            ahead.extend(others)
        else:
            found.add(own)
    return found


def _name_stacks(sites: Sequence[Site], events: Sequence[Site]) -> None:
    """Tells encoder and decoder apart where cross-attention does, and counts the layers of each stack and kind.

    Where the keys of cross-attention were given, as to a decoder alone, what its queries pass through is the decoder.
    """
    crosses = [site for site in events if site.kind == "cross"]
    of_keys = of_decoder = are_cross = 0
    for site in crosses:
        of_keys |= site.key_sites
        of_decoder |= site.query_sites
        are_cross |= 1 << site.index
    told = bool(crosses) and not of_keys & are_cross

    def stack_of(site: Site) -> str:
        if not told:
            return "program"
        decodes = of_keys or (of_decoder | are_cross) >> site.index & 1 or site.query_sites & are_cross
        return "encoder" if of_keys >> site.index & 1 else "decoder" if decodes else "program"

    passes: dict[tuple[str, int], int] = {}
    layers: dict[tuple[str, int, str], int] = {}
    for site in sites:
        site.stack = stack_of(site)
        call = (site.stack, site.call)
        site.pass_ = passes.setdefault(call, sum(stack == site.stack for stack, _call in passes))
        site.layer = layers.get((*call, site.kind), 0)
        layers[(*call, site.kind)] = site.layer + 1


# --- Weights that are no probabilities ------------------------------------------------------------------------------------
#
# A program may weigh its values by any numbers. They are shown as they are, and named.


def _no_probabilities(sites: Sequence[Site]) -> Iterator[_Phrase]:
    """Sentences on heads with NaN or infinite weights, and on sites whose rows do not sum to 1 or have weights below 0."""
    heads, sums, negative = list[str](), list[str](), list[str]()
    for site in sites:
        if site.weights is None or site.mask is None:
            continue
        bad = np.asarray(~np.isfinite(site.weights).all(-1))
        counts = ((head + 1, int(rows.sum()), len(rows)) for head, rows in enumerate(bad))
        heads += [f"{site.name}, head {head}: {count} of {rows} rows" for head, count, rows in counts if count]
        off = site.weights.sum(-1, dtype=np.float64)[~bad & site.mask.any(-1)] - 1
        sums += [site.name] if np.abs(off).max(initial=0) > FROM_ONE else []
        negative += [site.name] if (site.weights < 0).any() else []
    if heads:
        yield phrase("The program computed NaN or infinite weights: {heads}.", heads=_first(heads, "; "))
    if sums:
        yield phrase(
            "Rows do not sum to 1: a part goes to a sink or a gate, or the program changed its weights after the softmax: {sites}.",
            sites=_first(sums, ", "),
        )
    if negative:
        yield phrase("Some weights are below 0: {sites}.", sites=_first(negative, ", "))


def _first(names: Sequence[str], between: str) -> str:
    """The first names, and how many more there are."""
    more = f" (+{len(names) - MOST_NAMED})" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


# --- Joining parts of one attention ---------------------------------------------------------------------------------------
#
# To save memory, programs cut their queries into parts and weigh the values for one part after another.


def _join_parts(sites: Sequence[Site], note: Callable[[_Phrase], None]) -> list[Site]:
    """Joins the sites whose queries are consecutive parts of the same tensor and read the same keys.

    Args:
        note: told the module whose parts could not be joined.
    """
    found = list[Site]()
    for site in sites:
        part = _next_part(found[-1], site) if found else None
        if part is not None and _reads_on(found[-1], site):
            was_joined = found[-1].joined
            _append(found[-1], site)
            found[-1].joined, found[-1].parts = was_joined, (part,)
            if part[0] in site.key_origins:
                found[-1].kind = "self"
            continue
        if part is not None and not _steps_on(found[-1], site, 0):
            said = phrase(
                "{module} cut its queries into parts that read keys of their own. Each part is an attention layer of its own, "
                "whose rows are counted from 1.",
                module=site.module or "The program",
            )
            note(said)
        found.append(site)
    return found


def _next_part(earlier: Site, site: Site) -> tuple[int, int, int, int] | None:
    """The part that both sites are together, if the queries of `site` follow those of `earlier` in one tensor."""
    if (earlier.module, earlier.call, earlier.entered) != (site.module, site.call, site.entered) or site.hypotheses:
        return None
    rows, more = earlier.shape[1], site.shape[1]
    for whole, length, start, size in earlier.parts:
        if size == rows < length and (whole, length, start + size, more) in site.parts:
            return whole, length, start, size + more
    return None


def _reads_on(earlier: Site, site: Site) -> bool:
    """Whether the keys of `site` are those of `earlier`, or these and more of the same tensor.

    More keys that were joined to the first ones are those of another stream of the network, as in ProphetNet.
    """
    if earlier.k is None or site.k is None or len(earlier.k) != len(site.k) or earlier.k.shape[1] > site.k.shape[1]:
        return False
    if earlier.k.shape[1] < site.k.shape[1] and earlier.key_joined != site.key_joined:
        return False
    return bool(np.array_equal(earlier.k, site.k[:, : earlier.k.shape[1]]))


# --- Joining the steps of a decode ----------------------------------------------------------------------------------------


def _joined(sites: Sequence[Site], apart: Callable[[str, _Phrase], None]) -> list[Site]:
    """Joins the sites whose keys continue those of an earlier site of the same module: the steps of a decode with a cache.

    Cross-attention is joined where the self-attention before it was.

    Args:
        sites: in the order in which they ran.
        apart: told a module, and why, whose steps could not be joined.
    """
    found, last, continues = list[Site](), dict[tuple[str, str], list[Site]](), False
    inner = sum(1 << site.index for site in sites if site.kind != "cross")
    for site in sites:
        open_ = last.setdefault((site.module, site.kind if site.kind == "cross" else ""), [])
        first_steps = last.get((site.module, ""), [])
        if (first := next((other for other in first_steps if _steps_on(other, site, inner)), None)) is not None:
            first.kind = "cross"  # it asked with the last state of what it reads, so that nothing told the two apart
            first_steps.remove(first)
            open_.append(first)
        earlier = next((other for other in open_ if _continued(other, site, continues) or _steps_on(other, site, inner)), None)
        if earlier is not None:
            earlier.recurrent = _steps_on(earlier, site, inner)
            _append_reordered(earlier, site) if site.hypotheses else _append(earlier, site, _dropped(earlier, site))
            open_.remove(earlier)
            open_.append(earlier)
        else:
            if any(_is_next_step(other, site) for other in open_):
                apart(site.module, APART)
            found.append(site)
            open_.append(site)
        if site.kind != "cross":
            continues = earlier is not None
    for site in found:
        _trim(site)
    return found


def _continued(earlier: Site, site: Site, self_continued: bool) -> bool:
    """Whether `site` has the next rows of `earlier`: the same keys up to the last that was read, and as many new keys as rows."""
    if earlier.k is None or site.k is None or earlier.entered == site.entered:
        return False
    if len(earlier.k) != len(site.k) or earlier.k.shape[-1] != site.k.shape[-1]:
        return False
    if site.kind == "cross":
        return self_continued and earlier.k.shape == site.k.shape and bool(np.array_equal(earlier.k, site.k))
    if site.hypotheses and _is_next_step(earlier, site):
        return len(earlier.hypotheses) in (0, len(site.hypotheses))
    dropped, read = _dropped(earlier, site), _reads(earlier)
    same = 0 <= dropped < read and bool(np.array_equal(earlier.k[:, dropped:read], site.k[:, : read - dropped]))
    return same and earlier.shape[1] == read


def _dropped(earlier: Site, site: Site) -> int:
    """How many of the oldest keys `site` lacks, if it is the step after `earlier`."""
    return 0 if site.kind == "cross" else _reads(earlier) + site.shape[1] - _reads(site)


def _steps_on(earlier: Site, site: Site, inner: int) -> bool:
    """Whether `site` is the next row of `earlier`, as of a recurrent decoder, which reads the same keys once for each word.

    Args:
        inner: one bit for each site that is no cross-attention: after one of these the decoder is a Transformer, whose cache tells.
    """
    alike = site.kind == "cross" and not earlier.memory.isdisjoint(site.memory)
    single = site.shape[1] == 1 and (earlier.recurrent or earlier.shape[1] == 1) and not site.hypotheses
    same_keys = (earlier.shape[0], earlier.shape[2]) == (site.shape[0], site.shape[2])
    next_call = site.call - earlier.call in (0, earlier.shape[1])  # all steps in one call, or each in its own
    return alike and single and same_keys and next_call and not site.query_sites & ~site.key_sites & ~(1 << earlier.index) & inner


def _append_reordered(earlier: Site, site: Site) -> None:
    """Adds the rows of a step before which the cache was reordered: each hypothesis goes on from the one that it was taken from.

    Before the first reordering all hypotheses have read the same.
    """
    before = earlier.hypotheses or (earlier,) * len(site.hypotheses)
    place = next(place for place, own in enumerate(site.hypotheses) if own.k is site.k)
    joined = tuple(replace(before[origin], hypotheses=()) for origin in site.order)
    for own, more in zip(joined, site.hypotheses, strict=True):
        _append(own, more)
    for name in ("weights", "mask", "q", "k", "v", "context", "difference", "joined", "origin"):
        setattr(earlier, name, getattr(joined[place], name))
    earlier.hypotheses = joined


def _is_next_step(earlier: Site, site: Site) -> bool:
    """Whether `site` reads as many keys as the step after `earlier` would, of the same heads: only their numbers differ."""
    if site.kind == "cross" or earlier.k is None or site.k is None or earlier.entered == site.entered:
        return False
    alike = len(earlier.k) == len(site.k) and earlier.k.shape[-1] == site.k.shape[-1]
    return alike and _reads(earlier) > 1 and _reads(site) == _reads(earlier) + site.shape[1] and earlier.call < site.call


def _reads(site: Site) -> int:
    """One past the last key that any query may attend to."""
    assert site.mask is not None
    return int(np.flatnonzero(site.mask.any(0))[-1]) + 1 if site.mask.any() else 0


def _append(earlier: Site, site: Site, dropped: int = 0) -> None:
    """Adds the rows of `site`; keys that earlier rows did not have get weight 0 and are masked, and so do keys that were dropped.

    Args:
        dropped: how many of the first keys of `earlier` the cache does not hold any more.
    """
    assert earlier.mask is not None
    assert site.mask is not None
    more = dropped + site.mask.shape[1] - earlier.mask.shape[1]
    before, after = (0, max(0, more)), (dropped, max(0, -more))
    whole = np.pad(earlier.written(), ((0, 0), (0, 0), before)), np.pad(site.written(), ((0, 0), (0, 0), after))
    earlier.weights = np.concatenate(whole, axis=1)
    earlier.mask = np.concatenate([np.pad(earlier.mask, ((0, 0), before)), np.pad(site.mask, ((0, 0), after))])
    for name in ("k", "v"):
        oldest, held = getattr(earlier, name), getattr(site, name)
        kept = oldest is not None and held is not None and dropped
        setattr(earlier, name, np.concatenate([oldest[:, :dropped], held], axis=1) if kept else held)
    earlier.query_inputs |= site.query_inputs
    earlier.key_inputs |= site.key_inputs
    earlier.later = earlier.later if dropped else earlier.later | site.later
    for name in ("q", "context"):
        first, second = getattr(earlier, name), getattr(site, name)
        setattr(earlier, name, np.concatenate([first, second], axis=1) if first is not None and second is not None else None)
    if site.difference is not None:
        earlier.difference = max(earlier.difference or 0.0, site.difference)
    earlier.joined = True
    earlier.origin = site.origin if site.origin == "recomputed" else earlier.origin


def _trim(site: Site) -> None:
    """Cuts off keys that no row of a joined site may attend to: the empty places of a cache of fixed length."""
    assert site.mask is not None
    keys = _reads(site)
    if site.joined and site.kind != "cross" and site.weights is not None and site.shape[1] == keys < site.shape[2]:
        site.weights, site.mask = site.weights[:, :, :keys], site.mask[:, :keys]
        site.k = None if site.k is None else site.k[:, :keys]
        site.v = None if site.v is None else site.v[:, :keys]


# --- Modules --------------------------------------------------------------------------------------------------------------


class _Modules:
    """Which module runs, by hooks that PyTorch calls for every module; the program's modules are not changed.

    torch.compile traces these hooks with the modules that it compiles. They do nothing then, so that what is compiled is what
    would be compiled without a recording; the modules inside a compiled part are not known.
    """

    def __init__(
        self,
        model: nn.Module | None,
        end: Callable[[], None],
        compiled: Callable[[str], None],
        elsewhere: Callable[[str], None],
    ) -> None:
        self.running: list[nn.Module] = []
        self.numbers: list[int] = []
        self.count = 0
        self.names: dict[int, str] = {}
        self.buffers: set[int] = set()
        self.kept = list[nn.Module]()  # so that no other module gets the id of one that is named
        self.end, self.compiled, self.elsewhere, self.thread = end, compiled, elsewhere, threading.get_ident()
        self.hooks: list[Any] = []
        if model is not None:
            self._name(model)

    def start(self) -> None:
        """Begins to listen."""
        self.hooks = [register_module_forward_pre_hook(self._enters), register_module_forward_hook(self._leaves, always_call=True)]

    def stop(self) -> None:
        """Listens no more."""
        for hook in self.hooks:
            hook.remove()

    def path(self) -> str:
        """Path of the module that runs; empty: none does."""
        return next((self.names[id(module)] for module in reversed(self.running) if id(module) in self.names), "")

    @property
    def entered(self) -> int:
        """How many modules were entered before: another number where a module runs again."""
        return self.numbers[-1] if self.numbers else 0

    def _name(self, root: nn.Module) -> None:
        own = type(root).__name__
        paths = [name or own for name, _module in root.named_modules()]
        if not set(self.names.values()).isdisjoint(paths):  # another model has them, as in assisted decoding
            number = 2 + sum(type(other) is type(root) for other in self.kept[1:])
            paths = [f"{own}-{number}" if path == own else f"{own}-{number}.{path}" for path in paths]
        self.kept.append(root)
        self.buffers |= {id(buffer) for buffer in root.buffers()}
        for path, (name, module) in zip(paths, root.named_modules(), strict=True):
            self.names[id(module)] = path
            if type(module).__name__ == "OptimizedModule" or module._compiled_call_impl is not None:
                self.compiled(name)

    def _enters(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if threading.get_ident() != self.thread:
            self.elsewhere(self.names.get(id(module), type(module).__name__))
        elif torch._C._current_autograd_node() is None:
            if not self.running and id(module) not in self.names:
                self._name(module)
            self.running.append(module)
            self.count += 1
            self.numbers.append(self.count)

    def _leaves(self, module: nn.Module, args: Any, out: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if threading.get_ident() == self.thread and any(module is own for own in self.running):
            while self.running.pop() is not module:
                self.numbers.pop()
            self.numbers.pop()
            if not self.running:
                self.end()


# --- The recording --------------------------------------------------------------------------------------------------------


def record(
    model: nn.Module | None = None,
    source_tokens: Tokens = None,
    target_tokens: Tokens = None,
    *,
    calls: str = "0:",
    example: int = 0,
    keep: Sequence[str] = (),
    limit: int = 1 << 30,
    program: str = "",
    heads: int | None = None,
) -> Recording:
    """Records the attention that is computed inside `with headlight.record(...) as recording:`.

    Args:
        model: the model, for the names of its modules; None: the names begin at each module that the program calls.
        source_tokens: texts of the positions of the input, one for each: texts, bytes or ids, in a list, a tensor or an array, or
            what a tokenizer of the transformers library returns. Of a batch those of the example are taken.
        target_tokens: texts of the positions of the decoder's input.
        calls: which calls of the model, counted from 0, as START:STOP; the default is all. Only calls with attention count.
        example: which example of a batch, counted from 0.
        keep: more to keep: `qkv`, `context`.
        limit: bytes of arrays that are kept at most; what does not fit is named in the file.
        program: a name for the recording; empty: the class of the model.
        heads: which axis of the weights is the heads, where nothing that the program computes tells it.

    Raises:
        ValueError: an argument is none of these.
    """
    options: dict[str, Any] = {"calls": calls, "example": example, "keep": keep, "limit": limit, "program": program}
    return Recording(model, source_tokens, target_tokens, heads=heads, **options)


class Recording:
    """What was recorded. Made by `record`.

    Attributes:
        sites: the attention that was seen, in the order in which it ran, after the end of the `with` block.
        missing: what was not recorded, and why, by name.
        notes: sentences that a reader should know.
    """

    def __init__(
        self,
        model: nn.Module | None,
        source_tokens: Tokens,
        target_tokens: Tokens,
        *,
        calls: str,
        example: int,
        keep: Sequence[str],
        limit: int,
        program: str,
        heads: int | None,
    ) -> None:
        if unknown := [name for name in keep if name not in ("qkv", "context")]:
            raise ValueError(f"keep takes qkv and context, not {unknown[0]!r}.")
        if example < 0:
            raise ValueError(f"example counts from 0, not {example}.")
        self.first, self.stop = _range(calls)
        self.example, self.keep, self.limit = operator.index(example), keep, int(limit)
        tokens = {"source": source_tokens, "target": target_tokens}
        self.given = {name: _texts(f"{name}_tokens", given, self.example) for name, given in tokens.items()}
        self.heads = heads
        self.program = str(program) or (type(model).__name__ if model is not None else "program")
        self.sites: list[Site] = []
        self.missing: dict[str, _Phrase] = {}
        self.reasons: dict[str, dict[_Phrase, None]] = {}
        self.notes: list[_Phrase] = []
        self.events: list[Site] = []
        self.call, self.seen_in_call, self.finished, self.nbytes = 0, False, False, 0
        self.on_finish: Callable[[], None] | None = None
        self.dtype, self.device, self.began, self.milliseconds = "float32", "cpu", 0.0, 0.0
        self.modules = _Modules(model, self._end_call, self._is_compiled, self._runs_elsewhere)
        self.watch = _Watch(self)
        if model is not None:
            first = next(model.parameters(), None)
            if first is not None:
                self.dtype, self.device = str(first.dtype).removeprefix("torch."), str(first.device)

    # While the program runs

    def __enter__(self) -> Recording:
        """Starts to watch the program."""
        self.began = time.perf_counter()
        self.modules.start()
        self.watch.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: object) -> None:
        """Ends the watch, also after an error of the program, and makes the attention sites of what was seen."""
        self.watch.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self.modules.stop()
        self._finish()

    def _is_compiled(self, name: str) -> None:
        """Says of a compiled module that it is one, unless that is said of a module around it; an empty name is the whole model."""
        if "attention/*" not in self.missing and not any(f"attention/{name}.".startswith(f"{other}.") for other in self.missing):
            self.not_understood(name or "*", COMPILED)
            warnings.warn(COMPILED, stacklevel=5)

    def _runs_elsewhere(self, name: str) -> None:
        """Says of a module that it ran in a thread that is not recorded; what is called in a backward pass is not meant."""
        if not self.finished and THREADS not in self.missing.values() and torch._C._current_autograd_node() is None:
            self.not_understood(name, THREADS)

    def _end_call(self) -> None:
        if self.seen_in_call and not self.finished:
            self.watch.end_call()
            self.call, self.seen_in_call = self.call + 1, False
            if self.stop is not None and self.call >= self.stop:
                self._finish()

    def _finish(self) -> None:
        """After the last wanted call: joins, names, and lets go of the program."""
        if self.finished:
            return
        self.watch.end_call()
        self.finished = True
        self.milliseconds = (time.perf_counter() - self.began) * 1000
        self.watch.nodes.clear()
        for site in self.events:
            if site.problem and self.wants(site):
                said = phrase("attention by {operation}: {reason}", operation=site.operation, reason=site.problem)
                self.not_understood(site.module, said)
        whole = _join_parts([site for site in self.events if not site.problem], self._note)
        self.sites = _joined(whole, self.not_understood)
        _name_stacks(self.sites, self.events)
        self.notes += _no_probabilities(self.sites)
        if hidden := sum(site.mask is not None and not site.mask.any() for site in self.sites):
            said = phrase(
                "No query of example {example} (from 0) may attend to any key in {count} of the attention layers, as where all "
                "of it is padding.",
                example=self.example,
                count=hidden,
            )
            self.notes.append(said)
        if any(site.hypotheses for site in self.sites):
            said = phrase(
                "Between the steps of a decode the cache was reordered, as a beam search does: the rows of a map are those of the "
                "hypothesis that has place {place} of the batch in the last step.",
                place=self.example + 1,
            )
            self.notes.append(said)
            for site in self.sites:
                site.hypotheses = ()
        if self.on_finish is not None:
            self.on_finish()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """An error while recording is noted: it never reaches the program."""
        try:
            yield
        except Exception as error:
            said = phrase("an error while recording ({kind}): {error}", kind=type(error).__name__, error=str(error))
            self.not_understood(self.modules.path(), said)

    def new_site(self, operation: str, origin: str) -> Site:
        """A site that was just seen."""
        self.seen_in_call = bool(self.modules.running)
        site = Site(self.modules.path(), operation, origin, len(self.events), self.call, entered=self.modules.entered)
        self.events.append(site)
        return site

    def wants(self, site: Site) -> bool:
        """Whether the call of a site is one that was asked for."""
        return site.call >= self.first and (self.stop is None or site.call < self.stop)

    def add(self, site: Site, fill: Callable[[Site, int], None]) -> None:
        """Keeps a site, if there is room.

        Args:
            fill: fills a site with the arrays of one example of the batch.
        """
        fill(site, self.example)
        if 0 in site.shape:
            raise _NotUnderstoodError(EMPTY)
        if site.order and site.shape[1] == 1 and len(site.order) == site.batch:
            others = [replace(site) if place == self.example else replace(site, weights=None) for place in range(site.batch)]
            for place, own in enumerate(others):
                if place != self.example:
                    fill(own, place)
            site.hypotheses = tuple(others)
        site.problem = ""
        for own in (site, *site.hypotheses):
            if "qkv" not in self.keep:
                own.v = None
                own.q = own.q if own.weights is None else None
            if "context" not in self.keep:
                own.context = None
        if self.nbytes + site.nbytes > self.limit:
            site.problem = phrase("omitted: more than {limit:,} MiB would be kept (limit)", limit=self.limit >> 20)
            site.weights = site.mask = site.q = site.k = site.v = site.context = None
            site.hypotheses = ()
        self.nbytes += site.nbytes

    def _note(self, said: _Phrase) -> None:
        """Says something once."""
        if said not in self.notes:
            self.notes.append(said)

    def not_understood(self, module: str, why: _Phrase) -> None:
        """Names something that was not recorded, each reason once."""
        name = f"attention/{module or 'no module'}"
        reasons = self.reasons.setdefault(name, {})
        if len(reasons) < MOST_REASONS:
            reasons[why] = None
        self.missing[name] = _Phrase("{reasons}", reasons=tuple(reasons))

    # Afterwards

    def __getitem__(self, name: str) -> Site:
        """The first site of a module, or the site of a name such as `decoder.0.2.cross`.

        Raises:
            KeyError: there is none; the message lists those that there are.
        """
        for site in self.sites:
            if name in (site.module, site.name):
                return site
        raise KeyError(f"No site {name!r}. There are: {', '.join(f'{site.name} ({site.module})' for site in self.sites)}")

    def __repr__(self) -> str:
        """The sites, one line each, with the largest difference from the kernel, and what is missing."""
        lines = [f"{self.program}: {len(self.sites)} attention sites"]
        for site in self.sites:
            heads, queries, keys = site.shape
            said = "" if site.difference is None else f", kernel − recomputed: {site.difference:.1e}"
            lines.append(f"  {site.name:24} {site.module:40} heads: {heads}, queries: {queries}, keys: {keys}{said}")
        return "\n".join([*lines, *(f"  missing: {name}: {why}" for name, why in self.missing.items())])

    def save(self, path: str | Path) -> Path:
        """Writes the trace file; its name should end in `.trace.safetensors`.

        A file of that name is replaced as a whole: a program that reads the old one goes on reading it.
        """
        path = Path(path)
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(self.to_bytes())
        new.replace(path)
        return path

    def to_bytes(self) -> bytes:
        """The bytes of the trace file, as docs/trace.md describes them."""
        strips = _Strips(self.given, self.sites, self.watch.ids)
        arrays: dict[str, Array] = {}
        sites: dict[str, list[str]] = {}
        unwritten: dict[str, Any] = {}
        told: dict[str, Any] = {}
        for site in self.sites:
            name, place = site.name, f"attention/{site.name}"
            sites[name] = strips.of(site)
            held = {"weights": site.weights, "mask": site.mask}
            if "qkv" in self.keep or site.weights is None:
                held |= {"q": site.q, "k": site.k, "v": site.v if "qkv" in self.keep else None}
            held["context"] = site.context
            arrays |= {f"{place}/{n}": a.astype(np.uint8 if n == "mask" else np.float32) for n, a in held.items() if a is not None}
            if site.weights is None:
                unwritten[name] = {"scale": site.scale, "empty_rows": "zeros"}
            told[name] = {
                "module": site.module,
                "origin": site.origin,
                "operation": site.operation,
                "difference": site.difference,
                "batch": site.batch,
            }
        missing = self.missing | {f"attention/*/{n}": phrase("not kept") for n in ("scores", "output")}
        notes = [*self.notes, *strips.notes]
        last = max((site.call + 1 for site in self.events if self.wants(site)), default=self.first)
        header = {
            "schema": 1,
            "model": {
                "name": self.program,
                "title": self.program,
                "fingerprint": "",
                "languages": {},
                "spec": {},
                "dtype": self.dtype,
                "device": self.device,
                "milliseconds": self.milliseconds,
                "notes": notes,
                "phrases": [each.to_json() for each in dict.fromkeys((*notes, *missing.values()))],
            },
            "request": {},
            "tokens": strips.entries(),
            "sites": sites,
            "steps": [],
            "tree": [],
            "missing": missing,
            "unwritten": unwritten,
            "recorded": {
                "program": self.program,
                "torch": torch.__version__,
                "calls": f"{self.first}:{last}",
                "example": self.example,
                "given": [name for name, texts in self.given.items() if texts is not None and name in strips.texts],
                "sites": told,
            },
        }
        arrays |= {f"ids/{name}": np.zeros(0, np.int64) for name in strips.texts}
        return save_tensors({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata={"headlight": json.dumps(header)})

    def show(self, **options: Any) -> Any:
        """The overview of all heads for a notebook's cell, as `headlight.show` makes it.

        This file alone, without the rest of Headlight, draws all maps as images there; elsewhere it prints what was recorded.

        Args:
            options: those of `headlight.show`.
        """
        if (show := _viewer()) is not None:
            return show(self, **options)
        try:
            from IPython import get_ipython
            from IPython.display import HTML, display
        except ImportError:
            return print(self)
        return display(HTML(self._repr_html_())) if get_ipython() else print(self)

    def _repr_html_(self) -> str:
        show = _viewer()
        return _atlas(self) if show is None or not self.sites else str(show(self)._repr_html_())


def _viewer() -> Any:
    """`headlight.show` of the installed package; None: this file was copied alone."""
    return getattr(sys.modules.get("headlight"), "show", None)


def _range(calls: str) -> tuple[int, int | None]:
    """START and STOP of `3:5`, `3:`, `:5` or `3`."""
    first, colon, last = calls.partition(":")
    try:
        start = int(first or 0)
        stop = (int(last) if last else None) if colon else start + 1
    except ValueError:
        raise ValueError(f"calls takes START:STOP, such as 3:5, not {calls!r}.") from None
    if start < 0 or (stop is not None and stop <= start):
        raise ValueError(f"calls takes START:STOP with 0 ≤ START < STOP, not {calls!r}.")
    return start, stop


def _texts(name: str, given: Tokens, example: int) -> list[str] | None:
    """The texts of the tokens that were given under a name; of a batch those of the example.

    Raises:
        ValueError: they are something else.
    """
    if given is None:
        return None
    wanted = f"{name} takes a list with one text or id for each position"
    if isinstance(given, Mapping):  # a tokenizer's
        encodings = getattr(given, "encodings", None)
        given = [encoding.tokens for encoding in encodings] if encodings else given.get("input_ids")
    given = getattr(given, "tokens", given)
    given = given.tolist() if isinstance(given, Tensor | np.ndarray) else given
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or isinstance(given, Set | Mapping):
        raise ValueError(f"{wanted}, not {given!r:.60}.")
    tokens: list[Any] = [token.tolist() if isinstance(token, Tensor | np.ndarray | np.generic) else token for token in given]
    if tokens and all(isinstance(token, list | tuple) for token in tokens):
        if example >= len(tokens) > 1:
            raise ValueError(f"{wanted}, and its batch of {len(tokens)} has no example {example} (from 0).")
        tokens = list(tokens[example if len(tokens) > 1 else 0])
    for place, token in enumerate(tokens):
        if not isinstance(token, str | bytes | int) or isinstance(token, bool):
            raise ValueError(f"{wanted}, not {token!r:.60} (at position {place + 1}).")
    return [_text(token) for token in tokens]


def _text(token: str | bytes | int) -> str:
    """The text of one token; a part of a character that is none alone becomes a replacement character."""
    return (token if isinstance(token, bytes) else str(token).encode("utf-8", "replace")).decode("utf-8", "replace")


class _Strips:
    """The strips of tokens of a file: the given texts, or positions counted from 1.

    A strip belongs to an input of the program: rows and keys have its tokens if their positions come from this input and no other,
    and as many as there are tokens.
    """

    def __init__(self, given: dict[str, list[str] | None], sites: Sequence[Site] = (), ids: int = 0) -> None:
        self.given, self.notes = given, list[_Phrase]()
        self.texts: dict[str, list[str]] = {"source": list(given["source"])} if given["source"] is not None else {}
        if given["target"] is not None:
            self.texts["target"] = list(given["target"])
        self.inputs = {name: set(_main_inputs(name, sites, ids)) for name in ("source", "target")}
        for site in sorted(sites, key=lambda site: -site.shape[2]):
            self._claim(site)

    def _names(self, site: Site) -> tuple[str, str]:
        """The strips of queries and keys; empty: they are positions of something else."""
        rows, keys = _roles(site)
        kept = {site.shape[2], site.shape[2] - site.shape[1]}  # all keys, or those of a cache before the new ones
        begins_later = site.kind != "cross" and bool(site.later & kept)
        return (
            rows if site.query_inputs in self.inputs[rows] else "",
            keys if site.key_inputs in self.inputs[keys] and not begins_later else "",
        )

    def _claim(self, site: Site) -> None:
        """Gives `source` and `target` the length of the longest site, where no texts were given."""
        rows, keys = self._names(site)
        if rows and not site.recurrent and (site.stack != "decoder" or site.kind == "self"):
            self.texts.setdefault(rows, _numbers(site.shape[1] if site.kind == "cross" else max(site.shape[1:])))
        if keys:
            self.texts.setdefault(keys, _numbers(site.shape[2]))

    def of(self, site: Site) -> list[str]:
        """The strips of a site's queries and keys."""
        rows, keys = self._names(site)
        return [self._fitting(rows, site.shape[1], site.recurrent), self._fitting(keys, site.shape[2])]

    def _fitting(self, name: str, count: int, steps: bool = False) -> str:
        if name and not (steps and self.given[name] is None):
            texts = self.texts.setdefault(name, _numbers(count))
            if len(texts) == count or (name == "target" and self.given["target"] is not None and len(texts) == count + 1):
                return name
        self._note(name, steps)
        other = f"{'steps' if steps else 'positions'}-{count}"
        self.texts.setdefault(other, [f"step {number}" for number in _numbers(count)] if steps else _numbers(count))
        return other

    def _note(self, name: str, steps: bool) -> None:
        """Says once why a strip has positions although texts were given."""
        given = [f"{own}_tokens" for own, texts in self.given.items() if texts is not None]
        if name and self.given[name] is not None:
            said = phrase(
                "{name} has {count} tokens; attention layers with a different number of positions show positions instead.",
                name=f"{name}_tokens",
                count=len(self.texts[name]),
            )
        elif not name and given:
            said = phrase(
                "{names} name the tokens of one input each. Rows or keys that are computed from something else (another input, "
                "learned vectors, a cache whose beginning was not recorded) show positions instead.",
                names=", ".join(given),
            )
        else:
            return
        if said not in self.notes:
            self.notes.append(said)

    def entries(self) -> dict[str, Any]:
        """The header's `tokens`."""
        self.texts.setdefault("source", [])
        blank = {name: [False] * len(texts) for name, texts in self.texts.items()}
        return {name: {"texts": texts, "special": blank[name], "unknown": blank[name]} for name, texts in self.texts.items()}


def _roles(site: Site) -> tuple[str, str]:
    """The strips that queries and keys have in such a stack."""
    rows = "target" if site.stack == "decoder" else "source"
    return rows, "source" if site.kind == "cross" and site.stack == "decoder" else rows


def _main_inputs(name: str, sites: Sequence[Site], ids: int) -> Iterator[int]:
    """The inputs that a strip is of: in each call those of its first stack, or of the first that reads ids.

    Args:
        ids: one bit for each input that is integers: of text and an image, tokens are the text's.
    """
    for call in dict.fromkeys(site.call for site in sites):
        within = [site for site in sites if site.call == call]
        rows = [site.query_inputs for site in within if _roles(site)[0] == name]
        rows = rows or [site.key_inputs for site in within if _roles(site)[1] == name]
        read = [bits for bits in rows if bits] or [site.key_inputs for site in within if site.key_inputs]
        yield from ([bits for bits in read if bits & ids] or read or rows)[:1]


def _numbers(count: int) -> list[str]:
    return [str(number + 1) for number in range(count)]


# --- The picture ----------------------------------------------------------------------------------------------------------


def _atlas(recording: Recording, largest: int = 96) -> str:
    """All maps as one piece of HTML: images only, no script, so that a saved notebook shows it; light and dark."""
    rows = []
    for site in recording.sites:
        weights, (heads, queries, keys) = site.written(), site.shape
        side = max(2, 96 // max(1, min(queries, keys)))
        size = f"width:{min(192, side * min(keys, largest))}px;height:{min(192, side * min(queries, largest))}px"
        images = "".join(
            f'<img alt="head {head + 1}" title="{html.escape(site.module)}, head {head + 1}" style="{size}"'
            f' src="{_png(own, largest)}">'
            for head, own in enumerate(weights)
        )
        badge = (
            "" if site.difference is None else f" · weights recomputed; differs from the kernel by at most {site.difference:.1e}"
        )
        kind = {"self": "self-attention", "cross": "cross-attention"}.get(site.kind, "attention")
        title = html.escape(f"{site.module or site.name}: {kind}, {queries} queries × {keys} keys, {heads} heads{badge}")
        rows.append(f"<div><p>{title}</p>{images}</div>")
    missing = "".join(f"<li>{html.escape(f'{name}: {why}')}</li>" for name, why in recording.missing.items())
    style = (
        ".headlight{background:#fff;color:#1a1a1a;font:13px system-ui,sans-serif;padding:8px;max-height:640px;overflow:auto}"
        ".headlight img{image-rendering:pixelated;margin:2px;border:1px solid #8884}.headlight p{margin:8px 0 2px}"
        "@media (prefers-color-scheme:dark){.headlight{background:#161616;color:#eee}}"
        "[data-jp-theme-light=true] .headlight{background:#fff;color:#1a1a1a}"
        "[data-jp-theme-light=false] .headlight{background:#161616;color:#eee}"
    )
    listed = f"<p>Not recorded:</p><ul>{missing}</ul>" if missing else ""
    return f'<div class="headlight"><style>{style}</style><b>{html.escape(recording.program)}</b>{"".join(rows)}{listed}</div>'


def _png(weights: Array, largest: int) -> str:
    """A map as a PNG in a data: address; blocks of cells show their largest weight. Dark blue is 0, yellow 1, by square root."""
    steps = [max(1, math.ceil(size / largest)) for size in weights.shape]
    padded = np.pad(np.nan_to_num(weights), [(0, -size % step) for size, step in zip(weights.shape, steps, strict=True)])
    blocks = padded.reshape(padded.shape[0] // steps[0], steps[0], padded.shape[1] // steps[1], steps[1]).max((1, 3))
    low, middle, high = (np.array(color, float) for color in ((26, 28, 61), (190, 65, 93), (252, 239, 160)))
    level = np.sqrt(np.clip(blocks, 0, 1))[..., None]
    colors = np.where(level < 0.5, low + (middle - low) * level * 2, middle + (high - middle) * (level * 2 - 1)).astype(np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in colors)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", colors.shape[1], colors.shape[0], 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


# --- The command line -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a program unchanged and records it: `python headlight.py record --out FILE train.py ARGS`."""
    parser = argparse.ArgumentParser(prog="headlight", description="Records the attention of any PyTorch program.")
    command = parser.add_subparsers(required=True).add_parser("record", help="run a program and record it")
    command.add_argument("--out", required=True, metavar="FILE", help="the trace file, *.trace.safetensors")
    command.add_argument("--calls", default="0:1", metavar="START:STOP", help="calls of the model, from 0; default: the first, 0:1")
    command.add_argument("--example", type=int, default=0, metavar="N", help="example of the batch, from 0; default: 0")
    command.add_argument("--keep", default="", metavar="NAMES", help="more to keep, with commas: qkv, context")
    command.add_argument("--limit", type=int, default=1024, metavar="MIB", help="memory for what is kept; default: 1024")
    command.add_argument("--heads", type=int, metavar="AXIS", help="axis of the weights that is the heads, if nothing tells it")
    command.add_argument("-m", action="store_true", dest="module", help="PROGRAM is a module, as in python -m")
    command.add_argument("program", metavar="PROGRAM", help="the program, and its own arguments after it")
    command.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    out = Path(options.out)

    def save() -> None:
        recording.save(out)
        print(f"headlight: {len(recording.sites)} attention sites in {out}", file=sys.stderr)
        if not recording.sites:
            print(
                "headlight: no call of a module in its main thread computed attention in the calls that were asked for.",
                file=sys.stderr,
            )
            for name, why in recording.missing.items():
                print(f"headlight: missing: {name}: {why}", file=sys.stderr)

    try:
        recording = record(
            calls=options.calls,
            example=options.example,
            keep=[name for name in options.keep.split(",") if name],
            limit=options.limit << 20,
            program=Path(options.program).name,
            heads=options.heads,
        )
    except ValueError as error:
        parser.error(str(error))
    recording.on_finish = save
    sys.argv = [options.program, *options.rest]
    with recording:
        if options.module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(options.program).resolve().parent))
            runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
