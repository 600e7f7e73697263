"""Training: one recipe trains one network into one folder. It can be killed at any moment and resumes after its last full epoch."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from tensorboardX import SummaryWriter
from torch import Tensor, nn
from tqdm import tqdm

from model.checkpoints import native
from model.errors import DataError
from model.features.training import records as states
from model.features.training.calibration import calibrate, mix
from model.features.training.corpora import RunningText, Texts
from model.features.training.data import Batch, Pair, Varied, batches, cross_entropy, divergence, examples, validation_loss
from model.features.training.recipes import Optimisation, Recipe
from model.features.training.records import State, board, keep_snapshot, log, snapshot_steps
from model.tokenizers.words import SPECIALS, UNKNOWN, WordTokenizer
from model.transformer.build import build

PRECISIONS = {"float32": "no", "bfloat16": "bf16"}
"""Names of precisions in accelerate, by those in a recipe."""


@dataclass(frozen=True)
class Course:
    """The fixed parts of a training, which do not change while it runs.

    Attributes:
        recipe: the recipe.
        tokenizers: the tokenizer of each strip.
        texts: texts of the training split.
        training, validation: examples of both splits.
        out: the folder of the checkpoint.
        accelerator: knows the device, the precision and the other processes, if there are any.
        events: the TensorBoard writer.
        snapshots: steps after which a snapshot is saved.
    """

    recipe: Recipe
    tokenizers: Mapping[str, WordTokenizer]
    texts: Texts
    training: list[Pair]
    validation: list[Pair]
    out: Path
    accelerator: Accelerator
    events: SummaryWriter
    snapshots: frozenset[int]

    @property
    def how(self) -> Optimisation:
        """The settings of the optimization."""
        return self.recipe.optimisation

    @property
    def steps_per_epoch(self) -> int:
        """Updates of the weights in one pass over the training examples."""
        return math.ceil(len(self.training) / self.how.sentences_per_batch)

    @property
    def vocabularies(self) -> list[int]:
        """The vocabulary size of each strip."""
        return [tokenizer.size for tokenizer in self.tokenizers.values()]

    def drawn(self, seed: int) -> list[Pair]:
        """The training examples; where the recipe skips joins, words are split into other pieces for each seed.

        An example that would become too long for the network keeps its usual pieces.
        """
        shares = {strip: side.skipped_joins for strip, side in self.recipe.sides.items()}
        if not any(shares.values()):
            return self.training
        chance = Random(seed)
        encoders = {name: Varied(tokenizer, tokenizer.varied(shares[name], chance)) for name, tokenizer in self.tokenizers.items()}
        longest = _longest(self.recipe)
        drawn = examples(self.recipe.corpus, self.texts, encoders)
        return [old if _too_long(new, longest) else new for new, old in zip(drawn, self.training, strict=True)]

    def save(self, weights: Mapping[str, Tensor]) -> None:
        """Writes the checkpoint."""
        native.save(self.out, self.recipe.info(self.vocabularies), weights, self.tokenizers)


def train(recipe: Recipe, data: Path | None, out: Path, device: torch.device, snapshots: bool = False) -> Path:
    """Trains `recipe` on `data` and writes a checkpoint folder to `out`, with the weights of the best validation loss.

    The folder also holds `last.safetensors` (the weights of the last epoch), `curve.csv`, `logs/` for TensorBoard, and `state.pt`,
    from which a training resumes. Under `accelerate launch` every process calls this function; only the main process writes.

    Args:
        data: the folder of the corpus; None where the task needs no files.
        snapshots: whether snapshots of the weights are saved, at ever longer intervals.

    Raises:
        DataError: the corpus is missing or does not fit.
        DamagedFile: `out` holds the state of another training.
    """
    course = _prepare(recipe, data, out, device, snapshots)
    how, accelerator = recipe.optimisation, course.accelerator
    torch.manual_seed(how.seed)
    # The order matters: the seed comes before the weights are drawn, and the state of a killed training replaces
    # them before the first snapshot is taken.
    state = states.begin(build(recipe.spec(course.vocabularies)), how, course.steps_per_epoch, accelerator)
    out.mkdir(parents=True, exist_ok=True)
    states.resume(state, out / "state.pt", accelerator.device)
    _snapshot(state, course)
    while state.epoch < how.epochs and state.epoch - state.best_epoch < how.patience:
        _epoch(state, course)
        accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        if snapshots:
            keep_snapshot(out, state.step, state.network.state_dict())
        _finish(state, course)
    course.events.close()
    accelerator.wait_for_everyone()
    return out


def _prepare(recipe: Recipe, data: Path | None, out: Path, device: torch.device, snapshots: bool) -> Course:
    """Reads the corpus and learns the vocabularies."""
    corpus, how = recipe.corpus, recipe.optimisation
    texts = {split: corpus.texts(data, split) for split in (corpus.train, corpus.validation)}
    tokenizers = {
        strip: side.tokenizer((row[i] for row in texts[corpus.train]), recipe.target is not None)
        for i, (strip, side) in enumerate(recipe.sides.items())
    }
    training = examples(corpus, texts[corpus.train], tokenizers)
    validation = examples(corpus, texts[corpus.validation], tokenizers)
    if not isinstance(corpus, RunningText):
        longest = _longest(recipe)
        for pair, text in zip(training, texts[corpus.train], strict=True):
            if problem := _too_long(pair, longest):
                raise DataError(
                    path="the training split", detail=f"{text[0][:60]!r} {problem}", do="take it out, or raise max_positions"
                )
    accelerator = Accelerator(mixed_precision=PRECISIONS[how.precision], cpu=device.type == "cpu")
    steps = snapshot_steps(how.epochs * math.ceil(len(training) / how.sentences_per_batch)) if snapshots else frozenset()
    events = board(out, writes=accelerator.is_main_process)
    return Course(recipe, tokenizers, texts[corpus.train], training, validation, out, accelerator, events, steps)


def _longest(recipe: Recipe) -> dict[str, int]:
    """The number of positions of each stack."""
    return {name: stack.max_positions for name, stack in recipe.spec([len(SPECIALS)] * 2).stacks.items()}


def _too_long(pair: Pair, longest: Mapping[str, int]) -> str:
    """Why an example is too long for the network; empty: it fits."""
    strips = (pair.source, pair.target) if pair.source else (pair.target,)
    for ids, (name, positions) in zip(strips, longest.items(), strict=True):
        if len(ids) > positions:
            return f"has {len(ids)} tokens for the {name}, which has {positions} positions"
    return ""


def _epoch(state: State, course: Course) -> None:
    """One epoch: a pass over the training examples, the validation, and saving everything that a resume needs."""
    how, accelerator = course.how, course.accelerator
    for module in state.network.modules():
        if isinstance(module, nn.Dropout):
            # Phases differ in dropout, which torch reads at each pass: it is set anew here, after a resume, too.
            module.p = how.phase(state.epoch).dropout
    began = time.perf_counter()
    tokens, train_loss = _pass(state, course)
    seconds = time.perf_counter() - began

    state.epoch += 1
    loss = validation_loss(state.average, course.validation, accelerator.device)
    weights = state.mean_weights
    kept = {"last.safetensors"}
    number = how.number(state.epoch - 1)
    if how.phase(state.epoch - 1).keeps == "last" or loss < state.phase_best.get(number, math.inf):
        state.phase_best[number] = loss
        kept.add(f"phase-{number + 1}.safetensors")
    better = loss < state.best
    if better:
        state.best, state.best_epoch = loss, state.epoch
    if not accelerator.is_main_process:
        return
    # The weights come before the state: a training that is killed in between repeats this epoch and writes them
    # again.
    for name in kept:
        native.save_weights(course.out / name, weights)
    if better:
        course.save(weights)
    rate = float(state.schedule.get_last_lr()[0])
    log(
        course.out,
        course.events,
        (state.epoch, state.step, train_loss, loss, math.exp(loss), rate, round(tokens / seconds), round(seconds, 1)),
    )
    states.save(state, course.out / "state.pt")
    tqdm.write(f"epoch {state.epoch}: validation loss {loss:.4f}, perplexity {math.exp(loss):.3f} (best: epoch {state.best_epoch})")


def _pass(state: State, course: Course) -> tuple[int, float]:
    """Trains on all batches of an epoch. Each epoch has its own order, which is the same after a resume.

    Returns:
        The number of target tokens predicted, and their mean loss, in this process.
    """
    how, accelerator = course.how, course.accelerator
    torch.manual_seed(how.seed + state.epoch + 2**20 * accelerator.process_index)  # dropout differs between processes
    bar = tqdm(
        batches(course.drawn(how.seed + state.epoch), how.sentences_per_batch, seed=how.seed + state.epoch),
        total=course.steps_per_epoch,
        desc=f"epoch {state.epoch + 1}/{how.epochs}",
        mininterval=1.0,
        disable=not accelerator.is_main_process,
    )
    tokens, total, began = 0, 0.0, time.perf_counter()
    for whole in bar:
        batch = whole.share(accelerator.process_index, accelerator.num_processes)
        loss = step(state, batch.to(accelerator.device), how, accelerator)
        _snapshot(state, course)
        tokens += batch.predicted
        total += loss * batch.predicted
        rate = tokens / (time.perf_counter() - began)
        progress = f"loss {total / tokens:.3f}, perplexity {math.exp(total / tokens):.2f}, {rate:,.0f} tokens/s"
        bar.set_postfix_str(progress, refresh=False)
    return tokens, total / tokens


def step(state: State, batch: Batch, how: Optimisation, accelerator: Accelerator) -> float:
    """One update of the weights. Returns the loss in nats per token."""
    state.trained.train()
    phase = how.phase(state.epoch)
    # Both halves hold the same sentences, and dropout differs between them: how far apart the two predictions are
    # is added to the loss.
    if phase.consistency:
        batch = batch.twice
    logits = state.trained(*batch.fed)
    loss = cross_entropy(logits, batch, phase.label_smoothing)
    if phase.consistency:
        loss = loss + phase.consistency * divergence(logits, batch)
    state.optimizer.zero_grad(set_to_none=True)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(state.network.parameters(), how.gradient_norm)
    state.optimizer.step()
    state.schedule.step()
    state.average.update_parameters(state.network)
    return loss.item()


def _snapshot(state: State, course: Course) -> None:
    """Saves a snapshot if this step is one of `course.snapshots`."""
    if state.step in course.snapshots and course.accelerator.is_main_process:
        keep_snapshot(course.out, state.step, state.network.state_dict())


def _finish(state: State, course: Course) -> None:
    """Averages the phases' weights and calibrates them, if the recipe says so, and saves them in place of the best epoch's."""
    how = course.how
    weights = load_file(course.out / native.WEIGHTS)
    if how.shares:
        weights = mix([course.out / f"phase-{n}.safetensors" for n in range(1, len(how.phases) + 1)], how.shares)
    if how.calibrate:
        network = state.average.module
        assert isinstance(network, nn.Module)
        weights = {name: value.float() for name, value in weights.items()}
        unknown = SPECIALS.index(UNKNOWN)
        weights = calibrate(network, weights, course.training, course.validation, unknown, course.accelerator.device)
    if how.shares or how.calibrate:
        course.save(weights)
