"""Training on a tiny corpus: what it writes, that it learns, and that a killed one goes on as if nothing had happened."""

import csv
import itertools
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from tensorboardX.proto.event_pb2 import Event

from model.checkpoints import native
from model.errors import DamagedFile, DataError
from model.features.training import recipes
from model.features.training import records as states
from model.features.training import train as training
from model.features.training.data import Batch, Pair, divergence, validation_loss
from model.features.training.recipes import Recipe, Side
from model.features.training.records import COLUMNS, State, snapshot_steps
from model.features.training.train import train
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from tests.networks import VARIANTS, some_ids, tiny_recipe, translator, write_corpus

ROOT = Path(__file__).parents[4]
CPU = torch.device("cpu")
TIMES = ("tokens_per_second", "seconds")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two epochs without an interruption."""
    return train(tiny_recipe(), corpus, tmp_path_factory.mktemp("trained") / "out", CPU)


def curve(folder: Path) -> list[dict[str, str]]:
    with (folder / "curve.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_leaves_a_checkpoint_its_last_weights_its_curve_and_its_state(trained: Path) -> None:
    weights = {"model.safetensors", "last.safetensors", "phase-1.safetensors"}
    others = {"spec.json", "tokenizer.json", "curve.csv", "logs", "state.pt"}
    assert {path.name for path in trained.iterdir()} == weights | others
    for name in ("model.safetensors", "last.safetensors"):
        assert {value.dtype for value in load_file(trained / name).values()} == {torch.float16}
    loaded = native.load(trained, CPU)
    assert loaded.info.name == "tiny"
    assert json.loads((trained / "spec.json").read_text(encoding="utf-8"))["format"] == 1
    vocabulary = json.loads((trained / "tokenizer.json").read_text(encoding="utf-8"))["source"]["vocabulary"]
    words = {word for word in vocabulary if not word.startswith("<")}
    assert {"hund", "schnee", "."} <= words
    assert loaded.info.spec.stacks["encoder"].vocab == len(words) + 4


def test_the_curve_has_a_row_for_each_epoch_in_the_documented_columns(trained: Path) -> None:
    rows = curve(trained)
    assert tuple(rows[0]) == COLUMNS
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert [row["step"] for row in rows] == ["3", "6"]
    for row in rows:
        assert float(row["validation_ppl"]) == pytest.approx(math.exp(float(row["validation_loss"])))
    assert float(rows[-1]["learning_rate"]) == 0.0


def test_it_learns(corpus: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=12, dropout=0.0, rate=0.02)
    how = replace(recipe.optimisation, average=0.5)
    rows = curve(train(replace(recipe, optimisation=how), corpus, tmp_path, CPU))
    assert float(rows[-1]["validation_loss"]) < 0.6 * float(rows[0]["validation_loss"])


def test_the_best_weights_are_kept_and_training_stops_when_none_better_come(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.5, 1.0])
    monkeypatch.setattr(training, "validation_loss", lambda *_: next(losses))
    recipe = tiny_recipe(epochs=5)
    recipe = replace(recipe, optimisation=replace(recipe.optimisation, patience=2))
    kept: list[bytes] = []
    monkeypatch.setattr(training, "log", lambda *_: kept.append((tmp_path / "last.safetensors").read_bytes()))
    train(recipe, corpus, tmp_path, CPU)
    assert len(kept) == 4
    assert (tmp_path / "model.safetensors").read_bytes() == kept[1]
    assert (tmp_path / "last.safetensors").read_bytes() == kept[3] != kept[1]


def assert_same(found: Any, expected: Any, name: str) -> None:
    """Fails with the name of the first value that differs by as much as a bit."""
    if isinstance(expected, dict | list):
        assert len(found) == len(expected), name
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            assert_same(found[key], expected[key], f"{name}.{key}")
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected), name
    else:
        assert found == expected, name


def assert_same_training(found: Path, expected: Path) -> None:
    for name in ("model.safetensors", "last.safetensors", "spec.json", "tokenizer.json"):
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    rows = [
        [{key: value for key, value in row.items() if key not in TIMES} for row in curve(folder)] for folder in (found, expected)
    ]
    assert rows[0] == rows[1]
    states = [torch.load(folder / "state.pt", weights_only=True) for folder in (found, expected)]
    assert_same(states[0], states[1], "state")


class Killed(BaseException):
    """What stops a training in these tests: nothing catches it."""


@pytest.mark.parametrize(
    ("room", "function", "call"),
    [
        (training, "step", 5),
        (training, "step", 1),
        (training, "validation_loss", 2),
        (training, "log", 2),
        (states, "save", 2),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    corpus: Path, tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch, room: ModuleType, function: str, call: int
) -> None:
    """Its weights, their running mean, the optimizer's moments and the schedule end the same to the bit."""
    whole: Callable[..., Any] = getattr(room, function)
    calls = iter(range(1, 100))

    def killed(*arguments: Any) -> Any:
        if next(calls) == call:
            raise Killed
        return whole(*arguments)

    monkeypatch.setattr(room, function, killed)
    with pytest.raises(Killed):
        train(tiny_recipe(), corpus, tmp_path, CPU)
    torch.manual_seed(99)  # whatever random numbers were drawn meanwhile
    monkeypatch.setattr(room, function, whole)
    train(tiny_recipe(), corpus, tmp_path, CPU)
    assert_same_training(tmp_path, trained)
    assert not list(tmp_path.glob("*.part"))


