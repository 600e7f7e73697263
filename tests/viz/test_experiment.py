"""Altered runs: the sentence of the banner, and the names and marks of silenced heads in the drawings."""

from dataclasses import replace

from model.requests.edits import Silence
from model.requests.request import RunRequest
from model.trace.types import Site
from tests import traces
from viz.canvas.scenes import attention
from viz.canvas.wire import overviews
from viz.canvas.wire.transport import unpack
from viz.labels import edits

CROSS = Site("decoder", 0, 1, "cross")


def silencing(*heads: int) -> RunRequest:
    return RunRequest("made-up", "zwei hunde", edits=tuple(Silence(str(CROSS), (head,)) for head in heads))


def test_an_unaltered_run_says_nothing() -> None:
    assert edits.sentence(RunRequest("made-up", "zwei hunde").to_json()) == ""
    assert edits.sentence(traces.translation().request) == "", "a trace of an older program has no interventions"


def test_few_silenced_heads_are_named_and_many_are_counted() -> None:
    said = edits.sentence(silencing(0, 4).to_json())
    assert said == "Experiment: silenced: Cross-attention, layer 2, head 1; Cross-attention, layer 2, head 5"
    assert edits.sentence(silencing(*range(8)).to_json()) == "Experiment: heads silenced: 8"


def test_drawings_are_told_which_heads_are_silenced_and_call_them_so() -> None:
    trace = replace(traces.translation(layers=2, heads=2), request=silencing(1).to_json())
    header, _blobs = unpack(attention.atlas(trace, CROSS, 0, -1))
    assert header["silenced"] == ["decoder.0.1.cross/1"]
    overview, _weights = unpack(overviews.part(trace).data)
    named = {name for group in overview["groups"] for row in group["sites"] for name in row["names"] if "silenced" in name}
    assert named == {"Cross-attention, layer 2, head 2 (silenced)"}
    player, _blobs = unpack(attention.player(trace, CROSS, 0, -1))
    assert player["names"] == ["Cross-attention, layer 2, head 1", "Cross-attention, layer 2, head 2 (silenced)"]
