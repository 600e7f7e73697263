"""Finds the places of a network without a row, from a short run: which modules compute attention, and in which layers they are.

Attention is where the library calls its attention interface (attention.py), or writes it out (written_out.py). The projection of
a context is the module that is given exactly these numbers next. A layer is the member of a list of modules that holds an
attention; the output of each must be the input of the next, since edits and pages take it for the residual stream. What does not
fit is said in a sentence, and such a network is run as a whole and only recorded (`recorded`).
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import phrase
from model.huggingface import written_out
from model.huggingface.attention import Call, finding
from model.huggingface.families import Kind
from model.huggingface.places import MORE_THAN_PRODUCTS, NotFoundError, Places, encoder_of, numbered, stacks_of
from model.requests.external import ForeignAttention
from model.trace.types import Kind as SiteKind

OUTSIDE = phrase("its attention does not go through the library’s attention interface, where edits are made")


@dataclass
class _ShortRun:
    """What was seen in a short run.

    Attributes:
        calls: the calls of the attention interface, in their order.
        outputs: the module that was given the context of each call.
        entered: members of lists of modules that hold attention, in the order in which they ran, each with the tensor that it was
            given and the one that it returned.
    """

    calls: list[Call] = field(default_factory=list)
    outputs: list[nn.Module | None] = field(default_factory=list)
    entered: list[tuple[nn.Module, Tensor | None, Tensor | None]] = field(default_factory=list)
    context: Tensor | None = None

    def attention(self, call: Call) -> None:
        """Notes a call of the attention interface."""
        self.calls.append(call)
        self.outputs.append(None)
        self.context = call.context

    def given(self, module: nn.Module, arguments: Any) -> None:
        """Notes the module that is given the context of the newest call first."""
        if self.context is None or not arguments or not isinstance(arguments[0], Tensor):
            return
        weight = getattr(module, "weight", None)
        first = arguments[0]
        if not isinstance(weight, Tensor) or weight.dim() != 2 or first.numel() != self.context.numel():
            return
        # the same numbers in the same order: whatever the module reshaped, it is given this context
        if torch.equal(first.reshape(-1), self.context.reshape(-1)):
            self.outputs[-1], self.context = module, None


def found_places(
    library: Any,
    kind: Kind,
    call: Callable[[], object],
    lengths: tuple[int, int],
    rotated: bool,
    writing_out: Collection[nn.Module] = (),
) -> tuple[Places, dict[str, ForeignAttention]]:
    """The places of a network, and the attention of each stack.

    Args:
        kind: its stacks.
        call: runs the network on a short input, one example, without a cache.
        lengths: positions of the source and of the target in that run, two different numbers.
        rotated: whether the settings say that queries and keys are rotated by their positions.
        writing_out: modules that do not call the attention interface but write their attention out.

    Raises:
        NotFoundError: they cannot be told; the error says why.
    """
    stacks = stacks_of(kind)
    seen, names = _ShortRun(), {module: name for name, module in library.named_modules()}
    with torch.inference_mode(), _hooks(library, seen, writing_out), finding(seen.attention):
        call()
    if not seen.calls:
        raise NotFoundError(OUTSIDE)
    # source and target have different lengths, so the sizes of a call say what it attends to
    kinds = [_stack_and_kind(library, names, kind, seen_call, lengths) for seen_call in seen.calls]
    selves = {
        stack: [seen_call.module for seen_call, of in zip(seen.calls, kinds, strict=True) if of == (stack, "self")]
        for stack in stacks
    }
    layers = {stack: _layers(library, names, seen, modules) for stack, modules in selves.items()}
    # pages draw one self- and one cross-attention for each layer of a decoder
    crosses = [of for of in kinds if of == ("decoder", "cross")]
    if len(crosses) != (len(layers["decoder"]) if kind == "both" else 0):
        raise NotFoundError(phrase("not each of its decoder’s layers attends to the source"))
    sites = numbered(kinds)
    if not all(seen_call.weighs for seen_call in seen.calls):
        raise NotFoundError(phrase("its heads do more than weigh values by their weights"))
    if writing_out and not all(seen_call.product for seen_call in seen.calls):
        raise NotFoundError(MORE_THAN_PRODUCTS)
    # a module that runs several times in a pass, as ALBERT's one layer does, has as many sites
    of_module: dict[nn.Module, list[int]] = {}
    for number, seen_call in enumerate(seen.calls):
        of_module.setdefault(seen_call.module, []).append(number)
    places = Places(
        stacks=stacks,
        sites={module: tuple(sites[number] for number in numbers) for module, numbers in of_module.items()},
        outputs={site: output for site, output in zip(sites, seen.outputs, strict=True) if output is not None},
        layers=layers,
        positions="rotary" if rotated else "unknown",
        found_by_run=True,
        products=all(seen_call.product for seen_call in seen.calls),
        scales={site: seen_call.scale for site, seen_call in zip(sites, seen.calls, strict=True)},
        written_out=bool(writing_out),
    )
    return places, {stack: _attention(stack, kinds, seen.calls) for stack in stacks}


def added_positions(library: nn.Module, call: Callable[[], object], positions: int, close: float) -> str:
    """The name of the parameter that holds a row for each position and is added to the vectors there; "" if there is none.

    It is told by a run without it: what a module that holds it returns must then lack exactly these rows.

    Args:
        call: runs the network on a short input, one example.
        positions: of that input.
        close: largest difference that rounding explains.
    """
    for name, table in list(library.named_parameters()):
        if "position_embedding" not in name or table.dim() < 2 or table[..., 0].numel() != positions:
            continue
        # the modules around the parameter, from the outermost: one of them adds it to its vectors
        inside = [name[:at] for at, sign in enumerate(name) if sign == "."]
        holders = [module for path in inside if not isinstance(module := library.get_submodule(path), nn.Embedding)]
        owner, attribute = library.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
        whole = _returned(holders, call)
        # what changes when the rows are 0 is what they add
        setattr(owner, attribute, nn.Parameter(torch.zeros_like(table), requires_grad=False))
        try:
            without = _returned(holders, call)
        finally:
            setattr(owner, attribute, table)
        rows = table.reshape(1, positions, -1)
        pairs = [
            (vectors, changed)
            for vectors, changed in zip(whole, without, strict=True)
            if vectors.shape == changed.shape == rows.shape
        ]
        if any(
            bool((vectors - changed - rows).abs().max() <= close * max(1.0, float(vectors.abs().max())))
            for vectors, changed in pairs
        ):
            return name
    return ""


def _returned(modules: list[nn.Module], call: Callable[[], object]) -> list[Tensor]:
    """The last tensor that each module returns in a run; of one that returns none, an empty one."""
    results = dict.fromkeys(modules, torch.empty(0))

    def keep(module: nn.Module, _given: Any, made: Any) -> None:
        if isinstance(made, Tensor):
            results[module] = made

    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        call()
    finally:
        for handle in handles:
            handle.remove()
    return list(results.values())


def _attention(stack: str, kinds: list[tuple[str, SiteKind]], calls: list[Call]) -> ForeignAttention:
    shapes = {call.attention for call, (stack_of_call, _kind_) in zip(calls, kinds, strict=True) if stack_of_call == stack}
    if len(shapes) != 1:
        raise NotFoundError(phrase("its layers have different numbers of heads"))
    return next(iter(shapes))


@contextmanager
def _hooks(library: nn.Module, seen: _ShortRun, writing_out: Collection[nn.Module]) -> Iterator[None]:
    """Hooks that note what goes into modules, and the attention that some write out, while the library runs."""
    lists = {module for parent in library.modules() if isinstance(parent, nn.ModuleList) for module in parent.children()}

    def returned(module: nn.Module, arguments: Any, named: Any, made: Any) -> None:
        given = arguments[0] if arguments else named.get("hidden_states")
        first = made[0] if isinstance(made, tuple) and made else made
        seen.entered.append((module, *_tensors(given, first)))

    handles = [module.register_forward_pre_hook(seen.given) for module in library.modules() if not list(module.children())]
    handles += [module.register_forward_hook(returned, with_kwargs=True) for module in lists]
    handles += written_out.register(writing_out)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tensors(given: Any, made: Any) -> tuple[Tensor | None, Tensor | None]:
    return given if isinstance(given, Tensor) else None, made if isinstance(made, Tensor) else None


def _stack_and_kind(
    library: Any, names: dict[nn.Module, str], kind: Kind, call: Call, lengths: tuple[int, int]
) -> tuple[str, SiteKind]:
    """The stack of a call, and whether it is self- or cross-attention."""
    stack, (source, target) = kind if kind != "both" else "decoder", lengths
    if kind == "both":
        encoder = names[encoder_of(library)]
        stack = "encoder" if f"{names[call.module]}.".startswith(f"{encoder}.") else "decoder"
    length = target if stack == "decoder" and kind == "both" else source
    if call.batch != 1:
        raise NotFoundError(phrase("it cuts its input into blocks"))
    if (call.queries, call.keys) == (length, length):
        return stack, "self"
    if kind == "both" and stack == "decoder" and (call.queries, call.keys) == (target, source):
        return stack, "cross"
    raise NotFoundError(
        phrase(
            "its attention {name} has {queries} queries and {keys} keys for {count} tokens",
            name=names[call.module],
            queries=call.queries,
            keys=call.keys,
            count=length,
        )
    )


def _path_of_list(library: nn.Module, name: str) -> str:
    """The path of the outermost list of modules that a module is in."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        if isinstance(library.get_submodule(".".join(parts[:end])), nn.ModuleList):
            return ".".join(parts[:end])
    raise NotFoundError(phrase("its attention {name} is in no list of layers", name=name))


