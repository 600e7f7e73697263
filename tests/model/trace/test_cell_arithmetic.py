"""The arithmetic of a cell: it is what ran, in every variant, and a trace that was tampered with is found out."""

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from model.__main__ import cli, main
from model.checkpoints.native import Checkpoint
from model.engine.api import Explain, Run
from model.engine.local import LocalEngine
from model.errors import BadSetting, EditedCell, UnknownHead, UnknownSite, UnknownTensor
from model.inference.cell import explain_cell
from model.requests.edits import Silence, read_edits
from model.requests.request import RunRequest
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Site, Trace
from tests.networks import save_checkpoint
from tests.runs import CPU, SPECS, cells, checkpoint, request, traced

CROSS = "decoder.0.1.cross"


@cache
def made(name: str, seed: int = 0) -> tuple[Checkpoint, Trace]:
    found = checkpoint(SPECS[name], seed)
    return found, traced(found, request(SPECS[name]))


@pytest.mark.parametrize("name", SPECS)
def test_a_thousand_random_cells_are_what_ran(name: str) -> None:
    for seed in range(2):
        found, trace = made(name, seed)
        for site, head, query, key in cells(trace, 60, seed):
            cell = explain_cell(found.network, trace, site, head, query, key)
            assert abs(cell.weight - trace.at(site).weights[head, query, key]) < 1e-6, (name, site, head, query, key)
            assert cell.agrees, (name, site, head, query, key, cell.largest_difference)


def test_the_chain_is_the_formula_worked_out_by_hand() -> None:
    found, trace = made("paper")
    attention = trace.at(CROSS)
    cell = explain_cell(found.network, trace, CROSS, 1, 2, 3)
    assert attention.q is not None
    assert attention.k is not None
    assert attention.v is not None
    q, k, v = (np.asarray(a, np.float64) for a in (attention.q[1, 2], attention.k[1], attention.v[1]))
    assert cell.dot == pytest.approx(sum(float(a) * float(b) for a, b in zip(q, k[3], strict=True)))
    assert cell.scale == pytest.approx(1 / 2), "head_dim is 4"
    exponentials = [np.exp(q @ row / 2) for row in k]
    assert cell.weight == pytest.approx(exponentials[3] / sum(exponentials))
    context = sum(e * row for e, row in zip(exponentials, v, strict=True)) / sum(exponentials)
    np.testing.assert_allclose(cell.context, context)
    assert cell.share == pytest.approx(cell.weight * v[3] @ context / (context @ context))
    columns = found.network.attention_at(Site.parse(CROSS)).output.weight.detach().numpy()[:, 4:8]
    assert cell.moved[3] == pytest.approx(np.linalg.norm(cell.weight * (columns @ v[3])))


def test_the_shares_of_a_row_are_the_whole() -> None:
    found, trace = made("modern, tied")
    keys = trace.at(CROSS).weights.shape[2]
    assert sum(explain_cell(found.network, trace, CROSS, 0, 1, key).share for key in range(keys)) == pytest.approx(1)


def test_what_the_keys_moved_is_what_the_site_put_out() -> None:
    found, trace = made("uneven")
    attention, output = trace.at(CROSS), found.network.attention_at(Site.parse(CROSS)).output
    assert attention.heads == 1
    cell = explain_cell(found.network, trace, CROSS, 0, 0, 2)
    assert attention.output is not None
    np.testing.assert_allclose(output.weight.detach().numpy() @ cell.context, attention.output[0], atol=1e-5)


def test_a_masked_key_gets_nothing() -> None:
    found, trace = made("language model")
    cell = explain_cell(found.network, trace, "decoder.0.0.self", 0, 1, 3)
    assert not cell.allowed[3]
    assert cell.scored, "a prompt is read at once, so that masked keys are scored too"
    assert (cell.weight, cell.exponentials[3], cell.scores[3]) == (0, 0, -np.inf)
    assert cell.agrees


def test_a_key_in_the_future_of_a_cached_step_was_never_scored() -> None:
    found, trace = made("paper")
    assert not explain_cell(found.network, trace, "decoder.0.1.self", 0, 1, 3).scored
    assert explain_cell(found.network, trace, "decoder.0.1.self", 0, 3, 1).scored


@pytest.mark.parametrize(("name", "weight"), [("paper", 1 / 4), ("uneven", 0)])
def test_a_row_without_any_allowed_key_is_explained_as_it_ran(name: str, weight: float) -> None:
    found = checkpoint(SPECS[name])
    trace = traced(found, request(SPECS[name], source=(1, 1, 1, 1)))
    cell = explain_cell(found.network, trace, "encoder.0.0.self", 0, 1, 2)
    assert cell.weight == cell.ran == weight
    assert cell.agrees


def test_a_silenced_head_moved_nothing_and_the_other_heads_did() -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, request(SPECS["paper"], (Silence(CROSS, (1,)),)))
    silent, loud = (explain_cell(found.network, trace, CROSS, head, 1, 2) for head in (1, 0))
    assert silent.silenced
    assert silent.agrees
    assert not silent.moved.any()
    assert loud.agrees
    assert loud.moved.all()


