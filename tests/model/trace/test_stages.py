"""The walk: the stages in the order in which they ran, and each stage's numbers as they were recorded."""

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from model.errors import UnknownHead, UnknownStage
from model.trace import serialization, source_lines, stages
from model.trace.stages import NAMES, Stage
from model.trace.types import Trace
from tests import traces
from tests.networks import (
    LANGUAGE_MODELS,
    TRANSLATORS,
    VARIANTS,
    continue_,
    language_model,
    padded,
    some_ids,
    translate,
    translator,
)
from tests.runs import SPECS, checkpoint, request, traced

ROOT = Path(__file__).parents[3]


@cache
def made(name: str) -> Trace:
    return traced(checkpoint(SPECS[name]), request(SPECS[name]))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_order_of_the_walk_is_the_order_of_the_records(name: str) -> None:
    if name in TRANSLATORS:
        spec = VARIANTS[name]
        notes = translate(translator(spec), padded([some_ids(4, 10)]), padded([some_ids(3, 10)]))
    else:
        assert name in LANGUAGE_MODELS
        notes = continue_(language_model(VARIANTS[name]), padded([some_ids(4, 10)]))
    walked = [stages.path(stage) for stage in stages.walk(made(name))]
    turning = [
        path for path in walked if path.rpartition("/")[2] in ("residual", "normed", "hidden", "output", "context", "logits")
    ]
    assert turning == [path for path in notes if path in turning]
    assert {path for path in notes if path.startswith("stages/")} - set(walked) <= {
        f"stages/{stack}/{part}" for stack in ("encoder", "decoder") for part in ("scaled", "final")
    }, "what was recorded and is not walked through may only be what changed nothing"


def test_the_paper_is_walked_through_in_its_order() -> None:
    layer = [str(stage) for stage in stages.walk(made("paper")) if stage.place.startswith("decoder.0.0.")]
    attention = ("queries", "keys", "values", "scores", "mask", "weights", "context", "output", "residual", "normed")
    expected = [f"decoder.0.0.{kind}/{name}" for kind in ("self", "cross") for name in attention]
    assert layer == expected + [f"decoder.0.0.feed_forward/{name}" for name in ("hidden", "contracted", "residual", "normed")]
    first = [stage.name for stage in stages.walk(made("paper"))[:5]]
    assert first == ["tokens", "ids", "embedding", "scaled", "positioned"]
    assert [stage.name for stage in stages.walk(made("paper"))[-3:]] == ["logits", "probabilities", "chosen"]


def test_a_pre_norm_network_norms_first_and_at_the_end() -> None:
    names = [stage.name for stage in stages.walk(made("modern, tied")) if stage.place == "encoder.0.0.self"]
    assert (names[0], names[-1]) == ("normed", "residual")
    assert Stage("encoder", "final") in stages.walk(made("modern, tied"))
    assert Stage("encoder", "scaled") not in stages.walk(made("modern, tied"))


def test_two_passes_are_walked_twice() -> None:
    places = dict.fromkeys(stage.place for stage in stages.walk(made("two passes")) if stage.place.startswith("encoder."))
    order = [f"encoder.{p}.{layer}.{part}" for p in range(2) for layer in range(2) for part in ("self", "feed_forward")]
    assert list(places) == order


def test_an_attention_module_alone_has_no_stage_around_it() -> None:
    names = [str(stage) for stage in stages.walk(made("attention alone"))]
    assert names[:2] == ["encoder/tokens", "encoder/features"]
    assert not [name for name in names if name.endswith(("residual", "normed", "hidden", "logits"))]


@pytest.mark.parametrize("name", SPECS)
def test_every_stage_gives_the_recorded_tensor_bit_by_bit(name: str) -> None:
    trace, data = made(name), serialization.to_bytes(made(name))
    stored = serialization.from_bytes(data)
    for stage in stages.walk(trace):
        if not (path := stages.path(stage)):
            continue
        found, again = stages.tensor(trace, stage, 0), stages.tensor(stored, stage, 0)
        assert found is not None, f"{stage} was not recorded"
        assert again is not None
        assert found.tobytes() == again.tobytes(), path
        assert len(found.shape) == 2
        assert len(found) <= len(trace.tokens[stages.strip(trace, stage)]), f"{stage}: rows without tokens"


@pytest.mark.parametrize("name", SPECS)
def test_the_walk_of_a_stored_run_is_the_same(name: str) -> None:
    trace = made(name)
    assert stages.walk(serialization.from_bytes(serialization.to_bytes(trace))) == stages.walk(trace)


