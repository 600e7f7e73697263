"""Hooks on the library's modules: they record everything but attention, where the library computes it.

They do nothing unless a watched call goes on in this thread: nothing of a run is stored in a network, which serves many sessions.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from model.huggingface import written_out
from model.huggingface.attention import Watch, latent_width, watched
from model.huggingface.places import Places
from model.sharing.system_memory import give_back


def register(library: nn.Module, places: Places) -> list[RemovableHandle]:
    """Registers all hooks of a network; what it returns takes them away.

    Args:
        library: the library's network.
        places: where its parts are.
    """
    handles = written_out.register(places.sites) if places.written_out else []
    names: defaultdict[nn.Module, list[str]] = defaultdict(list)
    for stack, layers in places.layers.items():
        entering = tuple(f"embedded/{stack}" if index == 0 else "" for index, layer in enumerate(layers) if layer is layers[0])
        handles.append(layers[0].register_forward_pre_hook(_records_input(entering), with_kwargs=True))
        for index, layer in enumerate(layers):
            names[layer].append(f"hidden/{stack}.0.{index}")
    for site, module in places.outputs.items():
        names[module].append(f"attention/{site}/output")
    for sublayer, module in places.feed_forwards.items():
        names[module].append(f"stages/{sublayer}/output")
    for stack, module in places.tables.items():
        names[module].append(f"positions/{stack}")
    for module, recorded_names in names.items():
        handles.append(module.register_forward_hook(_records_output(tuple(recorded_names))))
    for module, sites in places.sites.items():
        if latent_width(module):
            made_of = _records_latents(tuple(f"stages/{site}/latents" for site in sites))
            handles.append(module.get_submodule("kv_b_proj").register_forward_pre_hook(made_of))
    # all positions have logits, and those before the last are rarely asked for
    with suppress(NotImplementedError):  # some classes have no such method
        if (output := library.get_output_embeddings()) is not None:  # type: ignore[operator]  # untyped library
            handles.append(output.register_forward_pre_hook(_before_logits))
    return handles


def _records_output(names: tuple[str, ...]) -> Callable[[nn.Module, Any, Any], Any]:
    """A hook that records what a module returns, or the first of what it returns, under a name for each time that it runs."""

    def hook(module: nn.Module, given: Any, made: Any) -> Any:
        watch = watched()
        if watch is None:
            return None
        name = watch.turn(names)
        # some layers return their states first, then caches or maps
        if isinstance(made, tuple):
            return (_seen(watch, name, made[0]), *made[1:])
        return _seen(watch, name, made)

    return hook


def _records_input(names: tuple[str, ...]) -> Callable[[nn.Module, Any, Any], Any]:
    """A hook that records the stream that a module is given; where the name is empty, another layer gave it."""

    def hook(module: nn.Module, given: Any, named: Any) -> Any:
        watch = watched()
        if watch is None:
            return None
        if not (name := watch.turn(names)):
            return None
        # states come first, or by their name
        if given:
            return (_seen(watch, name, given[0]), *given[1:]), named
        return given, {**named, "hidden_states": _seen(watch, name, named["hidden_states"])}

    return hook


def _records_latents(names: tuple[str, ...]) -> Callable[[nn.Module, Any], None]:
    """A hook of the map that makes keys and values of all heads: it records the latents of the positions of this step.

    The map is given those of earlier steps, too: they are what the library's cache holds.
    """

    def hook(module: nn.Module, given: Any) -> None:
        if (watch := watched()) is not None:
            rows = given[0].reshape(watch.batch, -1, given[0].shape[-1])  # [batch, position, latent]
            watch.run.record(watch.turn(names), rows[:, watch.run.start :])

    return hook


def _before_logits(module: nn.Module, given: Any) -> Any:
    """A hook of the output layer: it gets only the last position if the run records no other logits.

    The logits of a long input are its largest tensor. What lies free between the queries and keys that a fused run holds is given
    back before, else both count.
    """
    watch = watched()
    if watch is None:
        return None
    if watch.run.last_logits:
        return given[0][:, -1:], *given[1:]
    if watch.run.fused and given[0].shape[1] > 1:  # not while one token after another is written
        give_back()
    return None


def _seen(watch: Watch, name: str, value: Tensor) -> Tensor:
    """The value the run continues with: [batch, position, model], or `value` itself, which may be the same for the whole batch."""
    if name.startswith("stages/"):  # OPT's feed-forward network reads the positions of all examples as one list
        return watch.run.see(name, value.reshape(watch.batch, -1, value.shape[-1])).reshape(value.shape)
    rows = (value if value.dim() == 3 else value[None]).expand(watch.batch, -1, -1)
    seen = watch.run.see(name, rows)
    return value if seen is rows else seen
