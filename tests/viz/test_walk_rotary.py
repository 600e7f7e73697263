"""What is shown of a Llama-like run: its formulas, the lines that computed it, and no positions that nobody added."""

from dataclasses import replace

import pytest
import torch

from model.checkpoints import tensors
from model.errors import CannotChange, UnknownTensor
from model.inference.cell import explain_cell
from model.inference.recorded_trace import facts
from model.requests.edits import Edit, NoPositions, ShiftPositions, Silence
from model.trace import source_lines, stages
from model.trace.stages import Stage
from tests.pages import MadeUpEngine, open_view, words
from tests.runs import SPECS, checkpoint, request, traced
from viz.views.step import formulas, sentences

NAME = "rotary language model"


def test_stages_of_a_rotary_network_say_what_it_computes() -> None:
    found = checkpoint(SPECS[NAME])
    trace = traced(found, request(SPECS[NAME]))
    formula = {name: formulas.formula(trace, Stage(f"decoder.0.0.{place}", name)) for place, name in PLACES}
    assert formula["queries"] == r"Q_p = R_p\,(x_p\,W^Q), \qquad R_p:\; \angle = p \cdot 50^{-2i/d}"
    assert formula["values"] == r"V = x\,W^V", "values are not turned"
    assert formula["hidden"] == r"H = \mathrm{SiLU}(x\,W_1) \odot (x\,W_3)"
    assert r"\mu" not in formula["normed"]
    assert "then rotated" in sentences.sentence(trace, Stage("decoder.0.0.self", "keys"))
    assert "root mean square" in sentences.sentence(trace, Stage("decoder.0.0.self", "normed"))
    assert "the gate" in sentences.sentence(trace, Stage("decoder.0.0.feed_forward", "hidden"))
    code = {name: source_lines.code(trace, Stage(f"decoder.0.0.{place}", name)) for place, name in PLACES}
    assert {name: one and one.function for name, one in code.items()} == {
        "queries": "MultiHeadAttention.forward",
        "values": "MultiHeadAttention.forward",
        "normed": "PreNorm.forward",
        "hidden": "GatedFeedForward.forward",
    }
    assert [stage.name for stage in stages.walk(trace)][:4] == ["tokens", "ids", "embedding", "normed"], "no positions are added"
    assert facts(found, "x", "cpu", 1.0)["spec"]["decoder"]["rotary_base"] == 50.0
    cell = explain_cell(found.network, trace, "decoder.0.1.self", 3, 3, 1)
    assert cell.agrees


PLACES = (("self", "queries"), ("self", "values"), ("self", "normed"), ("feed_forward", "hidden"))


@pytest.mark.parametrize("edit", [NoPositions(stack="decoder"), ShiftPositions(stack="decoder", by=1)], ids=str)
def test_positions_that_are_not_added_cannot_be_taken_away(edit: Edit) -> None:
    found = checkpoint(SPECS[NAME])
    with pytest.raises(CannotChange, match="queries and keys are rotated by their positions"):
        traced(found, replace(request(SPECS[NAME]), edits=(edit,)))
    with pytest.raises(UnknownTensor):
        tensors.tensor(found.network, "positions/decoder")


def test_one_head_of_a_group_is_silenced_and_the_others_stay() -> None:
    found = checkpoint(SPECS[NAME])
    plain = traced(found, request(SPECS[NAME]))
    changed = traced(found, request(SPECS[NAME], (Silence(site="decoder.0.0.self", head=(1,)),)))
    first, second = (trace.at("decoder.0.0.self").context for trace in (plain, changed))
    assert first is not None
    assert second is not None
    assert not second[1, 0].any()
    assert (first[[0, 2, 3], 0] == second[[0, 2, 3], 0]).all()


def test_heads_of_a_group_share_their_keys_and_values() -> None:
    maps = tensors.tensor(checkpoint(SPECS[NAME]).network, "heads/decoder.0.0.self/key")
    assert maps.shape == (4, 4, 8)
    assert torch.equal(maps[0], maps[1])
    assert not torch.equal(maps[1], maps[2])


def test_the_page_positions_says_what_rotary_positions_are() -> None:
    engine = MadeUpEngine(spec={"encoder": {"positions": "rotary-pairs"}, "decoder": {"positions": "rotary"}})
    app = open_view("positions", engine)
    assert "(RoPE), so there is no table to draw." in words(app)
