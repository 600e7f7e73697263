"""Diagnostics of a checkpoint's numbers: parameters by part, tied matrices, whether it was trained."""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor, nn

from model.errors import message
from model.inspection.report import Freshness, Part, TensorInfo

LEAST_NUMBERS = 64
"""Fewest numbers in a matrix whose statistics mean something."""

SURE = 5.0
"""Standard errors by which a fresh matrix may differ from its distribution; one in a million differs more by chance."""

StackPart: TypeAlias = tuple[str, str]
"""Stack and kind of a part of a network."""

_NORM = re.compile(r"norm\.(weight|bias)$")


def counted_once(parameters: Iterable[tuple[StackPart, nn.Parameter]]) -> tuple[Part, ...]:
    """Number of parameters by part.

    Args:
        parameters: those of each part in the network's order, a shared one in every part that has it.
    """
    places: defaultdict[nn.Parameter, list[StackPart]] = defaultdict(list)
    for part, parameter in parameters:
        places[parameter].append(part)
    # A shared parameter counts where it comes first; the part says which others use it, too.
    counts, shared = Counter[StackPart](), defaultdict[StackPart, list[StackPart]](list)
    for parameter, (first, *later) in places.items():
        counts[first] += parameter.numel()
        shared[first] += [part for part in later if part != first]
    return tuple(Part(*part, count, tuple(dict.fromkeys(shared[part]))) for part, count in counts.items())


def tied(infos: Iterable[TensorInfo], tensors: Mapping[str, Tensor]) -> tuple[tuple[str, ...], ...]:
    """Groups of matrices with identical bytes. Matrices whose numbers are all equal are left out, since they prove nothing.

    Args:
        infos: the tensors with their statistics. Only those with the same statistics are read.
        tensors: by name.
    """
    # Hashing all bytes of a file takes long, so first the statistics, which are known: tensors that differ there are not read.
    groups: defaultdict[TensorInfo, list[str]] = defaultdict(list)
    for info in infos:
        if len(info.shape) > 1 and math.prod(info.shape) > 1:
            groups[replace(info, name="", status="", becomes=())].append(info.name)
    alike = [names for names in groups.values() if len(names) > 1]
    equal: defaultdict[tuple[int, bytes], list[str]] = defaultdict(list)
    for number, names in enumerate(alike):
        for name in names:
            if not bool((tensors[name] == tensors[name].flatten()[0]).all()):
                equal[number, _digest(tensors[name])].append(name)
    return tuple(tuple(names) for names in equal.values() if len(names) > 1)


def _digest(tensor: Tensor) -> bytes:
    return hashlib.blake2b(tensor.contiguous().view(torch.uint8).numpy().tobytes(), digest_size=16).digest()


def freshness(tensors: Sequence[TensorInfo]) -> Freshness | None:
    """Whether the matched tensors still look freshly initialized; None: no tensor is matched."""
    matched = [tensor for tensor in tensors if tensor.status == "matched"]
    if not matched:
        return None
    # Names as the layout maps them: in the file itself a norm may be called anything.
    ours = {tensor.name: tensor.becomes or (tensor.name,) for tensor in matched}
    norms = [tensor for tensor in matched if _NORM.search(ours[tensor.name][0])]
    untouched = _untouched(norms, ours)
    matrices = [t for t in matched if t not in norms and len(t.shape) == 2 and math.prod(t.shape) >= LEAST_NUMBERS]
    layers = len({number for names in ours.values() for name in names for number in re.findall(r"layers\.(\d+)\.", name)})
    draws = Counter(draw for tensor in matrices if (draw := _draw(tensor, layers)))
    all_untouched = all(untouched.values())
    fresh = draws.total()
    return Freshness(
        norms=len(untouched),
        untouched_norms=sum(untouched.values()),
        matrices=len(matrices),
        fresh_matrices=fresh,
        draws=dict(draws),
        untrained=bool(matrices) and all_untouched and fresh >= 0.9 * len(matrices),
    )


def _untouched(norms: Iterable[TensorInfo], ours: Mapping[str, tuple[str, ...]]) -> dict[str, bool]:
    """For each norm, whether its gains are all 1 and its biases all 0, as initialized."""
    untouched: dict[str, bool] = {}
    for tensor in norms:
        norm, _, kind = ours[tensor.name][0].rpartition(".")
        as_begun = 1.0 if kind == "weight" else 0.0
        untouched[norm] = untouched.get(norm, True) and tensor.lowest == tensor.highest == as_begun
    return untouched


def _draw(tensor: TensorInfo, layers: int) -> str:
    """The initial distribution that a matrix fits; empty: none."""
    count = math.prod(tensor.shape)
    if tensor.mean is None or tensor.deviation is None or tensor.lowest is None or tensor.highest is None or tensor.nan:
        return ""
    farthest = max(-tensor.lowest, tensor.highest)
    shapes = {tensor.shape, (tensor.shape[0] // max(1, len(tensor.becomes)), tensor.shape[1])}
    for name, deviation, edge in (draw for rows, columns in shapes for draw in _draws(rows, columns, layers)):
        error = math.sqrt((0.2 if edge else 0.5) / count)  # relative standard error of the deviation: uniform, normal
        near = abs(tensor.deviation / deviation - 1) < SURE * error + 1e-3  # float16 rounds by up to half of that
        central = abs(tensor.mean) < SURE * deviation / math.sqrt(count)
        within = not edge or edge * (1 - 12 / count) <= farthest <= edge * 1.001
        if near and central and within:
            return name
    return ""


def _draws(rows: int, columns: int, layers: int) -> Iterator[tuple[str, float, float]]:
    """Common initial distributions: name, standard deviation, and the largest value of a uniform one (else 0).

    Sources: Glorot and Bengio 2010 (Xavier); He et al. 2015 (Kaiming); torch's nn.Linear and nn.Embedding; Radford et al. 2019
    (0.02, less for what adds to the residual stream).
    """
    for name, edge in (
        (message("Xavier uniform"), math.sqrt(6 / (rows + columns))),
        (message("nn.Linear’s uniform"), math.sqrt(1 / columns)),
        (message("Kaiming uniform"), math.sqrt(6 / columns)),
        (message("uniform to 0.1"), 0.1),
    ):
        yield name, edge / math.sqrt(3), edge
    for name, deviation in (
        (message("nn.Embedding’s normal"), 1.0),
        (message("normal 0.02"), 0.02),
        (message("normal 0.02 / √(2 layers)"), 0.02 / math.sqrt(2 * max(1, layers))),
        (message("normal 1 / √width"), columns**-0.5),
        (message("Xavier normal"), math.sqrt(2 / (rows + columns))),
        (message("Kaiming normal"), math.sqrt(2 / columns)),
    ):
        yield name, deviation, 0.0
