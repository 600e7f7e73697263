"""Probe: a short run of a network that was just opened. It tells its attention, and whether later tokens change earlier logits."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

import headlight
from model.errors import Phrase, phrase
from model.huggingface.folder import Folder
from model.huggingface.recorded.network import Pass, RecordedNetwork
from model.trace.checks import SINKS

PROBE = 8
"""Tokens of the probe."""

CLOSE: Mapping[torch.dtype, float] = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 4e-3}
"""Largest difference of two weights that rounding explains, by the precision of a network."""


def example(network: RecordedNetwork, last: int = 0) -> Pass:
    """A short input: ids that are no special ones, the last one changed by `last`; or random features."""
    spec, form = network.spec, network.reads
    first = spec.encoder or spec.writer
    if form.form == "ids":
        # special ids may end a text or be masked; ordinary ones take part in every map
        plain = [id_ for id_ in range(first.vocab) if id_ not in (spec.pad_id, spec.start_id, spec.end_id)][: PROBE + 1]
        plain = (plain or [0]) * PROBE
        source = torch.tensor([[*plain[: PROBE - 1], plain[PROBE - 1 + last]]])
    else:
        source = torch.randn(1, form.example, form.width, generator=torch.Generator().manual_seed(0))
    start = (0 if spec.start_id is None else spec.start_id, *spec.forced)
    return Pass(source, target=torch.tensor([[*start, *start]]) if network.kind == "both" else None)


@torch.inference_mode()
def looks_back_only(network: RecordedNetwork) -> bool:
    """Whether the logits of a token stay the same when the next one changes: else nothing can be generated one by one."""
    logits, logits_after_change = (network(example(network, last)).logits[0, : PROBE - 1] for last in (0, 1))
    return bool(torch.allclose(logits, logits_after_change, atol=(close := close_of(network.library)), rtol=close))


@torch.inference_mode()
def probed(folder: Folder, network: RecordedNetwork) -> tuple[tuple[headlight.Site, ...], tuple[Phrase, ...]]:
    """The attention of a short run, and what is to be said of it, also how it compares with the maps that the library returns.

    Raises:
        UnsupportedModel: no attention was recognized, or another one than the library's.
    """
    # the recorder watches what torch computes; here it must see attention where the library has it
    given = example(network)
    _out, recording = network.recorded(given)
    if not recording.sites:
        seen = "; ".join(f"{name.removeprefix('attention/')}: {why}" for name, why in list(recording.missing.items())[:2])
        reason = phrase(
            "its architecture is {model_type}, and no attention was recognized in what it computes",
            model_type=repr(folder.model_type),
        )
        raise folder.unsupported((reason, seen) if seen else reason)
    close = close_of(network.library)
    sentences = list(_compared(folder, recording, _maps(network, given), close))
    # an encoder whose windows the recorder does not take for attention still gives the decoder its states
    if network.kind == "both" and not any(site.stack == "encoder" for site in recording.sites):
        sentences.append(_IN_WINDOWS if "attention_window" in folder.config else _NO_ENCODER)
    if not all(_are_weights(torch.from_numpy(site.written()), close) for site in recording.sites):
        sentences.append(SINKS)
    return tuple(recording.sites), tuple(sentences)


_NO_ENCODER = phrase("No attention was recognized in its encoder, so none of it is shown.")
_IN_WINDOWS = phrase(
    "No attention of its encoder is shown: it is computed in sliding windows (attention_window), whose rows have a weight for each "
    "neighbor of a token and not for each token."
)
_NO_MAPS = phrase("The library returns no maps of this architecture to compare with the recorded ones.")


def _maps(network: RecordedNetwork, given: Pass) -> dict[str, list[Tensor]]:
    """The library's maps by stack and kind; empty: it returns none."""
    try:
        out = network(given, output_attentions=True)
    except Exception:  # of the library: some classes take no such argument
        return {}
    names = {f"{network.kind}.self": "attentions"}
    if network.kind == "both":
        names = {"encoder.self": "encoder_attentions", "decoder.self": "decoder_attentions", "decoder.cross": "cross_attentions"}
    maps_by_stack = {
        stack: [tensor for tensor in getattr(out, name, None) or () if isinstance(tensor, Tensor)] for stack, name in names.items()
    }
    return {stack: maps for stack, maps in maps_by_stack.items() if maps}