@pytest.mark.parametrize(
    ("text", "explained"),
    [
        (f"sharpen site={CROSS} head=1", False),
        (f"set-row site={CROSS} head=1", False),
        (f"silence site={CROSS} head=1 by=sentence", False),
        (f"forbid site={CROSS} head=0 key=2", False),
        (f"patch site={CROSS} value=context", False),
        ("swap-layers stack=decoder a=0 b=1", False),
        (f"sharpen site={CROSS} head=0", True),
        (f"forbid site={CROSS} key=2", True),
        ("no-positions stack=encoder", True),
    ],
)
def test_a_head_whose_numbers_were_replaced_is_not_explained_by_the_formula(text: str, explained: bool) -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), edits=read_edits(text)))
    if explained:
        assert explain_cell(found.network, trace, CROSS, 1, 1, 1).agrees
    else:
        with pytest.raises(EditedCell, match="do not follow from the formula"):
            explain_cell(found.network, trace, CROSS, 1, 1, 1)


TAMPERED = {"weights": 1e-3, "scores": 1e-2, "context": 1e-2, "q": 0.1, "k": 0.1, "v": 0.1}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_trace_that_was_tampered_with_is_found_out(name: str) -> None:
    found, trace = made("paper")
    attention = trace.at(CROSS)
    forged = getattr(attention, name).copy()
    forged[1, 2] += TAMPERED[name]
    tampered = replace(trace, attention={**trace.attention, attention.site: replace(attention, **{name: forged})})
    assert not explain_cell(found.network, tampered, CROSS, 1, 2, 2).agrees


def test_numbers_that_are_not_finite_never_agree() -> None:
    found, trace = made("paper")
    attention = trace.at(CROSS)
    assert attention.q is not None
    broken = attention.q.copy()
    broken[1, 2, 0] = np.nan
    spoiled = replace(trace, attention={**trace.attention, attention.site: replace(attention, q=broken)})
    cell = explain_cell(found.network, spoiled, CROSS, 1, 2, 2)
    assert not cell.agrees
    assert json.loads(json.dumps(cell.to_json(), allow_nan=False))["weight"] is None


@pytest.mark.parametrize(
    ("cell", "error", "text"),
    [
        (("decoder.9.1.cross", 0, 0, 0), UnknownSite, "Available: encoder.0.0.self"),
        ((CROSS, 2, 0, 0), UnknownHead, "numbered from 0 to 1"),
        ((CROSS, 0, 5, 0), BadSetting, "query: “5” is not accepted. Allowed: a number from 0 to 4 at decoder.0.1.cross"),
        ((CROSS, 0, 0, -1), BadSetting, "key: “-1” is not accepted. Allowed: a number from 0 to 5 at"),
    ],
)
def test_a_cell_that_is_not_there_is_answered_in_a_sentence(
    cell: tuple[str, int, int, int], error: type[Exception], text: str
) -> None:
    found, trace = made("paper")
    with pytest.raises(error, match=text):
        explain_cell(found.network, trace, *cell)


def test_a_run_that_kept_too_little_says_so() -> None:
    found = checkpoint(SPECS["paper"])
    bare = traced(found, replace(request(SPECS["paper"]), keep=()))
    with pytest.raises(UnknownTensor, match="--keep qkv"):
        explain_cell(found.network, bare, CROSS, 0, 0, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(place / "tiny")
    return place


def test_the_engine_explains_a_run_whatever_it_was_asked_to_keep(folder: Any) -> None:
    engine = LocalEngine(folder, CPU)
    asked = RunRequest("tiny", "w4 w5 w6")
    cell = engine.ask(Explain(asked, CROSS, 1, 0, 2))
    assert isinstance(cell, Explanation)
    assert cell.ran == engine.ask(Run(asked)).at(CROSS).weights[1, 0, 2]


def test_the_command_line_tells_the_same(folder: Any) -> None:
    place = ["--site", CROSS, "--head", "1", "--query", "0", "--key", "2", "--device", "cpu"]
    told = CliRunner().invoke(cli, ["explain", str(folder / "tiny"), "--source", "w4 w5 w6", *place, "--json"])
    cell = LocalEngine(folder, CPU).ask(Explain(RunRequest("tiny", "w4 w5 w6"), CROSS, 1, 0, 2))
    assert json.loads(told.stdout) == cell.to_json()
    words = CliRunner().invoke(cli, ["explain", str(folder / "tiny"), "--source", "w4 w5 w6", *place])
    assert re.search(rf"\nweight +{cell.weight:.7f}\n", words.stdout)


def test_the_command_line_answers_in_one_line(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--site", CROSS, "--head", "7", "--query", "0", "--key", "2"]
    assert main(["explain", str(folder / "tiny"), "--source", "w4", *place]) == 1
    assert capsys.readouterr().err == "There is no head 7 at decoder.0.1.cross: its heads are numbered from 0 to 1.\n"
