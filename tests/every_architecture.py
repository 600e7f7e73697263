"""`python -m tests.every_architecture` counts the architectures of the transformers library that work here, one line for each.

Of each architecture a small folder with random weights is saved, if the settings of benchmarks/families.py make it small. It
counts if the library's own network reads ids and returns maps. Compared are all maps and logits with the library's, each edit with
the same by an attention function of one's own, and the weight of an explained cell with the map.
"""

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.families import small_config
from model.checkpoints import loader
from model.huggingface import library
from model.huggingface.families import Kind
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignNetwork
from model.inference.cell import explain_cell
from model.trace.types import Trace
from tests import changeable
from tests.recorded_folders import SOURCE, TARGET, _pairs, saved, traced

LARGEST = 4_000_000
"""Parameters of a network that is small; others keep sizes of their own, whatever the settings say."""

SECONDS = 60
"""Time for one architecture."""

CLOSE = 1e-4


@dataclass(frozen=True)
class Tried:
    """What one architecture can do here.

    Attributes:
        maps, edited, explained: whether that is right.
        why: why the first that is not, is not.
    """

    maps: bool = False
    edited: bool = False
    explained: bool = False
    why: str = ""


class TooSlow(Exception):
    """An architecture took more than SECONDS."""


@contextmanager
def in_time() -> Iterator[None]:
    """Raises TooSlow in what takes longer."""

    def late(*_given: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def tried(name: str, room: Path) -> Tried | None:
    """What an architecture can do here; None: it is not counted."""
    try:
        found = _own(name, room)
    except Exception:  # of the library, which has no small network of this kind, or none that reads ids
        return None
    if found is None:
        return None
    own, kind, wanted = found
    right = Tried()
    try:
        opened = loader.load(room, {}, torch.device("cpu"))
        assert isinstance(opened, Foreign)
        trace, _inputs = traced(opened, kind)
        _check(max(_off(trace, kind, wanted)), "maps")
        right = replace(right, maps=True)
        if not isinstance(opened.network, ForeignNetwork):
            raise ValueError(f"recorded only: {opened.network.why}")
        edits = dict(changeable.differences(own, kind, opened))
        _check(max(edits.values()), "edits")
        right = replace(right, edited=True)
        _check(_unexplained(opened, kind, trace), "the cell")
        right = replace(right, explained=True)
    except TooSlow:
        raise
    except Exception as error:
        return replace(right, why=" ".join(str(error).replace(str(room), "FOLDER").split()[:24]))
    return right


def _own(name: str, room: Path) -> tuple[Any, Kind, Any] | None:
    """The library's network, its stacks and its maps; None: it is not small, or returns none."""
    config = small_config(name)
    kind = library.kind_of(config)
    if kind is None or sum(each.numel() for each in library.outline(kind, config).parameters()) > LARGEST:
        return None
    own, kind = saved(room, name)
    given: dict[str, Any] = {"input_ids": torch.tensor([SOURCE])}
    if kind == "both":
        given |= {"decoder_input_ids": torch.tensor([TARGET]), "use_cache": False}
    with torch.inference_mode():
        wanted = own(**given, output_attentions=True)
    maps = wanted.encoder_attentions if kind == "both" else wanted.attentions
    return (own, kind, wanted) if maps and all(each is not None for each in maps) else None


def _off(trace: Trace, kind: Kind, wanted: Any) -> Iterator[float]:
    """How far maps and logits are from the library's."""
    for sites, maps in _pairs(trace, kind, wanted):
        if len(sites) != len(maps):
            raise ValueError(f"{len(sites)} sites, and the library returns {len(maps)} maps")
        for attention, own in zip(sites, maps, strict=True):
            first = own[0] if own.dim() == 4 else own.flatten(0, -4)[0]  # the first block of a map in blocks
            weights = torch.from_numpy(attention.weights.copy())
            yield min(float((weights - each).abs().max()) for each in (first, first.softmax(-1)))  # some hand out scores
    if trace.logits is not None:
        yield float((torch.from_numpy(trace.logits.copy()) - wanted.logits[0]).abs().max())


def _unexplained(opened: Foreign, kind: Kind, trace: Trace) -> float:
    """How far the weight of an explained cell is from the map."""
    site = changeable.SITES[kind][1]
    explained = explain_cell(opened.network, trace, site, 1, 3, 2)
    return abs(explained.weight - float(trace.at(site).weights[1, 3, 2]))


def _check(difference: float, what: str) -> None:
    if not difference <= CLOSE:
        raise ValueError(f"{what} differ by {difference:.0e}")


def main() -> None:
    """Prints a line for each architecture, and the counts."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = dict[str, Tried]()
    for name in sys.argv[1:] or [*CONFIG_MAPPING]:
        with TemporaryDirectory() as room:
            try:
                with in_time():
                    one = tried(name, Path(room) / name)
            except TooSlow:
                one = Tried(why=f"it took more than {SECONDS} seconds")
        if one is not None:
            found[name] = one
            words = [word for word, yes in (("maps", one.maps), ("edited", one.edited), ("explained", one.explained)) if yes]
            print(f"{name}: {', '.join(words) or 'nothing'}{f'; {one.why}' if one.why else ''}", flush=True)
    counts = {what: sum(getattr(one, what) for one in found.values()) for what in ("maps", "edited", "explained")}
    print(f"{len(found)} small folders: {', '.join(f'{what} {count}' for what, count in counts.items())}")


if __name__ == "__main__":
    main()