def close_of(library: nn.Module) -> float:
    """Largest difference of two weights that rounding explains in a network of the library."""
    return CLOSE[next(library.parameters()).dtype]


def _compared(folder: Folder, recording: headlight.Recording, maps: Mapping[str, list[Tensor]], close: float) -> Iterator[Phrase]:
    """How recorded weights compare with what the library returns: the largest difference, or why there is none.

    Raises:
        UnsupportedModel: they are others.
    """
    if not maps:
        yield _NO_MAPS
    weights, scores = list[float](), list[float]()
    for stack_and_kind, library_maps in maps.items():
        sites = [site for site in recording.sites if _is_of(site, stack_and_kind)]
        # some classes return a map per block, per window, or none of a layer: nothing to compare
        if len(sites) != len(library_maps):
            if sites:
                yield _other_number(stack_and_kind, len(sites), len(library_maps))
        elif other := next((pair for pair in zip(sites, library_maps, strict=True) if pair[1][0].shape != pair[0].shape), None):
            yield _other_shape(stack_and_kind, other[0].shape, tuple(other[1][0].shape))
        elif all(_are_weights(rows, close) for rows in library_maps) or max(map(_difference, sites, library_maps)) <= close:
            weights += map(_difference, sites, library_maps)
        elif max(map(_difference, sites, (rows.softmax(-1) for rows in library_maps))) <= close:
            scores += map(_difference, sites, (rows.softmax(-1) for rows in library_maps))
        else:
            yield phrase(
                "What the library returns as the weights of {site} is something else, so it was not compared.", site=stack_and_kind
            )
    if weights and not max(weights) <= close:
        reason = phrase(
            "its recorded attention differs by {difference:.0e} from the maps that the library returns", difference=max(weights)
        )
        raise folder.unsupported(reason)
    if weights:
        yield phrase(
            "Recorded maps of a short run differ by at most {difference:.0e} from those that the library itself returns.",
            difference=max(weights),
        )
    if scores:
        yield phrase(
            "The library returns scores under the name of weights. Recorded maps of a short run differ by at most {difference:.0e} "
            "from the softmax of these.",
            difference=max(scores),
        )


def _other_number(stack_and_kind: str, recorded: int, returned: int) -> Phrase:
    return phrase(
        "The library returns {own} maps of {site}, and {found} were recorded in a short run, so these were not compared.",
        own=returned,
        site=stack_and_kind,
        found=recorded,
    )


def _other_shape(stack_and_kind: str, recorded: tuple[int, ...], returned: tuple[int, ...]) -> Phrase:
    return phrase(
        "The library’s maps of {site} have the shape {own}, and the recorded ones {found}, so these were not compared.",
        own=" × ".join(map(str, returned)),
        site=stack_and_kind,
        found=" × ".join(map(str, recorded)),
    )


def _are_weights(rows: Tensor, close: float) -> bool:
    """Whether no number is negative, and each row sums to 1, or to 0 where no key is allowed."""
    sums = rows.float().sum(-1)
    return bool((rows > -close).all() and ((sums - 1).abs().minimum(sums.abs()) < close).all())


def _difference(site: headlight.Site, library_map: Tensor) -> float:
    return float((torch.from_numpy(site.written()) - library_map[0].float().cpu()).abs().max())


def _is_of(site: headlight.Site, stack_and_kind: str) -> bool:
    name, kind = stack_and_kind.split(".")
    return site.stack in (name, "program") and (site.kind == "cross") == (kind == "cross")
