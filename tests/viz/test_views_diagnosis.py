"""What the diagnosis of a file says about whether it was trained, and the columns of its table of tensors."""

import re

import pytest

from model.inspection.report import Freshness, HeadNote, Inspection, TensorInfo
from viz.views.checkpoint import diagnosis
from viz.views.checkpoint.diagnosis import evidence, tensor_table


def seen(untouched: int, fresh: int, untrained: bool) -> Freshness:
    return Freshness(15, untouched, 19, fresh, {}, untrained)


def test_trained_weights_that_resemble_their_draw_say_why_that_is_no_contradiction() -> None:
    told = evidence(seen(untouched=0, fresh=14, untrained=False))
    assert any(sentence.startswith("14 of 19 matrices") for sentence in told)
    assert told[-1].startswith("That is no contradiction: training often keeps the mean and spread of a matrix.")


def test_nothing_is_explained_where_nothing_seems_to_contradict() -> None:
    for found in (seen(untouched=15, fresh=19, untrained=True), seen(untouched=0, fresh=0, untrained=False)):
        assert not any("contradiction" in sentence for sentence in evidence(found))


def file_of(*tensors: TensorInfo, missing: tuple[str, ...] = ()) -> Inspection:
    return Inspection("Made up.", {}, 1, tensors, missing)


def one(**different: object) -> TensorInfo:
    return TensorInfo(**{"name": "w", "shape": (2, 2), "dtype": "float32", "status": "matched"} | different)  # type: ignore[arg-type]


NUMBERS = ["histogram", "mean", "deviation", "norm"]


def test_columns_that_said_the_same_in_each_row_pushed_others_off_a_projector() -> None:
    assert list(tensor_table(file_of(one(), one()))) == ["name", "shape", *NUMBERS]
    assert list(tensor_table(file_of(one(), one(dtype="float16")))) == ["name", "shape", "dtype", *NUMBERS]
    assert list(tensor_table(file_of(one(), one(status="unexpected")))) == ["name", "status", "shape", *NUMBERS]
    assert list(tensor_table(file_of(one(sparsity=0.0001), one(sparsity=0.0)))) == ["name", "shape", *NUMBERS], "0 % in each row"
    assert list(tensor_table(file_of(one(sparsity=0.0005), one()))) == ["name", "shape", *NUMBERS, "sparsity"]
    assert list(tensor_table(file_of(one(), one(nan=2, becomes=("a",))))) == ["name", "shape", *NUMBERS, "nan", "becomes"]


def test_a_missing_tensor_brought_empty_columns_of_counts() -> None:
    table = tensor_table(file_of(one(), missing=("b",)))
    assert list(table) == ["name", "status", "shape", *NUMBERS]
    assert list(table["name"]) == ["b", "w"], "problems come first"


@pytest.mark.parametrize(("form", "shown"), [(".4f", "0.9952"), (".2f", "1.00")])
def test_the_similarity_of_two_heads_kept_four_decimals_in_big_mode(monkeypatch: pytest.MonkeyPatch, form: str, shown: str) -> None:
    monkeypatch.setattr(diagnosis, "decimals", lambda _usual: form)
    told = diagnosis._note(HeadNote("encoder.0.0.self", 0, "twin", "query-key", 0.99521, 2))
    assert told.endswith(f"is {shown}.")


def test_the_grid_of_heads_has_a_cell_for_each_that_says_what_was_found_about_it() -> None:
    sites = {"encoder.0.0.self": 2, "decoder.0.0.cross": 3}
    dead = HeadNote("decoder.0.0.cross", 1, "dead", "value-output", 0.0)
    twins = tuple(HeadNote("encoder.0.0.self", head, "twin", "query-key", 0.999, other=1 - head) for head in (0, 1))
    html = diagnosis.head_grid(Inspection("Made up.", {}, 1, (), (), heads=(dead, *twins), heads_seen=5, sites=sites))
    rows = [re.findall(r'<td class="(\w*)" title="([^"]*)">', row) for row in html.split("<tr>")[1:]]
    assert [[kind for kind, _said in row] for row in rows] == [["twin", "twin"], ["", "dead", ""]]
    assert "is dead: the norm" in rows[1][1][1]
    assert rows[1][0][1] == "Cross-attention, layer 1, head 1"
