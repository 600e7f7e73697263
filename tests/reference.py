"""Tiny checkpoints of the five reference documents and what their own code computed from them (tests/golden), ready to compare."""

import json
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from model.checkpoints.layouts.loading import load
from model.checkpoints.native import Checkpoint
from model.inference.run import run
from model.requests.inputs import Features, Given
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Trace

GOLDEN = Path(__file__).parent / "golden"
CPU = torch.device("cpu")
ATTENTION, STATES = 2e-5, 5e-5

SETTINGS: dict[str, dict[str, str]] = {
    "000_tiny_a": {"n_heads": "2", "decoder_passes": "2", "pad_id": "1", "bos_id": "2", "eos_id": "3"},
    "000_tiny_b": {
        "encoder_heads": "3",
        "decoder_heads": "4",
        "decoder_passes": "2",
        "source_pad_id": "1",
        "target_pad_id": "1",
        "bos_id": "2",
        "eos_id": "3",
    },
    "001_tiny_a": {"n_heads": "2"},
    "001_tiny_b": {"n_heads": "3"},
    "002_tiny_decoder_layer": {"head_dim": "5"},
    "002_tiny_encoder": {"n_heads": "2", "head_dim": "3"},
    "002_tiny_mha": {"n_heads": "3"},
    "003_tiny_a": {"bos_id": "2"},
    "003_tiny_b": {"bos_id": "2"},
    "004_tiny_a": {"n_heads": "2", "bos_id": "2", "eos_id": "3"},
    "004_tiny_b": {"n_heads": "4", "bos_id": "2", "eos_id": "3"},
}


@cache
def expected(name: str) -> Mapping[str, Array]:
    return load_file(GOLDEN / f"{name}.expected.safetensors")


@cache
def described(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return data


@cache
def opened(name: str, settings: tuple[tuple[str, str], ...]) -> Checkpoint:
    return load(GOLDEN / f"{name}.pt", dict(settings), CPU)


def traced(
    name: str, source: Given, target: Given | None = None, max_length: int = 0, valid: int | None = None, **more: str
) -> Trace:
    """The run of a golden file, recorded whole; `more` settings weigh more than those of SETTINGS."""
    checkpoint = opened(name, tuple((SETTINGS[name] | more).items()))
    request = RunRequest(name, source, target, Decoding(max_length=max_length), source_valid=valid, keep=KEEP)
    return run(checkpoint, request, CPU, "cpu")


def buffer(name: str, path: str) -> Array:
    """A buffer of the network that a golden file becomes."""
    array: Array = opened(name, tuple(SETTINGS[name].items())).network.get_buffer(path).numpy()
    return array


def ids(array: Array) -> tuple[int, ...]:
    return tuple(array.tolist())


def features(array: Array) -> Features:
    return Features(tuple(map(tuple, array.tolist())))


def cases(*names: str) -> list[tuple[str, str, int]]:
    """File, case and row of the batch of every case that is one forward pass."""
    return [
        (name, case["name"], row)
        for name in names
        for case in described(name)["cases"]
        if case.get("kind", "forward") == "forward"
        for row in range(_batch(name, case["name"]))
    ]


def _batch(name: str, case: str) -> int:
    tensors = expected(name)
    if name.startswith("002"):
        return len(tensors[f"{case}.output"])
    array = tensors[f"{case}.src_ids"]
    return array.shape[1] if name.startswith("001") else len(array)


def assert_close(found: Array | None, wanted: Array, tolerance: float, what: str) -> None:
    assert found is not None, what
    assert found.shape == wanted.shape, what
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=what)


class Comparison:
    """Compares one row of a case, and notes which of its tensors were looked at, so that none is forgotten."""

    def __init__(self, name: str, case: str, row: int, trace: Trace, sequence_first: Collection[str] = ()) -> None:
        self.tensors = {key.removeprefix(f"{case}."): value for key, value in expected(name).items() if key.startswith(f"{case}.")}
        self.row, self.trace = row, trace
        self.left = set(self.tensors)
        self.sequence_first = sequence_first

    def take(self, key: str) -> Array:
        self.left.discard(key)
        tensor = self.tensors[key]
        return tensor[:, self.row] if key in self.sequence_first else tensor[self.row]

    def weights(self, key: str, site: str) -> None:
        assert_close(self.trace.at(site).weights, self.take(key), ATTENTION, key)

    def states(self, key: str, found: Array | None) -> None:
        assert_close(found, self.take(key), STATES, key)

    def layers(self, key: str, path: str, **kinds: str) -> None:
        """Compares each layer's hidden state, and the weights of its attentions: what the key calls them, and their kind."""
        count = sum(re.fullmatch(path.replace("{}", r"\d+"), name) is not None for name in self.trace.hidden)
        assert count
        for i in range(count):
            self.states(f"{key.format(i)}.out", self.trace.hidden[path.format(i)])
            for part, kind in kinds.items():
                self.weights(f"{key.format(i)}.{part}", f"{path.format(i)}.{kind}")

    def mask(self, key: str, *sites: str) -> None:
        wanted = self.take(key)
        for site in sites:
            found = self.trace.at(site).mask
            assert (found == np.broadcast_to(wanted.astype(bool).any(axis=0), found.shape)).all(), f"{key} at {site}"

    def positions(self, stack: str, name: str) -> None:
        rows = self.trace.positions[stack]
        table = expected(name)["pos.enc" if stack == "encoder" else "pos.dec"]
        assert_close(rows, table.reshape(-1, table.shape[-1])[: len(rows)], 0, f"positions of the {stack}")

    def nothing_left(self, *but: str) -> None:
        assert self.left <= set(but), self.left - set(but)
