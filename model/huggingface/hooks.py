"""Hooks on the library's modules: they record everything but attention, where the library computes it.

They do nothing unless a watched call goes on in this thread: nothing of a run is stored in a network, which serves many sessions.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from model.huggingface.attention import Watch, watched
from model.huggingface.families import Family
from model.trace.types import Site


def register(library: nn.Module, family: Family, outputs: Mapping[Site, nn.Module], tables: Mapping[str, nn.Module]) -> None:
    """Registers all hooks of a network.

    Args:
        library: the library's network.
        family: where its parts are.
        outputs: the output projection of each attention site.
        tables: the table of positions of each stack that has one.
    """
    for stack in family.stacks:
        layers = library.get_submodule(family.layers.format(stack=stack))
        for index, layer in enumerate(layers.children()):
            layer.register_forward_hook(_records_output(f"hidden/{stack}.0.{index}"))
        next(layers.children()).register_forward_pre_hook(_records_input(f"embedded/{stack}"), with_kwargs=True)
    for site, module in outputs.items():
        module.register_forward_hook(_records_output(f"attention/{site}/output"))
    for stack, module in tables.items():
        module.register_forward_hook(_records_output(f"positions/{stack}"))
    if (output := library.get_output_embeddings()) is not None:  # type: ignore[operator]  # untyped library
        output.register_forward_pre_hook(_last_position)


def _records_output(name: str) -> Callable[[nn.Module, Any, Any], Any]:
    """A hook that records what a module returns, or the first of what it returns."""

    def hook(module: nn.Module, given: Any, made: Any) -> Any:
        watch = watched()
        if watch is None:
            return None
        if isinstance(made, tuple):
            return (_seen(watch, name, made[0]), *made[1:])
        return _seen(watch, name, made)

    return hook


def _records_input(name: str) -> Callable[[nn.Module, Any, Any], Any]:
    """A hook that records the stream that a module is given."""

    def hook(module: nn.Module, given: Any, named: Any) -> Any:
        watch = watched()
        if watch is None:
            return None
        if given:
            return (_seen(watch, name, given[0]), *given[1:]), named
        return given, {**named, "hidden_states": _seen(watch, name, named["hidden_states"])}

    return hook


def _last_position(module: nn.Module, given: Any) -> Any:
    """A hook of the output layer: it gets only the last position if the run records no other logits."""
    watch = watched()
    return (given[0][:, -1:], *given[1:]) if watch is not None and watch.run.last_logits else None


def _seen(watch: Watch, name: str, value: Tensor) -> Tensor:
    """The value the run continues with: [batch, position, model], or `value` itself, which may be the same for the whole batch."""
    rows = (value if value.dim() == 3 else value[None]).expand(watch.batch, -1, -1)
    seen = watch.run.see(name, rows)
    return value if seen is rows else seen