def _layers(library: nn.Module, names: dict[nn.Module, str], seen: _ShortRun, attentions: list[nn.Module]) -> tuple[nn.Module, ...]:
    """The layers of a stack, in the order in which they ran, one for each self-attention.

    Raises:
        NotFoundError: there are layers without self-attention or with several, or their outputs are not the next ones' inputs.
    """
    if not attentions:
        raise NotFoundError(OUTSIDE)
    lists = {_path_of_list(library, names[module]) for module in attentions}
    # the residual stream of a stack runs through one list of layers
    if len(lists) != 1:
        raise NotFoundError(phrase("its layers are not in one list: {names}", names=", ".join(sorted(lists))))
    path = next(iter(lists))
    members = set(library.get_submodule(path).children())
    ran = [entry for entry in seen.entered if entry[0] in members]
    wanted = [
        library.get_submodule(f"{path}.{names[attention].removeprefix(f'{path}.').split('.')[0]}") for attention in attentions
    ]
    if [entry[0] for entry in ran] != wanted or any(layer in attentions for layer in wanted):
        raise NotFoundError(phrase("not each of its layers has one self-attention"))
    for (_, _given, made), (_next, given, _made) in pairwise(ran):
        if made is None or given is None or made.shape != given.shape or not torch.equal(made, given):
            raise NotFoundError(phrase("the output of a layer is not the input of the next"))
    if any(given is None or made is None or given.dim() != 3 or made.shape != given.shape for _layer_, given, made in ran):
        raise NotFoundError(phrase("its layers do not pass on one vector for each token"))
    return tuple(wanted)
