"""Scores and logits taken apart: the sums are what ran, and each part is what plain matrices give."""

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
import torch

from model.checkpoints import native
from model.checkpoints.loader import lowered
from model.checkpoints.native import Checkpoint
from model.engine.api import Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting, CannotMeasure, EditedCell, UnknownHead, UnknownSite
from model.features.circuit.cell_words import cell_words, pushes
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import kept, score_sum
from model.features.circuit.sums import CellWrites, Index, LogitSum, ScoreSum, Why, Writes
from model.inference.run import run, run_in
from model.requests.edits import read_edits
from model.requests.questions import Question
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Trace
from tests.model.features.forward_parts import Forward
from tests.networks import save_checkpoint
from tests.runs import CPU, SPECS, cells, checkpoint, request, traced

CROSS = "decoder.0.1.cross"
WRITERS = [name for name, spec in SPECS.items() if spec.output is not None]
TARGETED = [name for name, spec in SPECS.items() if len(spec.stacks) == 2]
FOLLOWED = [name for name in SPECS if name != "memory"]


@cache
def made(name: str, seed: int = 0, forced: bool = False) -> tuple[Checkpoint, Trace]:
    found, asked = checkpoint(SPECS[name], seed), request(SPECS[name])
    if forced:
        length = len(traced(found, asked).tokens["source"])  # a memory decoder lays its target over the source
        asked = replace(asked, target=(2, *(4 + place % 5 for place in range(length - 1))))
    return found, traced(found, asked)


def why(found: Checkpoint, trace: Trace, site: str, head: int, query: int, key: int, minus: Any = None) -> ScoreSum:
    return score_sum(found.network, trace, Why(RunRequest.from_json(trace.request), site, head, query, key, minus))


def writes(found: Checkpoint, trace: Trace, token: int, minus: Index | Literal["runner-up"] | None = None) -> LogitSum:
    return logit_sum(found.network, trace, Writes(RunRequest.from_json(trace.request), token, minus))


