"""What recording costs: the same network on the same ids, with a recorder and without."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from benchmarks.timing import Row, in_turns
from model import checkpoints
from model.engine.base import KEEP, Keep
from model.engine.local import CHECKPOINTS
from model.recording import Recorder
from model.transformer.attention import Run
from model.transformer.stacks import EncoderDecoder

LENGTHS = (12, 50, 98)


def measure(repeats: int) -> Iterator[Row]:
    """Source and target of each length through the bundled model, one thread, teacher forcing.

    The recorded cases end with arrays, as a trace needs them. A run takes milliseconds, so there are ten turns for each repeat.
    """
    torch.set_num_threads(1)
    network = checkpoints.load(CHECKPOINTS / "multi30k-de-en", torch.device("cpu")).network
    assert isinstance(network, EncoderDecoder)
    for length in LENGTHS:
        ids = torch.arange(4, 4 + length)[None]
        cases: dict[str, Callable[[], object]] = {
            f"{length} tokens, recording nothing": partial(forward, network, ids, None),
            f"{length} tokens, recording weights and masks": partial(forward, network, ids, ()),
            f"{length} tokens, recording everything": partial(forward, network, ids, KEEP),
        }
        yield from (replace(row, note="of recording nothing" if row.ratio else "") for row in in_turns(cases, 10 * repeats))


def forward(network: EncoderDecoder, ids: torch.Tensor, keep: tuple[Keep, ...] | None) -> None:
    """One pass of `ids` [batch, position] as source and target; `keep` None records nothing."""
    recorder = None if keep is None else Recorder(keep)
    run = Run() if recorder is None else Run(recorder)
    with torch.inference_mode():
        mask = network.source_mask(ids)
        network.decode(ids, network.encode(ids, mask, run), mask, run)
    if recorder is not None:
        recorder.arrays()
