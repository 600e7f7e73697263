"""Makes of a network without a row one that can be changed, where its places are found and a run of it is the library's own.

What one short run tells is used for all later ones, so it is tried at once: maps, logits and last states must be those of the
library's own call, and a decode with its cache must give the logits of one pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

import headlight
from model.errors import RunFailed, phrase
from model.huggingface import library
from model.huggingface.finding import OUTSIDE, added_positions, found_places
from model.huggingface.network import (
    NETWORKS,
    AnyForeign,
    ForeignCaptioner,
    ForeignListener,
    ForeignTranslator,
    ForeignViewer,
    ForeignWriter,
)
from model.huggingface.places import NotFoundError, Places
from model.huggingface.recorded.network import Pass, RecordedNetwork
from model.huggingface.recorded.probe import close_of, example
from model.requests.external import ForeignAttention, ForeignImage, ForeignSpec, ForeignStack
from model.transformer.attention import Run

_OTHER = phrase("a run that observes its layers gives numbers different from those of the library’s own run")


def changeable(recorded: RecordedNetwork, interface: bool, sites: tuple[headlight.Site, ...]) -> AnyForeign:
    """The network as one whose runs record and change what those of a network with a row do.

    Args:
        recorded: the network, which is run as a whole.
        interface: whether all of it computes attention by the library's interface, and so by our function.
        sites: the attention that was recognized in that run.

    Raises:
        NotFoundError: its places cannot be told, or a run of it is another than the library's own.
    """
    library_network: Any = recorded.library
    image, sound = recorded.reads.image, recorded.reads.sound
    if recorded.reads.form != "ids" and image is None and sound is None:
        raise NotFoundError(phrase("it reads neither tokens nor patches nor frames of a sound"))
    # attention that is written out is recognized only in networks that read images (docs/decisions.md)
    if not interface and image is None:
        raise NotFoundError(OUTSIDE)
    # one short input serves for everything: finding the places, and comparing the runs
    given = example(recorded)
    if image is not None:  # a row for each position, as a run has it
        given = replace(given, source=torch.cat([given.source.new_zeros(1, len(image.added), image.width), given.source], dim=1))
    lengths = given.source.shape[1], 0 if given.target is None else given.target.shape[1]
    rotated = bool(getattr(library_network.config.get_text_config(), "rope_parameters", None))
    with torch.inference_mode():
        # the library's own run, before any hook of ours is registered
        wanted = recorded(given)
        with _library_errors_as_reasons():
            writing_out = [] if interface else [library_network.get_submodule(site.module) for site in sites]
            places, attentions = found_places(
                library_network, recorded.kind, lambda: recorded(given), lengths, rotated, writing_out
            )
            if image is not None and (
                name := added_positions(library_network, lambda: recorded(given), lengths[0], close_of(library_network))
            ):
                places = replace(places, added={"encoder": name})
        spec = _spec_with_places(recorded.spec, places, attentions)
        if image is not None and not recorded.reads.named:
            spec = _spec_of_images(spec, image, int(wanted[0].shape[-1]))
        if sound is not None and spec.encoder is not None:
            spec = replace(spec, encoder=replace(spec.encoder, sound=sound, d_model=library_network.config.d_model))
        network = _network_class(recorded)
        observed = network(library_network, places, spec, lambda: library.new_past(recorded.kind), windowed=True)
        # its hooks stay registered in the library's network, so they go where the comparison fails
        try:
            with _library_errors_as_reasons():
                _compare(observed, given, wanted, sites)
        except NotFoundError:
            observed.release()
            raise
    return observed


@contextmanager
def _library_errors_as_reasons() -> Iterator[None]:
    """Makes an error of the library a reason to record only: what cannot be changed can still be recorded.

    Raises:
        NotFoundError: there was an error.
    """
    try:
        yield
    except NotFoundError:
        raise
    except Exception as error:
        raised = f"{type(error).__name__}: {' '.join(str(error).split()[:20])}"
        message = error.fields["error"] if isinstance(error, RunFailed) else raised
        raise NotFoundError(phrase("its layers cannot be observed: {error}", error=message)) from error


def _network_class(recorded: RecordedNetwork) -> type[AnyForeign]:
    """The class of a network that reads what this one reads."""
    if recorded.reads.image is not None:
        return ForeignCaptioner if recorded.kind == "both" else ForeignViewer
    return NETWORKS[recorded.kind] if recorded.reads.sound is None else ForeignListener


def _spec_with_places(spec: ForeignSpec, places: Places, attentions: dict[str, ForeignAttention]) -> ForeignSpec:
    """The spec with the heads and positions that were found."""

    def of(name: str, stack: ForeignStack | None) -> ForeignStack | None:
        if stack is None:
            return None
        return replace(stack, attention=attentions[name], layers=len(places.layers[name]), positions=places.positions)

    return replace(spec, encoder=of("encoder", spec.encoder), decoder=of("decoder", spec.decoder), recorded=False)


def _spec_of_images(spec: ForeignSpec, image: ForeignImage, width: int) -> ForeignSpec:
    """The spec of a network that reads an image, whose residual stream has `width` numbers."""
    assert spec.encoder is not None
    return replace(spec, encoder=replace(spec.encoder, image=image, d_model=width, max_positions=len(image.names)))


def _compare(network: AnyForeign, given: Pass, wanted: Any, sites: tuple[headlight.Site, ...]) -> None:
    """Refuses a network whose runs are not the library's own.

    Raises:
        NotFoundError: they are not.
    """
    maps = list[Tensor]()

    def keep(name: str, value: Tensor) -> None:
        if name.endswith("/weights"):
            maps.append(value[0])

    writes = isinstance(network, ForeignWriter | ForeignTranslator)
    expected = getattr(wanted, "logits" if writes else "last_hidden_state", None)
    if expected is None:
        raise NotFoundError(phrase("it returns no last states"))
    # three comparisons: last states or logits, the map of each site, and a decode in two steps with the cache
    close = partial(_close, most=close_of(network.library))
    if not close(_states(network, given, keep), expected):
        raise NotFoundError(_OTHER)
    written = [torch.from_numpy(site.written()) for site in sites]
    if len(maps) != len(written) or not all(close(a.float(), b) for a, b in zip(maps, written, strict=True)):
        raise NotFoundError(_OTHER)
    if writes and not close(_states(network, given, keep, at_once=False), expected):
        raise NotFoundError(phrase("decoding with its cache gives logits different from those of a single pass"))


def _states(network: AnyForeign, given: Pass, keep: Any, at_once: bool = True) -> Tensor:
    """Logits of all positions, read at once or in two steps; or an encoder's last states."""
    run = Run(keep, cache=network.new_cache())
    if isinstance(network, ForeignWriter):
        ids = given.source
        parts = [network(ids[:, :end], run, start) for start, end in _steps(ids.shape[1], at_once)]
        return torch.cat(parts, dim=1)
    mask = network.source_mask(given.source, torch.tensor([given.source.shape[1]]))
    memory = network.encode(given.source, mask, run)
    if not isinstance(network, ForeignTranslator):
        return memory
    assert given.target is not None
    parts = [
        network.decode(given.target[:, :end], memory, mask, run, start) for start, end in _steps(given.target.shape[1], at_once)
    ]
    return torch.cat(parts, dim=1)


def _steps(count: int, at_once: bool) -> list[tuple[int, int]]:
    return [(0, count)] if at_once else [(0, count // 2), (count // 2, count)]


def _close(tensor: Tensor, other: Tensor, most: float) -> bool:
    """Whether two tensors are the same but for rounding, which grows with the largest numbers that are summed."""
    return tensor.shape == other.shape and bool((tensor - other).abs().max() <= most * max(1.0, float(other.abs().max())))