@pytest.mark.parametrize(("name", "forced"), [*((name, False) for name in SPECS), *((name, True) for name in TARGETED)])
def test_the_parts_of_a_score_add_up_to_what_ran(name: str, forced: bool) -> None:
    found, trace = made(name, forced=forced)
    for site, head, query, key in cells(trace, 16):
        scores = trace.at(site).scores
        assert scores is not None
        own = why(found, trace, site, head, query, key)
        assert own.difference < 1e-5, (site, head, query, key)
        assert own.agrees
        assert own.matrix.sum() == pytest.approx(own.score)
        if own.scored:
            assert own.score == pytest.approx(scores[head, query, key], rel=1e-5, abs=1e-5)
        for minus in (int(scores.shape[2] // 2), "mean"):
            assert why(found, trace, site, head, query, key, minus).difference < 1e-5, (site, head, query, key, minus)


@pytest.mark.parametrize("name", WRITERS)
def test_the_parts_of_a_logit_add_up_to_what_ran(name: str) -> None:
    for forced in (False, SPECS[name].encoder is not None):
        found, trace = made(name, forced=forced)
        assert trace.logits is not None
        for step in trace.steps:
            row = trace.logits[step.computed[1] - 1].astype(np.float64)
            own, beside, other = (writes(found, trace, step.index, minus) for minus in (None, "runner-up", 4))
            assert own.logit == pytest.approx(row[step.chosen.id], rel=1e-5, abs=1e-5)
            assert own.recorded - own.log_sum_exp == pytest.approx(step.chosen.log_probability, abs=1e-5)
            assert other.logit == pytest.approx(row[step.chosen.id] - row[4], rel=1e-5, abs=1e-5)
            best = max(id_ for id_ in np.flatnonzero(row == np.delete(row, step.chosen.id).max()) if id_ != step.chosen.id)
            assert beside.minus == best
            for found_sum in (own, beside, other):
                assert found_sum.agrees
                heads = np.array([part.kind == "head" for part in found_sum.parts])
                np.testing.assert_allclose(np.nansum(found_sum.keys[heads], axis=1), found_sum.values[heads], atol=1e-5)
                assert np.isnan(found_sum.keys[~heads]).all()


@pytest.mark.parametrize("name", FOLLOWED)
def test_each_part_of_a_score_is_what_plain_matrices_give(name: str) -> None:
    found, trace = made(name, 1)
    forward = Forward(found.network, trace, SPECS[name])
    for site, head, query, key in cells(trace, 6, seed=1):
        own = why(found, trace, site, head, query, key)
        across = forward.projected(site, 0, head, query), forward.projected(site, 1, head, key)
        for parts, theirs in zip((own.parts_query, own.parts_key), across, strict=True):
            assert sorted(map(str, parts)) == sorted(theirs)
        scale = SPECS[name].stacks[site.split(".")[0]].attention.head_dim ** -0.5
        for row, query_part in enumerate(own.parts_query):
            for column, key_part in enumerate(own.parts_key):
                expected = scale * across[0][str(query_part)] @ across[1][str(key_part)]
                assert own.matrix[row, column] == pytest.approx(expected, rel=1e-5, abs=1e-7), (query_part, key_part)


@pytest.mark.parametrize("name", [name for name in WRITERS if name in FOLLOWED])
def test_each_part_of_a_logit_is_what_plain_matrices_give(name: str) -> None:
    found, trace = made(name, 1)
    forward = Forward(found.network, trace, SPECS[name])
    own = writes(found, trace, len(trace.steps) - 1, "runner-up")
    assert own.minus is not None
    output = found.network.get_submodule("output")
    weight = output.get_parameter("weight").detach().double().numpy()
    expected = forward.logits(own.row, weight[own.id] - weight[own.minus])
    values = {str(part): value for part, value in zip(own.parts, own.values, strict=True)}
    if (bias := getattr(output, "bias", None)) is not None:
        expected["output projection-bias"] = float((bias[own.id] - bias[own.minus]).detach())
    assert values == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", [name for name in WRITERS if name in FOLLOWED])
def test_what_a_cell_writes_is_what_plain_matrices_give(name: str) -> None:
    found, trace = made(name, 1)
    output = found.network.get_submodule("output").get_parameter("weight").detach().double().numpy()
    for site, head, query, key in cells(trace, 8, seed=2):
        if not site.startswith("decoder"):
            continue
        attention = trace.at(site)
        assert attention.v is not None
        contexts = np.zeros((attention.heads, *attention.weights.shape[1:2], attention.v.shape[-1]))
        contexts[head, query] = float(attention.weights[head, query, key]) * attention.v[head, key].astype(np.float64)
        alone = replace(trace, attention={**trace.attention, attention.site: replace(attention, context=contexts)})
        written = Forward(found.network, alone, SPECS[name]).walk("decoder")[1][f"{site} head {head}"][query]
        expected = output @ written
        asked = CellWrites(RunRequest.from_json(trace.request), site, head, query, key)
        np.testing.assert_allclose(pushes(found.network, trace, asked), expected - expected.mean(), rtol=1e-5, atol=1e-9)
        said = cell_words(found, trace, asked)
        if not attention.weights[head, query, key]:
            assert said.ids == (), "a weight of 0 writes nothing"
            continue
        ranked, apart = np.argsort(expected), expected - expected.mean()
        assert said.ids[: len(said.up)] == tuple(id_ for id_ in ranked[::-1][:5].tolist() if apart[id_] > 0)
        assert said.ids[len(said.up) :] == tuple(id_ for id_ in ranked[:5].tolist() if apart[id_] < 0)
        np.testing.assert_allclose([value for _text, value in (*said.up, *said.down)], apart[list(said.ids)], rtol=1e-5)
        strip = "target" if "target" in found.tokenizers else "source"
        assert said.texts == found.tokenizers[strip].tokens(said.ids, strip).texts


@pytest.mark.parametrize("name", WRITERS)
def test_what_the_cells_of_a_row_write_adds_up_to_what_its_head_wrote(name: str) -> None:
    found, trace = made(name, 1, forced=name == "memory")  # whose decode keeps one row for all source positions
    whole = writes(found, trace, len(trace.steps) - 1, 4)
    request_, row = RunRequest.from_json(trace.request), whole.row
    for part, keys in zip(whole.parts, whole.keys, strict=True):
        if part.kind != "head":
            continue
        query = min(row, trace.at(part.place).weights.shape[1] - 1)
        for key in np.flatnonzero(~np.isnan(keys)).tolist():
            own = pushes(found.network, trace, CellWrites(request_, part.place, part.head, query, key))
            assert own[whole.id] - own[4] == pytest.approx(keys[key], rel=1e-6, abs=1e-9), (part, key)


def test_a_cell_that_writes_no_token_directly_says_so() -> None:
    found, trace = made("paper")
    request_ = RunRequest.from_json(trace.request)
    with pytest.raises(CannotMeasure, match="only through other heads"):
        pushes(found.network, trace, CellWrites(request_, "encoder.0.0.self", 0, 1, 1))
    with pytest.raises(BadSetting):
        pushes(found.network, trace, CellWrites(request_, CROSS, 0, 1, 99))
    alone, seen = made("encoder alone")
    with pytest.raises(CannotMeasure, match="no output layer"):
        pushes(alone.network, seen, CellWrites(RunRequest.from_json(seen.request), "encoder.0.0.self", 0, 1, 1))


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (f"silence site={CROSS} head=1", 1),
        (f"skip-sublayer at={CROSS}", 0),
        (f'patch value=output site={CROSS} source="w9 w4 w4 w7"', 0),
        (f'patch value=context site={CROSS} head=1 source="w9 w4 w4 w7"', 1),
    ],
)
def test_a_cell_whose_value_an_edit_kept_from_being_written_says_so(text: str, head: int) -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), edits=read_edits(text)))
    request_ = RunRequest.from_json(trace.request)
    with pytest.raises(EditedCell):
        pushes(found.network, trace, CellWrites(request_, CROSS, head, 1, 1))
    assert np.isfinite(pushes(found.network, trace, CellWrites(request_, "decoder.0.0.cross", head, 1, 1))).all()


