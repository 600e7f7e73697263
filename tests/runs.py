"""Whole runs of small random networks, for tests that need a real Trace: no files, no training."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

from model.checkpoints.loader import Runner
from model.checkpoints.native import Checkpoint, Info
from model.engine.scheduling.queue import Session, in_session
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.inputs import Features, Given
from model.requests.network import AttentionSpec, ModelSpec, StackSpec
from model.requests.request import KEEP, Decoding, RunRequest
from model.tokenizers.words import SPECIALS, WordTokenizer
from model.trace.types import Trace
from tests.networks import VARIANTS, network

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

CPU = torch.device("cpu")
_LONE = StackSpec(vocab=0, d_model=6, layers=2, attention=AttentionSpec(heads=2, head_dim=5), hidden=0, wiring="attention")
_STACK = replace(VARIANTS["paper"].stacks["decoder"], hidden=9)

SPECS: dict[str, ModelSpec] = {
    **VARIANTS,
    "encoder alone": ModelSpec(encoder=replace(_STACK, norm="unbiased"), decoder=None, output=None),
    "attention alone": ModelSpec(encoder=_LONE, decoder=None, output=None, pad_id=None, start_id=None, end_id=None, unk_id=None),
    "no feed-forward": replace(
        VARIANTS["language model"],
        decoder=replace(VARIANTS["language model"].stacks["decoder"], hidden=0, wiring="no-feed-forward"),
    ),
    "memory": ModelSpec(
        encoder=_STACK,
        decoder=replace(_STACK, wiring="memory", attention=replace(_STACK.attention, projections="shared", bias=False)),
    ),
}
"""Every variant of tests/networks.py, and networks of fewer parts."""


def checkpoint(spec: ModelSpec, seed: int = 0) -> Checkpoint:
    """A random network as if it had been loaded; its words are w4, w5, …"""
    strips = ("source", "target") if spec.encoder and spec.decoder else ("source",)
    tokenizers = {
        strip: WordTokenizer("spacy-de", SPECIALS + tuple(f"w{i}" for i in range(len(SPECIALS), stack.vocab)))
        for strip, stack in zip(strips, spec.stacks.values(), strict=True)
        if stack.vocab
    }
    info = Info(
        name="tiny",
        title="Tiny",
        summary="Random weights.",
        languages={"source": "German"},
        examples=("w4 w5",),
        data={},
        spec=spec,
    )
    return Checkpoint(info, network(spec, seed), tokenizers, "0" * 64)


def request(spec: ModelSpec, silenced: tuple[Silence, ...] = (), source: Given | None = None) -> RunRequest:
    """A request that a network of `spec` can run, which keeps everything."""
    rows = tuple(tuple(((7 * i + 3 * j) % 11) / 5 - 1 for j in range(6)) for i in range(5))
    given: Given = "w4 w6 w5 w9" if spec.writer.vocab else Features(rows)
    return RunRequest("tiny", source if source is not None else given, decoding=Decoding(max_length=5), keep=KEEP, edits=silenced)


def traced(found: Runner, asked: RunRequest) -> Trace:
    """The run of a request."""
    return run(found, asked, CPU, "cpu")


def cells(trace: Trace, count: int, seed: int = 0) -> Iterator[tuple[str, int, int, int]]:
    """Random cells: site, head, query and key."""
    rng = np.random.default_rng(seed)
    sites = list(trace.attention)
    for _ in range(count):
        attention = trace.attention[sites[rng.integers(len(sites))]]
        yield str(attention.site), *(int(rng.integers(size)) for size in attention.weights.shape)  # type: ignore[misc]


def arrays(trace: Trace) -> dict[str, Any]:
    """Every array of a trace by name."""
    named: dict[str, Any] = {f"{site}/{n}": a for site, own in trace.attention.items() for n, a in vars(own).items()}
    for group in ("positions", "embedded", "hidden", "stages"):
        named |= {f"{group}/{name}": array for name, array in getattr(trace, group).items()}
    return {name: a for name, a in (named | {"logits": trace.logits}).items() if isinstance(a, np.ndarray)}


def assert_same(found: Trace | Exception, expected: Trace) -> None:
    """Fails where two runs differ by more than rounding."""
    assert isinstance(found, Trace), found
    assert found.tokens == expected.tokens
    assert found.missing == expected.missing
    assert [(s.index, s.chosen.id, s.computed) for s in found.steps] == [(s.index, s.chosen.id, s.computed) for s in expected.steps]
    ours, theirs = arrays(found), arrays(expected)
    assert list(found.attention) == list(expected.attention)
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-5, atol=1e-5, err_msg=name)


def for_session(session: str, call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A call of an engine for a session, whichever thread makes it."""

    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with in_session(Session(session)):
            return call(*args, **kwargs)

    return called
