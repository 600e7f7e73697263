"""Edited runs against independent computations: changed weights, padded sources, exchanged parts of the network, second runs."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.checkpoints.native import Checkpoint
from model.errors import BadEdit, CannotChange, UnknownHead, UnknownSite
from model.requests.edits import read_edits
from model.requests.inputs import Features
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Trace
from model.transformer.positions import sinusoids
from tests.model.inference.test_batching import at_once
from tests.runs import SPECS, arrays, assert_same, checkpoint, request, traced

CROSS = "decoder.0.1.cross"
PAPER = SPECS["paper"]
TARGET = (2, 5, 6, 7, 9)


def edited(text: str, name: str = "paper", target: tuple[int, ...] | None = TARGET, **more: object) -> Trace:
    asked = replace(request(SPECS[name]), target=target, edits=read_edits(text), **more)  # type: ignore[arg-type]
    return traced(checkpoint(SPECS[name]), asked)


def changed(name: str, change: Callable[[torch.nn.Module], None], target: tuple[int, ...] | None = TARGET) -> Trace:
    """The run of a network whose weights were changed by hand."""
    found = checkpoint(SPECS[name])
    network = deepcopy(found.network)
    with torch.no_grad():
        change(network)
    return traced(replace(found, network=network), replace(request(SPECS[name]), target=target))


def assert_equal_results(found: Trace, expected: Trace) -> None:
    assert found.logits is not None
    assert expected.logits is not None
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-5, atol=1e-5)
    assert [step.chosen.id for step in found.steps] == [step.chosen.id for step in expected.steps]


def assert_differs(found: Trace, name: str = "paper", target: tuple[int, ...] | None = TARGET) -> None:
    plain = traced(checkpoint(SPECS[name]), replace(request(SPECS[name]), target=target))
    assert found.logits is not None
    assert plain.logits is not None
    assert found.logits.shape != plain.logits.shape or not np.allclose(found.logits, plain.logits, atol=1e-4)


@pytest.mark.parametrize("target", [TARGET, None], ids=["forced", "decoded"])
def test_a_silenced_head_is_a_head_whose_columns_of_the_output_matrix_are_zeros(target: tuple[int, ...] | None) -> None:
    width = PAPER.stacks["decoder"].attention.head_dim

    def zero(network: torch.nn.Module) -> None:
        network.get_parameter("decoder.layers.1.cross_attention.output.weight")[:, width : 2 * width] = 0

    found = edited(f"silence site={CROSS} head=1", target=target)
    assert_equal_results(found, changed("paper", zero, target))
    assert_differs(found, target=target)


def test_a_key_that_is_forbidden_everywhere_is_padding() -> None:
    found = checkpoint(PAPER)
    ids = (2, 4, 6, 5, 9, 3)
    assert PAPER.pad_id is not None
    asked = RunRequest("tiny", ids, TARGET, keep=KEEP)
    forbidden = traced(found, replace(asked, edits=read_edits("forbid stack=encoder key=5; forbid kind=cross key=5")))
    padded = traced(found, replace(asked, source=(*ids[:5], PAPER.pad_id)))
    assert_equal_results(forbidden, padded)


def test_what_remains_of_a_row_is_brought_to_sum_1() -> None:
    found, plain = edited(f"forbid site={CROSS} head=0 query=2 key=1"), edited("")
    row, before = found.at(CROSS).weights[0, 2], plain.at(CROSS).weights[0, 2].copy()
    before[1] = 0
    np.testing.assert_allclose(row, before / before.sum(), atol=1e-6)
    np.testing.assert_array_equal(found.at(CROSS).weights[1], plain.at(CROSS).weights[1])
    np.testing.assert_array_equal(found.at(CROSS).weights[0, [0, 1, 3]], plain.at(CROSS).weights[0, [0, 1, 3]])


def test_the_future_is_open_where_it_is_allowed_as_in_a_decoder_without_a_causal_mask() -> None:
    spec = replace(PAPER, decoder=replace(PAPER.stacks["decoder"], causal=False))
    found = checkpoint(PAPER)
    expected = traced(checkpoint(spec), replace(request(PAPER), target=TARGET))
    assert_equal_results(
        traced(found, replace(request(PAPER), target=TARGET, edits=read_edits("allow stack=decoder kind=self"))), expected
    )
    notes = edited("allow stack=decoder kind=self", target=None).model["notes"]
    assert "during decoding, later tokens do not exist yet when a row is computed" in " ".join(map(str, notes))


def test_padding_is_seen_where_it_is_allowed() -> None:
    found = edited("allow stack=encoder; allow kind=cross", source_pad_to=9)
    assert found.at("encoder.0.0.self").weights[:, :, -1].min() > 0
    assert found.at(CROSS).weights[:, :, -1].min() > 0


def test_the_later_of_two_edits_of_a_cell_wins_and_a_note_says_so() -> None:
    found = edited(f"forbid site={CROSS} key=1; allow site={CROSS} query=0 key=1")
    weights = found.at(CROSS).weights
    assert (weights[:, 0, 1] > 0).all()
    assert (weights[:, 1:, 1] == 0).all()
    assert any("because it comes later" in str(note) for note in found.model["notes"])
    assert not any("wins" in str(note) for note in edited(f"forbid site={CROSS} key=1; allow site={CROSS} key=2").model["notes"])


@pytest.mark.parametrize(
    ("name", "rule"), [("paper", "also keys of the future and others that the mask forbids"), ("zeros", "weights are 0")]
)
def test_a_row_without_keys_follows_the_network_and_says_so(name: str, rule: str) -> None:
    decoder = PAPER.stacks["decoder"]
    spec = replace(PAPER, decoder=replace(decoder, attention=replace(decoder.attention, empty_rows="zeros")))
    found = checkpoint(PAPER if name == "paper" else spec)
    trace = traced(found, replace(request(PAPER), target=TARGET, edits=read_edits(f"forbid site={CROSS} head=1 query=1")))
    row = trace.at(CROSS).weights[1, 1]
    np.testing.assert_allclose(row, 1 / len(row) if name == "paper" else 0)
    assert any(rule in str(note) for note in trace.model["notes"])


ROWS: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("to=uniform", lambda weights: np.full(weights.shape[-1], 1 / weights.shape[-1])),
    ("to=one-hot key=2", lambda weights: np.eye(weights.shape[-1])[2]),
    ("to=numbers numbers=3,1", lambda weights: np.array([0.75, 0.25, *[0] * (weights.shape[-1] - 2)])),
    ("to=head other=0", lambda weights: weights[0, 2]),
]


@pytest.mark.parametrize(("to", "row"), ROWS, ids=[to for to, _ in ROWS])
def test_a_row_is_set_and_weighs_the_values(to: str, row: Callable[[np.ndarray], np.ndarray]) -> None:
    found, plain = edited(f"set-row site={CROSS} head=1 query=2 {to}"), edited("")
    expected = row(np.asarray(plain.at(CROSS).weights))
    np.testing.assert_allclose(found.at(CROSS).weights[1, 2], expected, atol=1e-6)
    values, context = plain.at(CROSS).v, found.at(CROSS).context
    assert values is not None
    assert context is not None
    np.testing.assert_allclose(context[1, 2], expected @ values[1], atol=1e-5)
    assert any("sum to 4" in str(note) for note in found.model["notes"]) == ("numbers" in to)


def test_scores_are_multiplied_before_the_softmax() -> None:
    found, plain = edited(f"sharpen site={CROSS} head=1 factor=3"), edited("")
    scores = plain.at(CROSS).scores
    assert scores is not None
    exponentials = np.exp(3 * scores[1] - (3 * scores[1]).max(axis=-1, keepdims=True))
    np.testing.assert_allclose(found.at(CROSS).weights[1], exponentials / exponentials.sum(axis=-1, keepdims=True), atol=1e-5)


def test_sharpening_too_far_is_said_in_a_sentence() -> None:
    with pytest.raises(BadEdit, match="would be too large for float32 numbers"):
        edited("sharpen kind=cross factor=1e39")


def test_a_head_is_silenced_by_the_mean_of_the_sentence() -> None:
    found, plain = edited("silence site=encoder.0.0.self head=1 by=sentence"), edited("")
    before, after = plain.at("encoder.0.0.self").context, found.at("encoder.0.0.self").context
    assert before is not None
    assert after is not None
    np.testing.assert_allclose(after[1], np.broadcast_to(before[1].mean(axis=0), before[1].shape), atol=1e-6)
    found = edited(f"silence site={CROSS} head=1 by=sentence")
    before, after = plain.at(CROSS).context, found.at(CROSS).context
    assert before is not None
    assert after is not None
    np.testing.assert_allclose(after[1], before[1].cumsum(axis=0) / np.arange(1, 1 + len(before[1]))[:, None], atol=1e-5)


def test_a_head_is_silenced_by_its_mean_over_the_examples() -> None:
    example = traced(checkpoint(PAPER), RunRequest("tiny", "w4 w5", keep=KEEP)).at(CROSS).context
    context = edited(f"silence site={CROSS} head=1 by=examples").at(CROSS).context
    assert example is not None
    assert context is not None
    np.testing.assert_allclose(context[1], np.broadcast_to(example[1].mean(axis=0), context[1].shape), atol=1e-6)


def test_the_mean_over_examples_says_which_they_are() -> None:
    notes = list(map(str, edited(f"silence site={CROSS} head=1 by=examples").model["notes"]))
    assert any("this model’s own example sentences and of what it writes for them: w4 w5" in str(note) for note in notes)


def table(found: Checkpoint) -> torch.Tensor:
    return found.network.get_parameter("encoder.embedding.positions.weight")


POSITIONS: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [
    ("no-positions stack=encoder", torch.zeros_like),
    ("swap-positions stack=encoder a=1 b=3", lambda rows: rows[[0, 3, 2, 1, *range(4, len(rows))]]),
    ("swap-positions stack=encoder a=w4 b=w5", lambda rows: rows[[0, 3, 2, 1, *range(4, len(rows))]]),
    ("shift-positions stack=encoder by=2", lambda rows: rows.roll(-2, 0)),
    ("sinusoidal-positions stack=encoder", lambda rows: sinusoids(torch.arange(len(rows)), rows.shape[1])),
]


@pytest.mark.parametrize(("text", "moved"), POSITIONS, ids=[text for text, _ in POSITIONS])
def test_positions_are_those_of_a_network_with_another_table(text: str, moved: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def change(network: torch.nn.Module) -> None:
        rows = network.get_parameter("encoder.embedding.positions.weight")
        rows.copy_(moved(rows.clone()))

    found = edited(text)
    assert_equal_results(found, changed("paper", change))
    assert_differs(found)


def test_positions_of_a_decode_are_those_of_the_same_target_when_it_is_forced() -> None:
    for text in ("shift-positions stack=decoder by=3", "swap-positions stack=decoder a=1 b=3", "no-positions stack=decoder"):
        written = edited(text, target=None)
        ids = written.tokens["target"].ids[: len(written.steps)]
        assert_equal_results(replace(written, steps=()), replace(edited(text, target=ids), steps=()))


def test_a_position_beyond_the_table_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadEdit, match=r"position 0 would become -1, and the positions run from 0 to \d+"):
        edited("shift-positions stack=encoder by=-1")
    with pytest.raises(BadEdit, match="would become 10004"):
        edited("shift-positions stack=encoder by=9999")


def test_two_layers_change_places_and_the_network_stays_as_it_was() -> None:
    def swap(network: torch.nn.Module) -> None:
        layers = network.get_submodule("encoder.layers")
        layers[0], layers[1] = layers[1], layers[0]  # type: ignore[index, operator]

    found = checkpoint(PAPER)
    before = [id(module) for module in found.network.modules()]
    asked = replace(request(PAPER), target=TARGET)
    trace = traced(found, replace(asked, edits=read_edits("swap-layers stack=encoder a=0 b=1")))
    assert_equal_results(trace, changed("paper", swap))
    assert [id(module) for module in found.network.modules()] == before
    assert_same(traced(found, asked), edited(""))


def test_a_layer_that_is_skipped_is_a_layer_that_is_not_there() -> None:
    def drop(network: torch.nn.Module) -> None:
        network.encoder.layers = network.encoder.layers[1:]  # type: ignore[union-attr, index]

    found = edited("skip-layer stack=encoder layer=0")
    assert_equal_results(found, changed("paper", drop))


@pytest.mark.parametrize("sublayer", ["encoder.0.1.self", "decoder.0.0.cross", "encoder.0.1.feed_forward"])
def test_a_sublayer_that_is_skipped_adds_nothing(sublayer: str) -> None:
    stack, _pass, layer, kind = sublayer.split(".")
    part = {"self": "attention.output", "cross": "cross_attention.output", "feed_forward": "feed_forward.contract"}[kind]

    def zero(network: torch.nn.Module) -> None:
        module = network.get_submodule(f"{stack}.layers.{layer}.{part}")
        for parameter in module.parameters():
            parameter.zero_()

    assert_equal_results(edited(f"skip-sublayer at={sublayer}"), changed("paper", zero))


def test_a_word_is_embedded_as_another_and_the_strip_shows_both() -> None:
    found = edited("embed stack=encoder at=w6 word=w9")
    ids = list(traced(checkpoint(PAPER), request(PAPER)).tokens["source"].ids)
    ids[2] = ids[4]
    expected = traced(checkpoint(PAPER), replace(request(PAPER), source=tuple(ids), target=TARGET))
    assert_equal_results(found, expected)
    assert found.tokens["source"].texts[2] == "w6 → w9"
    assert found.tokens["source"].ids == tuple(ids)


@pytest.mark.parametrize("value", ["weights", "context", "output", "hidden"])
@pytest.mark.parametrize("target", [TARGET, None], ids=["forced", "decoded"])
def test_a_patch_from_the_same_run_changes_nothing_bit_for_bit(value: str, target: tuple[int, ...] | None) -> None:
    found, plain = edited(f"patch value={value}", target=target), edited("", target=target)
    theirs = arrays(plain)
    for name, array in arrays(found).items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_a_patch_of_all_heads_and_positions_is_that_sites_output() -> None:
    second = "silence site=decoder.0.0.self"
    whole = edited(f'patch site={CROSS} value=context under="{second}"')
    assert_equal_results(whole, edited(f'patch site={CROSS} value=output under="{second}"'))
    source = edited(second).at(CROSS).output
    np.testing.assert_allclose(whole.at(CROSS).output, source, atol=1e-5)  # type: ignore[arg-type]
    assert_differs(whole)


def test_a_patch_takes_rows_of_another_sentence_at_the_tokens_that_are_named() -> None:
    found = edited('patch value=hidden stack=encoder layer=1 at=w6 take=w7 source="w7 w8"')
    other = traced(checkpoint(PAPER), RunRequest("tiny", "w7 w8", TARGET, keep=KEEP))
    plain = edited("")
    np.testing.assert_array_equal(found.hidden["encoder.0.1"][2], other.hidden["encoder.0.1"][1])
    np.testing.assert_array_equal(found.hidden["encoder.0.1"][[0, 1, 3]], plain.hidden["encoder.0.1"][[0, 1, 3]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("forbid kind=cross key=klavier", "source has no token “klavier”. Available: <sos>, w4, w6, w5, w9, <eos>"),
        ("forbid kind=cross key=17", "source has 6 tokens, counted from 0, and none is number 17"),
        ("forbid stack=encoder kind=cross", "this network has no such attention layer. Available: encoder.0.0.self"),
        ("swap-positions stack=encoder a=w4 b=haus", "source has no token “haus”"),
        ("skip-layer stack=encoder layer=7", "encoder has the layers 0 to 1"),
        ("swap-layers stack=decoder a=0 b=7", "decoder has the layers 0 to 1"),
        ("skip-sublayer at=encoder.0.7.feed_forward", "this network has no such sublayer. Available: encoder.0.0.feed_forward"),
        ("embed stack=encoder at=w4 word=w999", "“w999” is not one token of the vocabulary"),
        ("embed stack=encoder at=w4 word=99999", "the ids of the vocabulary run from 0 to"),
        ("set-row site=decoder.0.1.cross to=numbers numbers=1,1,1,1,1,1,1,1,1", "it gives 9 numbers, and the row has 6 keys"),
        ('patch value=hidden stack=encoder source="w4"', "source has 6 tokens here and 3 rows in the second run"),
        ('patch value=hidden stack=encoder at=5 source="w4"', "the second run has 3 rows, counted from 0, and no row 5"),
        ('patch value=weights kind=cross at=1 source="w4"', "rows of weights have 3 keys in the second run and 6 here"),
        (
            'patch value=hidden stack=encoder at=w4 take=w8 source="w4"',
            "the second run has no token “w8”. Available: <sos>, w4",
        ),
    ],
)
def test_an_edit_that_names_what_is_not_there_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(BadEdit) as caught:
        edited(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("silence site=decoder.0.9.cross", UnknownSite),
        ("silence site=decoder.0.1.cross head=9", UnknownHead),
        ("set-row kind=cross to=head other=9", UnknownHead),
        ("skip-sublayer at=decoder.0.9.cross", UnknownSite),
        ("skip-sublayer at=cross", UnknownSite),
    ],
)
def test_sites_and_heads_that_are_not_there_are_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        edited(text)


def test_a_network_without_an_embedding_says_what_cannot_be_changed() -> None:
    rows = tuple(tuple(float(i + j) for j in range(6)) for i in range(4))
    asked = RunRequest("tiny", Features(rows))
    for text in ("no-positions stack=encoder", "embed stack=encoder at=1 word=2"):
        with pytest.raises(CannotChange):
            traced(checkpoint(SPECS["attention alone"]), replace(asked, edits=read_edits(text)))


def test_a_row_that_is_never_written_is_a_note() -> None:
    notes = edited("forbid site=decoder.0.1.self query=50", target=None).model["notes"]
    assert [*map(str, notes[-2:])] == [
        "Edit: forbid site=decoder.0.1.self query=50",
        "“forbid site=decoder.0.1.self query=50” changed nothing: this run has no such row or token.",
    ]


SOME = [
    "silence site=decoder.0.1.cross head=1",
    "silence kind=cross by=sentence; forbid key=w6",
    "set-row kind=cross to=uniform query=1; sharpen stack=encoder factor=3",
    "shift-positions stack=decoder by=1; skip-layer stack=decoder layer=0",
    "swap-layers stack=encoder a=0 b=1",
    "embed stack=encoder at=w6 word=w9; allow stack=encoder",
    'patch value=context kind=cross head=0 under="silence stack=encoder"',
]


def test_identical_requests_give_identical_traces_and_batches_the_same_as_alone() -> None:
    found = checkpoint(PAPER)
    asked = [replace(request(PAPER), edits=read_edits(text), target=target) for text in SOME for target in (None, TARGET)]
    for one, answer in zip(asked, at_once(found, asked), strict=True):
        alone, again = traced(found, one), traced(found, one)
        for name, array in arrays(alone).items():
            np.testing.assert_array_equal(array, arrays(again)[name], err_msg=name)
        assert_same(answer, alone)
        assert isinstance(answer, Trace)
        assert answer.model["notes"] == alone.model["notes"]


@pytest.mark.parametrize(
    "text", [*SOME[:-1], "forbid site=decoder.0.1.self query=2,3 key=<sos>", "silence stack=decoder by=sentence"]
)
def test_every_hypothesis_of_a_beam_is_edited_as_its_target_is_when_forced(text: str) -> None:
    found = checkpoint(replace(PAPER, end_id=None))
    asked = replace(request(PAPER), edits=read_edits(text))
    searched = traced(found, replace(asked, decoding=Decoding("beam", max_length=4, beam_size=3)))
    forced = traced(found, replace(asked, target=searched.tokens["target"].ids[: len(searched.steps)]))
    assert searched.logits is not None
    np.testing.assert_allclose(searched.logits, forced.logits, atol=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", SOME)
def test_a_long_run_is_edited_as_a_short_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = edited(text, keep=("hidden",))
    monkeypatch.setattr("model.inference.inputs.LONG", 1)
    long = edited(text, keep=("hidden",))
    assert_equal_results(long, short)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_network_runs_with_edits_or_says_why_not(name: str) -> None:
    found, plain = checkpoint(SPECS[name]), request(SPECS[name])
    stack = next(iter(SPECS[name].stacks))
    site = f"{stack}.0.0.self"
    for text in (f"silence site={site} head=0 by=sentence", f"forbid site={site} key=1", f"sharpen site={site} factor=3"):
        trace = traced(found, replace(plain, edits=read_edits(text)))
        assert not np.array_equal(trace.hidden[f"{stack}.0.0"], traced(found, plain).hidden[f"{stack}.0.0"]), text
        assert str(trace.model["notes"][-1]) == f"Edit: {text}"