def test_a_second_key_takes_its_own_parts_away() -> None:
    found, trace = made("rotary")
    one, other = (why(found, trace, "encoder.0.1.self", 3, 2, key) for key in (4, 1))
    between = why(found, trace, "encoder.0.1.self", 3, 2, 4, 1)
    np.testing.assert_allclose(between.matrix, one.matrix - other.matrix, atol=1e-12)
    mean = np.mean([why(found, trace, "encoder.0.1.self", 3, 2, key).matrix for key in range(6)], axis=0)
    np.testing.assert_allclose(why(found, trace, "encoder.0.1.self", 3, 2, 4, "mean").matrix, one.matrix - mean, atol=1e-12)


def test_the_mean_of_a_row_is_over_the_keys_that_it_may_attend_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found, trace = made("modern language model")
    site, query = "decoder.1.2.self", 4
    allowed = trace.at(site).mask[query]
    assert 0 < allowed.sum() < len(allowed)
    whole = why(found, trace, site, 1, query, 2, "mean")
    mean = np.mean([why(found, trace, site, 1, query, key).matrix for key in np.flatnonzero(allowed).tolist()], axis=0)
    np.testing.assert_allclose(whole.matrix, why(found, trace, site, 1, query, 2).matrix - mean, atol=1e-12)
    monkeypatch.setattr("model.features.circuit.score_parts.KEYS_AT_ONCE", 2)
    np.testing.assert_allclose(why(found, trace, site, 1, query, 2, "mean").matrix, whole.matrix, atol=1e-12)


# --- The bundled models ------------------------------------------------------------------------------------------------

TEXT = "fox moon tea harry potter rain key fox moon tea harry"
SENTENCES = {
    "multi30k-de-en": "Ein Mann spielt eine Gitarre.",
    "tatoeba-en-zh": "The cat is black.",
    "reverse-digits": "3 1 4 1 5",
    "wikitext2-lm": "The game was",
    "induction": TEXT,
}


@cache
def bundled(name: str, step: int | None = None) -> tuple[Checkpoint, Trace]:
    file = () if step is None else (f"snapshots/{step:06}.safetensors",)
    found = native.load(CHECKPOINTS / name, CPU, *file)
    return found, traced(found, RunRequest(name, SENTENCES[name], decoding=Decoding(max_length=4), keep=KEEP))


@pytest.mark.slow
@pytest.mark.parametrize("name", SENTENCES)
def test_bundled_models_are_taken_apart_to_the_last_digit(name: str) -> None:
    found, trace = bundled(name)
    for site, head, query, key in cells(trace, 12):
        for minus in (None, "mean"):
            own = why(found, trace, site, head, query, key, minus)
            assert own.agrees, (site, head, query, key, minus, own.difference)
            assert own.difference < 1e-5
    for step in trace.steps:
        assert writes(found, trace, step.index, "runner-up").difference < 1e-5


def share_of_previous_token_head(step: int) -> float:
    """How much of all that the parts of the induction head's key add comes from head 2 of layer 1, by size."""
    found, trace = bundled("induction", step)
    own = why(found, trace, "decoder.0.1.self", 0, 10, 4)  # the second “harry” looks at “potter”
    sums = np.abs(own.matrix.sum(axis=0))
    return float(sums[list(map(str, own.parts_key)).index("decoder.0.0.self head 1")] / sums.sum())