def test_a_finished_training_is_not_done_again(corpus: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_epoch", None)
    before = {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    train(tiny_recipe(), corpus, trained, CPU)
    assert {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before


def test_words_are_spelled_with_other_pieces_in_each_epoch_unless_that_is_too_long(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[Pair]] = []
    whole: Callable[..., Any] = getattr(training, "batches")  # noqa: B009

    def watched(pairs: list[Pair], *arguments: Any, **settings: Any) -> Any:
        read.append(list(pairs))
        return whole(pairs, *arguments, **settings)

    monkeypatch.setattr(training, "batches", watched)
    recipe = tiny_recipe()
    often = replace(recipe, source=replace(recipe.source, skipped_joins=0.5))
    out = train(often, corpus, tmp_path / "often", CPU)
    train(often, corpus, tmp_path / "again", CPU)
    first, second, *again = read
    assert first != second
    assert again == [first, second]
    tokenizer, target = (native.load(out, CPU).tokenizers[strip] for strip in ("source", "target"))
    texts = recipe.corpus.texts(corpus, "train")
    plain = [tokenizer.encode(source, "source").ids for source, _ in texts]
    longest = often.spec([4, 4]).stacks["encoder"].max_positions
    assert max(len(pair.source) for pair in first + second) <= longest
    for pair, ids, (source, written) in zip(first, plain, texts, strict=True):
        assert tokenizer.text(pair.source) == tokenizer.text(ids)
        assert len(pair.source) >= len(ids)
        assert pair.target == target.encode(written, "target").ids, source
    assert any(pair.source == ids for pair, ids in zip(first, plain, strict=True))  # those that would have become too long
    never = replace(recipe, source=replace(recipe.source, skipped_joins=0.0))
    read.clear()
    train(never, corpus, tmp_path / "never", CPU)
    assert [pair.source for pair in read[0]] == plain
    assert read[0] == read[1]


def test_a_new_training_takes_the_place_of_an_old_curve(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("epoch,step\n1,9\n\n2,9\n7,9\n", encoding="utf-8")
    train(tiny_recipe(), corpus, tmp_path, CPU)
    assert [row["step"] for row in curve(tmp_path)] == ["3", "6"]


def other_network(recipe: Recipe) -> Recipe:
    return replace(recipe, encoder={**(recipe.encoder or {}), "d_model": 6})


FOREIGN: dict[str, Callable[[Path], object]] = {
    "no bytes": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\x80\x02garbage" * 50),
    "a text": lambda path: path.write_text("state", encoding="utf-8"),
    "a list": lambda path: torch.save([1, 2], path),
    "other names": lambda path: torch.save({"model": torch.zeros(2)}, path),
    "other kinds": lambda path: torch.save(dict.fromkeys(("network", "average", "optimizer", "schedule"), 3), path),
    "half a file": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a call": lambda path: path.write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R."),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_state_of_something_else_is_refused_and_left_alone(corpus: Path, tmp_path: Path, trained: Path, name: str) -> None:
    path = tmp_path / "state.pt"
    path.write_bytes((trained / "state.pt").read_bytes())
    FOREIGN[name](path)
    before = path.read_bytes()
    with pytest.raises(DamagedFile) as caught:
        train(tiny_recipe(), corpus, tmp_path, CPU)
    assert str(caught.value).startswith(f"{path} cannot be read: it is no state of this training: ")
    assert path.read_bytes() == before


def test_a_state_of_another_network_is_refused(corpus: Path, tmp_path: Path, trained: Path) -> None:
    (tmp_path / "state.pt").write_bytes((trained / "state.pt").read_bytes())
    with pytest.raises(DamagedFile, match="it is no state of this training"):
        train(other_network(tiny_recipe()), corpus, tmp_path, CPU)


def test_a_missing_corpus_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        train(tiny_recipe(), tmp_path / "nowhere", tmp_path / "out", CPU)
    assert not (tmp_path / "out").exists()


def test_what_is_kept_is_the_running_mean_of_the_weights(corpus: Path, tmp_path: Path) -> None:
    for share in (0.0, 0.9):
        recipe = tiny_recipe(epochs=1)
        out = train(replace(recipe, optimisation=replace(recipe.optimisation, average=share)), corpus, tmp_path / str(share), CPU)
        last, state = load_file(out / "last.safetensors"), torch.load(out / "state.pt", weights_only=True)
        same = {name for name in last if torch.equal(last[name], state["network"][name].half())}
        assert (same == last.keys()) == (share == 0.0)


def test_bfloat16_products_train_too(corpus: Path, trained: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=1)
    AcceleratorState._reset_state()  # a process trains in one precision; this one tries two
    try:
        train(replace(recipe, optimisation=replace(recipe.optimisation, precision="bfloat16")), corpus, tmp_path, CPU)
    finally:
        AcceleratorState._reset_state()
    assert curve(tmp_path)[0]["train_loss"] != curve(trained)[0]["train_loss"]
    assert math.isfinite(float(curve(tmp_path)[0]["validation_loss"]))


@pytest.mark.parametrize("warmup", [1, 6, 1000])
def test_a_warm_up_as_long_as_the_training_still_trains(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warmup: int
) -> None:
    """AdamW moves a weight by at most about the learning rate, and one whose gradient keeps its sign by about as much."""
    rates, moved = [], []
    whole = training.step

    def noted(state: State, *others: Any) -> float:
        before = {name: value.clone() for name, value in state.network.state_dict().items()}
        rates.append(float(state.schedule.get_last_lr()[0]))
        loss = whole(state, *others)
        moved.append(max(float((value - before[name]).abs().max()) for name, value in state.network.state_dict().items()))
        return loss

    monkeypatch.setattr(training, "step", noted)
    recipe = tiny_recipe()
    train(replace(recipe, optimisation=replace(recipe.optimisation, warmup_steps=warmup)), corpus, tmp_path, CPU)
    (highest, _) = recipe.optimisation.phases[0].learning_rates
    assert rates == pytest.approx([highest * (1 - step / 6) * min(1, (step + 1) / warmup) for step in range(6)])
    for rate, distance in zip(rates, moved, strict=True):
        assert 0 < rate / 2 < distance < 2 * rate


@pytest.mark.parametrize("size", [1, 3, 128])
def test_validation_loss_is_the_mean_over_all_tokens_whatever_the_batches(size: int) -> None:
    built = translator(VARIANTS["paper"])
    pairs = [Pair(tuple(some_ids(n % 4 + 2, 11, n)), tuple(some_ids(n % 5 + 2, 10, n))) for n in range(11)]
    losses = []
    with torch.inference_mode():
        for pair in pairs:
            logits = built(torch.tensor([pair.source]), torch.tensor([pair.target[:-1]]))[0].double().numpy()
            for row, id_ in zip(logits, pair.target[1:], strict=True):
                losses.append(np.log(np.exp(row).sum()) - row[id_])
    assert validation_loss(built, pairs, CPU, size) == pytest.approx(float(np.mean(losses)), abs=1e-6)


def test_two_passes_that_must_agree_are_compared_as_torch_would() -> None:
    """The divergence is the mean of torch's own two, over the tokens that are predicted; padding counts for nothing."""
    target = torch.tensor([[2, 5, 6, 3], [2, 7, 3, 1]])
    batch = Batch(torch.zeros(4, 1, dtype=torch.long), target.repeat(2, 1))
    logits = torch.randn(4, 3, 11, generator=torch.Generator().manual_seed(0))
    one, other = logits.log_softmax(-1).chunk(2)
    both = torch.stack(
        [torch.nn.functional.kl_div(a, b, reduction="none", log_target=True) for a, b in ((one, other), (other, one))]
    ).sum(0)
    expected = both.sum(-1)[target[:, 1:] != 1].mean() / 2
    assert divergence(logits, batch).item() == pytest.approx(expected.item(), rel=1e-5)
    assert divergence(torch.cat([logits[:2], logits[:2]]), batch).item() == 0


def test_consistency_changes_what_is_learned(corpus: Path, trained: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe()
    phases = tuple(replace(phase, consistency=2.0, dropout=0.3) for phase in recipe.optimisation.phases)
    out = train(replace(recipe, optimisation=replace(recipe.optimisation, phases=phases)), corpus, tmp_path / "out", CPU)
    assert curve(out)[-1]["validation_loss"] != curve(trained)[-1]["validation_loss"]
    assert all(math.isfinite(float(row["train_loss"])) for row in curve(out))


@pytest.mark.parametrize("total", [1, 6, 512, 2032, 100_000])
def test_snapshots_come_ever_more_rarely_from_the_beginning_to_the_end(total: int) -> None:
    steps = sorted(snapshot_steps(total))
    assert (steps[0], steps[-1]) == (0, total)
    assert len(steps) >= 12 or total < 512
    if total == 100_000:
        assert [round(later / earlier, 1) for earlier, later in itertools.pairwise(steps[1:])] == [round(512 ** (1 / 12), 1)] * 12


def test_snapshots_are_the_weights_as_they_were(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    (folder / "000009.safetensors").write_bytes(b"of an older training")
    seen: list[dict[str, torch.Tensor]] = []
    whole = training.step

    def noted(state: State, *others: Any) -> float:
        seen.append({name: value.half() for name, value in state.network.state_dict().items()})
        return whole(state, *others)

    monkeypatch.setattr(training, "step", noted)
    recipe = tiny_recipe()
    out = train(replace(recipe, optimisation=replace(recipe.optimisation, average=0.0)), corpus, tmp_path, CPU, snapshots=True)
    seen.append(load_file(out / "last.safetensors"))
    steps = sorted(snapshot_steps(6))
    assert [path.name for path in sorted(folder.iterdir())] == [f"{step:06}.safetensors" for step in steps]
    for step in steps:
        assert_same(load_file(folder / f"{step:06}.safetensors"), seen[step], f"snapshot {step}")


def test_a_training_that_stops_early_keeps_its_last_weights_too(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "validation_loss", lambda *_: 1.0)
    recipe = tiny_recipe(epochs=100)
    train(replace(recipe, optimisation=replace(recipe.optimisation, patience=1)), corpus, tmp_path, CPU, snapshots=True)
    assert max(path.name for path in (tmp_path / "snapshots").iterdir()) == "000006.safetensors"


def test_the_logs_can_be_read_by_tensorboard(trained: Path) -> None:
    """An event file is a list of records: a length of 8 bytes, its checksum, the event, its checksum."""
    found: dict[tuple[str, int], float] = {}
    for path in sorted((trained / "logs").iterdir()):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + length])
            found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
            data = data[16 + length :]
    for row in curve(trained):
        for name in COLUMNS[1:]:
            assert found[name, int(row["epoch"])] == pytest.approx(float(row[name]), rel=1e-6)


def test_a_language_model_learns_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one two three four five six\n" * 40, encoding="utf-8")
    recipe = tiny_recipe(epochs=20, dropout=0.0, rate=0.02)
    data = {"kind": "text", "file": "{split}.txt", "train": "train", "validation": "train", "window": 5, "origin": "x"}
    how = replace(recipe.optimisation, average=0.5)
    source = Side("English", "basic-english", 1)
    recipe = replace(recipe, data=data, source=source, target=None, encoder=None, optimisation=how, examples=(), example_labels=())
    loaded = native.load(train(recipe, tmp_path, tmp_path / "out", CPU), CPU)
    assert loaded.info.languages == {"source": "English"}
    assert loaded.info.spec.encoder is None
    request = RunRequest("lm", "three four", decoding=Decoding(max_length=4))
    strip = run(loaded, request, CPU, "cpu").tokens["source"]
    assert strip.texts == ("three", "four", "five", "six", "<eos>")


def test_a_pair_that_does_not_fit_the_network_is_refused_before_training(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    for name, line in (("train.de", "hund " * 15), ("train.en", "dog")):
        path = tmp_path / name
        path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 17 tokens for the encoder, which has 16 positions"):
        train(tiny_recipe(), tmp_path, tmp_path / "out", CPU)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(corpus: Path, tmp_path: Path) -> None:
    """`accelerate launch` on two processes: each takes its part of every batch, and both end with the same weights."""
    recipe = tmp_path / "tiny.toml"
    text = (recipes.FOLDER / "reverse-digits.toml").read_text(encoding="utf-8")
    for old, new in (("strings = 12000", "strings = 300"), ("epochs = 16", "epochs = 1"), ("d_model = 64", "d_model = 16")):
        text = text.replace(old, new)
    recipe.write_text(text, encoding="utf-8")
    alone = train(recipes.load(str(recipe)), None, tmp_path / "alone", CPU)
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    options = ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    train_ = ["-m", "model", "train", str(recipe), "--out", str(tmp_path / "both"), "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launch, *options, *train_]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found, expected = (float(curve(folder)[0]["validation_loss"]) for folder in (tmp_path / "both", alone))
    assert found == pytest.approx(expected, rel=0.02)