def test_heads_have_their_own_numbers() -> None:
    trace = made("paper")
    stage = Stage("decoder.0.1.cross", "scores")
    scores = trace.at(stage.place).scores
    assert scores is not None
    for head in range(2):
        np.testing.assert_array_equal(stages.tensor(trace, stage, head), scores[head])
    with pytest.raises(UnknownHead):
        stages.tensor(trace, stage, 2)


def test_what_was_not_recorded_is_still_walked_through_and_says_why() -> None:
    bare = traced(checkpoint(SPECS["paper"]), replace(request(SPECS["paper"]), keep=()))
    assert stages.walk(bare) == stages.walk(made("paper"))
    for text, kept in [
        ("decoder.0.1.cross/queries", "qkv"),
        ("decoder.0.1.cross/scores", "scores"),
        ("decoder.0.1.cross/context", "context"),
        ("decoder.0.1.cross/output", "output"),
        ("decoder.0.1.cross/residual", "stages"),
        ("encoder/positioned", "hidden"),
        ("encoder.0.0.feed_forward/hidden", "stages"),
    ]:
        stage = stages.find(bare, text)
        assert stages.tensor(bare, stage, 0) is None
        assert str(stages.why_missing(bare, stage)) == f"not recorded: ask for it with --keep {kept}"


def test_a_run_that_nobody_described_shows_what_is_known_of_it() -> None:
    names = [stage.name for stage in stages.walk(traces.translation(layers=1))]
    assert names == ["tokens", "ids", *stages.ATTENTION, "tokens", "ids", *stages.ATTENTION, *stages.ATTENTION, *stages.OUTPUT]


@pytest.mark.parametrize("text", ["decoder.0.1.cross/nothing", "decoder.7.1.cross/weights", "", "x", "output/"])
def test_a_stage_that_is_not_there_is_answered_in_a_sentence(text: str) -> None:
    with pytest.raises(UnknownStage, match=r"This run has no stage .*Available: (decoder|encoder|output)"):
        stages.find(made("paper"), text)


def spoiled(trace: Trace, path: str, value: float) -> Trace:
    array = trace.stages[path].copy()
    array[1, 2] = value
    return replace(trace, stages={**trace.stages, path: array})


def test_the_first_stage_with_numbers_that_are_not_finite_is_named() -> None:
    trace = made("paper")
    assert stages.first_unsound(trace) is None, "scores of future keys are NaN, and no fault"
    late = spoiled(trace, "decoder.0.0.self/normed", np.nan)
    both = spoiled(late, "encoder.0.1.feed_forward/hidden", np.inf)
    assert str(stages.first_unsound(late)) == "decoder.0.0.self/normed"
    assert str(stages.first_unsound(both)) == "encoder.0.1.feed_forward/hidden"
    wrong = stages.unsound(both, Stage("encoder.0.1.feed_forward", "hidden"))
    assert wrong is not None
    assert np.argwhere(wrong).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", SPECS)
def test_the_code_of_a_stage_is_lines_of_its_file(name: str) -> None:
    trace = made(name)
    for stage in stages.walk(trace):
        code = source_lines.code(trace, stage)
        if code is None:
            assert stage.name in ("tokens", "ids"), f"{stage} has no code"
            continue
        lines = (ROOT / code.path).read_text(encoding="utf-8").splitlines()
        for first, text in ((code.line, code.statement), (code.first_line, code.text)):
            assert [line.strip() for line in lines[first - 1 :][: len(text.splitlines())]] == [t.strip() for t in text.splitlines()]
        assert code.first_line < code.line < code.first_line + len(code.text.splitlines())
        ast.parse(code.text)


def test_the_code_follows_the_choices_of_the_network() -> None:
    stage = Stage("encoder.0.0.self", "normed")
    functions = {name: getattr(source_lines.code(made(name), stage), "function", None) for name in ("paper", "modern, tied")}
    assert functions == {"paper": "PostNorm.forward", "modern, tied": "PreNorm.forward"}
    weights = Stage("encoder.0.0.self", "weights")
    assert getattr(source_lines.code(made("uneven"), weights), "function", None) == "softmax_zeros"


def test_the_page_of_stages_has_a_line_for_each_name_and_no_other() -> None:
    text = (ROOT / "docs" / "stages.md").read_text(encoding="utf-8")
    listed = [line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")]
    assert listed == list(NAMES)
    assert all(stage.name in NAMES for name in SPECS for stage in stages.walk(made(name)))
