"""The same work on each device: a cached decode, and on CUDA the cost of recording (`recording` measures it on the CPU)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import nan

import torch

from benchmarks import decoding, recording
from benchmarks.timing import Row, in_turns
from model.checkpoints import native
from model.engine.local import CHECKPOINTS
from model.inference import inputs
from model.requests.request import KEEP, Keep
from model.transformer.build import Network, build
from model.transformer.stacks import EncoderDecoder


def devices() -> list[torch.device]:
    """The CPU and, where there is one, the GPU."""
    return [torch.device(name) for name in ("cpu", "cuda")[: 1 + torch.cuda.is_available()]]


def measure(repeats: int) -> Iterator[Row]:
    """Decodes with the bundled German → English model, and records networks with random weights; on the CPU with one thread."""
    torch.set_num_threads(1)
    cases: dict[str, Callable[[], object]] = {}
    for device in devices():
        network = native.load(CHECKPOINTS / "multi30k-de-en", device).network
        assert isinstance(network, EncoderDecoder)
        cases[f"{decoding.TOKENS} tokens, cached, {device.type}"] = partial(decoding.decode, network, True)
    for row in in_turns(cases, 4 * repeats):
        yield replace(row, note=f"{1000 * decoding.TOKENS / row.milliseconds:,.0f} tokens a second")
    if torch.cuda.is_available():
        yield from recorded(torch.device("cuda"), repeats)
    else:
        yield Row("recording on CUDA", nan, note="there is none here")


def recorded(device: torch.device, repeats: int) -> Iterator[Row]:
    """The cost of recording on a device; each case ends when the device has finished."""
    for title, spec in recording.SPECS.items():
        network = build(spec).eval().to(device)
        for length in recording.LENGTHS:
            ids = torch.arange(4, 4 + length, device=device)[None]
            fused = length > inputs.LONG
            cases: dict[str, Callable[[], object]] = {
                f"{title}, {length} tokens, fused, recording nothing": partial(finished, network, ids, True, None),
                f"{title}, {length} tokens, as the app records": partial(finished, network, ids, fused, ()),
                f"{title}, {length} tokens, everything": partial(finished, network, ids, False, KEEP),
            }
            for row in in_turns(cases, 4 * repeats):
                yield replace(row, case=f"{device.type}: {row.case}", note="of recording nothing" if row.ratio else "")


def finished(network: Network, ids: torch.Tensor, fused: bool, keep: tuple[Keep, ...] | None) -> None:
    """Runs `recording.forward` and waits until the device has finished."""
    recording.forward(network, ids, fused, keep)
    if ids.device.type == "cuda":
        torch.cuda.synchronize(ids.device)