def test_the_key_of_the_induction_head_is_what_the_previous_token_head_wrote() -> None:
    last, first = bundled("induction", 4800), bundled("induction", 0)
    assert last[1].at("decoder.0.0.self").weights[1, 4].argmax() == 3, "head 2 of layer 1 looks at the token before"
    assert last[1].at("decoder.0.1.self").weights[0, 10, 4] > 0.8, "head 1 of layer 2 looks at what followed"
    assert first[1].at("decoder.0.1.self").weights[0, 10, 4] < 0.2
    assert share_of_previous_token_head(4800) > 0.5
    assert share_of_previous_token_head(0) < 0.2


# --- What is odd -------------------------------------------------------------------------------------------------------


def test_identical_requests_give_identical_numbers(tmp_path: Any) -> None:
    save_checkpoint(tmp_path / "tiny", split="words")
    asked = RunRequest("tiny", "w4 w6 w5", decoding=Decoding(max_length=5))
    first, second = (LocalEngine(tmp_path, CPU) for _ in range(2))
    questions: tuple[Question[Any], ...] = (
        Why(asked, CROSS, 1, 1, 2),
        Why(asked, CROSS, 1, 1, 2, "mean"),
        Writes(asked, 1, "runner-up"),
    )
    for question in questions:
        one, again = first.ask(question), second.ask(question)
        assert one.to_json() == again.to_json()
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(array, again.arrays()[name])
    assert first.ask(Why(replace(asked, keep=("scores",)), CROSS, 1, 1, 2)).agrees, "a run that kept less is made again"
    assert first.ask(Run(asked)).stages == {}


@pytest.mark.parametrize(("site", "query", "key", "why_not"), [("encoder.0.0.self", 1, 5, "padding"), (CROSS, 1, 5, "padding")])
def test_a_cell_that_padding_closed_says_so(site: str, query: int, key: int, why_not: str) -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), source_pad_to=8))
    key = len(trace.tokens["source"]) - 1
    own = why(found, trace, site, 0, query, key)
    assert own.closed == why_not
    assert own.agrees


def test_a_cell_in_the_future_has_a_score_that_the_run_never_needed() -> None:
    found, trace = made("paper")
    own = why(found, trace, "decoder.0.1.self", 1, 1, 3)
    assert (own.closed, own.scored) == ("future", False)
    assert own.agrees
    prompt, trace = made("language model")
    own = why(prompt, trace, "decoder.0.0.self", 0, 1, 3)
    assert (own.closed, own.scored) == ("future", True)


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("skip-sublayer at=encoder.0.0.self", "encoder.0.0.self edit"),
        ("skip-sublayer at=encoder.0.1.feed_forward", None),
        ("skip-layer stack=encoder layer=0", "encoder.0.0 edit"),
        ('patch value=hidden stack=encoder layer=0 source="w9 w4 w4 w7"', "encoder.0.0 edit"),
        ('patch value=output site=encoder.0.0.self source="w9 w4 w4 w7"', "encoder.0.0.self edit"),
        ('patch value=context site=encoder.0.0.self source="w9 w4 w4 w7"', None),
        ("silence site=encoder.0.0.self head=1", None),
        ("set-row site=encoder.0.0.self head=1", None),
        ("sharpen site=encoder.0.0.self head=1", None),
        ("no-positions stack=encoder", None),
        ("swap-positions stack=encoder a=1 b=2", None),
        ("swap-layers stack=encoder a=0 b=1", None),
        ("embed stack=encoder at=1 word=7", None),
        (f"forbid site={CROSS} head=0 key=2", None),
    ],
)
def test_edited_runs_are_taken_apart_and_what_an_edit_put_there_is_named(text: str, edited: str | None) -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), edits=read_edits(text)))
    own, token = why(found, trace, CROSS, 1, 1, 2), writes(found, trace, 1)
    assert own.agrees
    assert token.agrees
    edits = [str(part) for part in own.parts_key if part.kind == "edit"]
    assert edits == ([edited] if edited else [])


def test_a_head_whose_context_was_replaced_says_nothing_of_its_keys() -> None:
    found = checkpoint(SPECS["paper"])
    edits = read_edits(f"silence site={CROSS} head=1 by=sentence")
    own = writes(found, traced(found, replace(request(SPECS["paper"]), edits=edits)), 1)
    rows = {str(part): keys for part, keys in zip(own.parts, own.keys, strict=True)}
    assert np.isnan(rows[f"{CROSS} head 1"]).all()
    assert not np.isnan(rows[f"{CROSS} head 0"]).all()


def test_scores_that_an_edit_multiplied_are_no_sum() -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), edits=read_edits(f"sharpen site={CROSS} head=1")))
    with pytest.raises(EditedCell, match="sharpen"):
        why(found, trace, CROSS, 1, 1, 1)
    assert why(found, trace, CROSS, 0, 1, 1).agrees


