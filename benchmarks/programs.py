"""Held-out programs: `headlight.py` records programs that nobody here wrote, and their maps are compared with what a hook or a flag
of each library gives. Random weights, small sizes. It installs nothing: a program whose package is not there is skipped."""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import Tensor, nn

import headlight
from benchmarks import families
from benchmarks.held_out import PROGRAMS, Program
from benchmarks.timing import Row


def measure(repeats: int) -> Iterator[Row]:
    """One row for each program: the time of a call, the ratio with a recording, and the largest difference from the reference."""
    for title, (package, make) in PROGRAMS.items():
        try:
            told = f"{package} {version(package)}"
            torch.manual_seed(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield compared(title, told, make, repeats)
        except (ImportError, PackageNotFoundError) as error:
            print(f"{title}: skipped, {error}", file=sys.stderr)
    yield from families.measure()


def compared(title: str, told: str, make: Program, repeats: int) -> Row:
    """Records one program and compares every site with its reference."""
    model, call, reference = make()
    model.eval()
    with torch.no_grad():
        call()
        with headlight.record(model) as recording:
            call()
        expected = reference()
        alone, recorded = (seconds(call, repeats), seconds(lambda: watched(model, call), repeats))
    named = "; ".join(f"{name}: {why}" for name, why in recording.missing.items())
    if len(recording.sites) != len(expected):
        return Row(title, alone * 1000, recorded / alone, f"{told}: {len(recording.sites)} of {len(expected)} sites; {named}")
    off = max(difference(site, own) for site, own in zip(recording.sites, expected, strict=True))
    kernels = max((site.difference for site in recording.sites if site.difference is not None), default=None)
    kernel = "weights computed by the program" if kernels is None else f"kernels differ by {kernels:.0e}"
    kinds = ", ".join(sorted({site.kind for site in recording.sites}))
    note = f"{told}: {len(recording.sites)} sites ({kinds}), off by {off:.0e}; {kernel}{'; ' * bool(named)}{named}"
    return Row(title, alone * 1000, recorded / alone, note)


def difference(site: headlight.Site, expected: Tensor) -> float:
    """Largest difference of a site's map from the first example of its reference; infinite where the shapes differ."""
    own, wanted = torch.from_numpy(site.written()).double(), expected[0].double()
    wanted = wanted[None] if wanted.dim() == 2 else wanted
    return float((own - wanted).abs().max()) if own.shape == wanted.shape else math.inf


def watched(model: nn.Module, call: Callable[[], object]) -> None:
    """The call with a recording."""
    with headlight.record(model):
        call()


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Shortest time of a call."""
    spans = []
    for _turn in range(repeats):
        began = time.perf_counter()
        call()
        spans.append(time.perf_counter() - began)
    return min(spans)
