"""Probe: a short run of a network that was just opened. It tells its attention, and whether later tokens change earlier logits."""

from collections.abc import Mapping

import torch
from torch import Tensor

import headlight
from model.errors import UnsupportedModel
from model.huggingface.folder import Folder
from model.huggingface.recorded.network import Pass, RecordedNetwork

PROBE = 8
"""Tokens of the probe."""

CLOSE = 1e-4
"""Largest difference of two weights that rounding explains."""


def _example(network: RecordedNetwork, last: int = 0) -> Pass:
    """A short input: ids that are no special ones, the last one changed by `last`; or random features."""
    spec, form = network.spec, network.reads
    first = spec.encoder or spec.writer
    if form.form == "ids":
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
    one, other = (network(_example(network, last)).logits[0, : PROBE - 1] for last in (0, 1))
    return bool(torch.allclose(one, other, atol=1e-4, rtol=1e-4))


@torch.inference_mode()
def probed(folder: Folder, network: RecordedNetwork) -> tuple[tuple[headlight.Site, ...], float | None]:
    """The attention of a short run, and its largest difference from the maps that the library returns; None: it returns none,
    or others.

    Raises:
        UnsupportedModel: no attention was recognized, or another one than the library's.
    """
    given = _example(network)
    _out, recording = network.recorded(given)
    if not recording.sites:
        seen = "; ".join(f"{name.removeprefix('attention/')}: {why}" for name, why in list(recording.missing.items())[:2])
        reason = f"its architecture is {folder.model_type!r}, and no attention was recognized in what it computes"
        raise UnsupportedModel(path=folder.path, reason=f"{reason} ({seen})" if seen else reason)
    difference = _difference(recording, _maps(network, given))
    if difference is not None and not difference <= CLOSE:
        reason = f"its recorded attention differs by {difference:.0e} from the maps that the library returns"
        raise UnsupportedModel(path=folder.path, reason=reason)
    return tuple(recording.sites), difference


def _maps(network: RecordedNetwork, given: Pass) -> dict[str, list[Tensor]]:
    """The library's maps by stack, `cross` beside them; empty: it returns none."""
    try:
        out = network(given, output_attentions=True)
    except Exception:  # of the library: some classes take no such argument
        return {}
    if network.kind != "both":
        return {network.kind: [*(getattr(out, "attentions", None) or ())]}
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    return {stack: [*(getattr(out, name, None) or ())] for stack, name in names.items()}


def _difference(recording: headlight.Recording, maps: Mapping[str, list[Tensor]]) -> float | None:
    found = list[float]()
    for stack, own in maps.items():
        sites = [site for site in recording.sites if _belongs(site, stack)]
        if len(sites) != len(own) or not all(isinstance(each, Tensor) and each.dim() == 4 for each in own):
            return None
        for site, wanted in zip(sites, own, strict=True):
            sums = wanted[0].sum(-1)
            if wanted[0].shape != site.shape or not bool(((sums - 1).abs().minimum(sums.abs()) < CLOSE).all()):
                return None  # some classes return scores under this name
            found.append(float((torch.from_numpy(site.written()) - wanted[0].cpu()).abs().max()))
    return max(found, default=None)


def _belongs(site: headlight.Site, stack: str) -> bool:
    return site.kind == "cross" if stack == "cross" else site.stack in (stack, "program") and site.kind != "cross"