def test_a_cell_that_an_edit_closed_says_so() -> None:
    found = checkpoint(SPECS["paper"])
    trace = traced(found, replace(request(SPECS["paper"]), edits=read_edits(f"forbid site={CROSS} key=2")))
    assert why(found, trace, CROSS, 0, 1, 2).closed == "edit"
    assert why(found, trace, CROSS, 0, 1, 1).closed == ""


def test_nan_is_told_and_does_not_agree() -> None:
    found = checkpoint(SPECS["paper"])
    with torch.no_grad():
        found.network.get_parameter("encoder.layers.0.attention.value.bias")[0] = torch.nan
    trace = traced(found, request(SPECS["paper"]))
    own = why(found, trace, CROSS, 0, 1, 1)
    assert not own.agrees
    assert own.to_json()["score"] is None
    with pytest.raises(CannotMeasure, match="NaN or infinite"):
        pushes(found.network, trace, CellWrites(RunRequest.from_json(trace.request), CROSS, 0, 1, 1))
    sound = why(found, trace, "encoder.0.0.self", 0, 1, 1)
    assert sound.agrees, "what ran before the first NaN is whole"


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_lower_precision_has_a_larger_difference_within_its_bound(precision: Literal["bfloat16", "float16"]) -> None:
    base = checkpoint(SPECS["paper"])
    low = lowered(base, precision)
    asked = replace(request(SPECS["paper"]), precision=precision)
    trace = run_in(base, low, asked, CPU, "cpu")
    sums = [score_sum(low.network, trace, Why(asked, *cell)) for cell in cells(trace, 40)]
    assert max(own.difference for own in sums) > 1e-4
    assert all(own.agrees for own in sums)
    assert all(logit_sum(low.network, trace, Writes(asked, step.index)).agrees for step in trace.steps)


WITHOUT_SCORES = tuple(name for name in KEEP if name != "scores")


def test_a_long_input_whose_weights_were_never_written_out() -> None:
    spec = SPECS["rotary language model"]
    assert spec.decoder is not None
    long = replace(spec, decoder=replace(spec.decoder, max_positions=400))
    found = checkpoint(long)
    ids = tuple(4 + place * place % 13 for place in range(300))
    trace = run(found, RunRequest("tiny", ids, decoding=Decoding(max_length=1), keep=WITHOUT_SCORES), CPU, "cpu")
    assert trace.at("decoder.0.1.self").scores is None
    assert why(found, trace, "decoder.0.1.self", 3, 290, 7).agrees
    assert why(found, trace, "decoder.0.1.self", 3, 290, 7, "mean").agrees
    own = writes(found, trace, 0)
    heads = np.array([part.kind == "head" for part in own.parts])
    np.testing.assert_allclose(np.nansum(own.keys[heads], axis=1), own.values[heads], atol=1e-5)


def test_scores_are_kept_unless_a_long_input_leaves_no_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = checkpoint(SPECS["paper"]), request(SPECS["paper"])
    assert kept(lambda wanted: traced(found, wanted), replace(asked, keep=())).at(CROSS).scores is not None
    monkeypatch.setattr("model.inference.inputs.LARGEST", 8 * 12 * 6**2 - 1)  # 12 heads, 6 positions
    assert kept(lambda wanted: traced(found, wanted), replace(asked, keep=())).at(CROSS).scores is None


def test_a_hypothesis_of_beam_search_is_taken_apart() -> None:
    found = checkpoint(replace(SPECS["paper"], end_id=None))
    decoding = Decoding("beam", max_length=6, beam_size=3, hypothesis=1)
    trace = traced(found, replace(request(SPECS["paper"]), decoding=decoding))
    assert trace.tree
    for site, head, query, key in cells(trace, 20):
        assert why(found, trace, site, head, query, key).agrees
    assert all(writes(found, trace, step.index, "runner-up").agrees for step in trace.steps)


def test_what_is_not_there_is_said() -> None:
    found, trace = made("paper")
    with pytest.raises(UnknownSite):
        why(found, trace, "decoder.0.9.cross", 0, 0, 0)
    with pytest.raises(UnknownHead):
        why(found, trace, CROSS, 9, 0, 0)
    with pytest.raises(BadSetting, match="key"):
        why(found, trace, CROSS, 0, 0, 0, 99)
    with pytest.raises(BadSetting, match="token"):
        writes(found, trace, 99)
    with pytest.raises(BadSetting, match="minus"):
        writes(found, trace, 0, 10)
    with pytest.raises(CannotMeasure, match="no output layer"):
        writes(*made("encoder alone"), 0)
